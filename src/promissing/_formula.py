"""The formula: a neuron that prunes what is missing and scales its bias by what is left.

For a row x whose features hold the shares pi_j of a neuron, with rho the sum of the shares of
what is missing (Eq. 3 and Eq. 5 of the paper, and one step beyond):

    a = sum over observed x_j w_j  +  (1 - rho) b  +  compensation

    compensation   adds                                    parameters beyond kernel and bias
    "none"         nothing                                 none       PROMISSING
    "shared"       rho c                                   c (s,)     mPROMISSING
    "feature"      v_j for every missing feature j         V (F, s)

It is computed as one affine map: `prune` turns x into [x0, extra], `fold` turns the weights into
[W; rows], and a = [x0, extra] @ [W; rows] + b. `extra` is rho, or the 0/1 absence of every feature.

Every function takes the array namespace as `xp` (NumPy, jax.numpy, torch or keras.ops; NumPy only
for `neutralizers`) and a `layout`, which is a `Layout` with arrays of that namespace or anything
with its attributes. Nothing is imported here, no branch depends on data, and what is missing is
replaced before any arithmetic, so that gradients stay finite.
"""

TYPE_CHECKING = False  # Type checkers know this name; importing it would be an import.
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

COMPENSATIONS = ("none", "shared", "feature")
INF = float("inf")


class Layout:
    """How the columns of a matrix make up features, and each feature's share of a neuron.

    Parameters
    ----------
    n_columns : int
        p, the number of columns.
    groups : sequence of p int, optional
        The feature each column belongs to, numbered from 0. By default every column is a feature.
    shares : sequence of float, optional
        One share per feature, non-negative, summing to 1. By default 1/F each. The columns of a
        feature divide its share equally.

    Attributes
    ----------
    n_columns, n_features : int
    groups : tuple of int or None
        None when every column is its own feature, in order.
    shares : tuple of float or None
        The shares of the features; None when all are equal.
    column_shares : array (p,) or None
        None when all are equal: rho is then the plain mean of the mask, which is exact where a
        sum of 1/p is not.
    feature_shares : array (F, 1) or float
    membership : array (p, F) or None
        1/size of the feature in the cells where the column belongs to it; None without groups,
        and until `arrays` makes it for the compensation per feature, which alone needs it.
    """

    def __init__(
        self,
        n_columns: int,
        groups: "Sequence[int] | None" = None,
        shares: "Sequence[float] | None" = None,
    ) -> None:
        if n_columns < 1:
            raise ValueError(f"At least one column is needed. Received: {n_columns} columns.")
        given = range(n_columns) if groups is None else list(groups)
        if len(given) != n_columns:
            raise ValueError(
                f"`groups` must name one feature for each of the {n_columns} columns. "
                f"Received: {len(given)} entries."
            )
        if any(isinstance(g, str) or int(g) != g for g in given):
            raise ValueError(f"`groups` must hold whole numbers. Received: groups={given}")
        owner = [int(g) for g in given]
        used = set(owner)
        absent = next(f for f in range(n_columns + 1) if f not in used)
        if min(owner) < 0:
            raise ValueError(f"`groups` must count features from 0. Received: {min(owner)}")
        if absent <= max(owner):
            raise ValueError(
                f"`groups` must use every number from 0 to {max(owner)}: no column belongs to "
                f"feature {absent}."
            )
        size = [0] * (max(owner) + 1)
        for g in owner:
            size[g] += 1
        n_features = len(size)
        weight = [1 / n_features] * n_features if shares is None else [float(s) for s in shares]
        if len(weight) != n_features:
            raise ValueError(
                f"`shares` must have one entry for each of the {n_features} features. "
                f"Received: {len(weight)} entries."
            )
        for share in weight:
            if not 0 <= share < INF:
                raise ValueError(f"`shares` must be non-negative numbers. Received: {share}")
        if abs(sum(weight) - 1) > 1e-6:
            raise ValueError(f"`shares` must sum to 1. Received a sum of {sum(weight)}.")

        one_to_one = owner == list(range(n_columns))
        equal = len(set(weight)) == 1
        self.n_columns, self.n_features = n_columns, n_features
        self.groups = None if one_to_one else tuple(owner)
        self.shares = None if equal else tuple(weight)
        self._size = size
        self.membership: Any = None
        self.column_shares: Any = None
        if not (equal and len(set(size)) == 1):
            self.column_shares = [weight[g] / size[g] for g in owner]
        self.feature_shares: Any = 1 / n_features if equal else [[share] for share in weight]

    def arrays(self, np: "Any", *, per_feature: bool = False) -> "Layout":
        """The same layout with NumPy (given as `np`) arrays for what the formula multiplies with.

        `membership` is made only if `per_feature`: it has p times F cells.
        """
        new = object.__new__(Layout)
        new.__dict__.update(self.__dict__)
        if self.column_shares is not None:
            new.column_shares = np.asarray(self.column_shares)
        if self.shares is not None:
            new.feature_shares = np.asarray(self.feature_shares)
        if per_feature and self.groups is not None:
            owner = np.asarray(self.groups)[:, None]
            new.membership = (owner == np.arange(self.n_features)) / np.asarray(self._size)[owner]
        return new

    def map(self, convert: "Callable[[Any], Any]") -> "Layout":
        """The same layout with its arrays turned into those of a framework by `convert`."""
        new = object.__new__(Layout)
        new.__dict__.update(self.__dict__)
        for name in ("column_shares", "feature_shares", "membership"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, float):
                setattr(new, name, convert(value))
        return new


def is_count(value: "Any") -> bool:
    """Whether a value is a positive whole number, of Python or NumPy."""
    return hasattr(value, "__index__") and not isinstance(value, bool) and int(value) >= 1


def check_compensation(compensation: object) -> str:
    """Return `compensation` if it is one of `COMPENSATIONS`, else say what was expected."""
    if compensation not in COMPENSATIONS:
        raise ValueError(
            f'`compensation` must be "none", "shared" or "feature". '
            f"Received: compensation={compensation!r}"
        )
    return str(compensation)


def all_missing_message(layer: str, shape: "Sequence[int]", normalising: str) -> str:
    """The warning about a training batch in which every value is NaN."""
    return (
        f"Every value of a training batch of shape {tuple(shape)} is NaN, so {layer} gives every "
        f"row the same output. A normalising layer before {layer} has this effect: {normalising} "
        f"turn a whole column or row with a missing value into NaN. Scale the columns by the "
        f"means and standard deviations of their known values before the network instead, for "
        f"example with scikit-learn's StandardScaler, and normalise only after {layer}."
    )


def is_per_feature(compensation_weight: "Any") -> bool:
    """Whether a compensation is V (F, s); None and c (s,) are not."""
    return compensation_weight is not None and len(compensation_weight.shape) == 2


def prune(
    x: "Any",
    layout: "Any",
    *,
    xp: "Any",
    per_feature: bool = False,
    absent: "Any" = None,
    cast: "Callable[[Any], Any] | None" = None,
) -> "Any":
    """[x0, rho] of shape (..., p + 1), or [x0, absent] of shape (..., p + F) if `per_feature`.

    `absent` is 0 or 1 where the columns of a feature go missing together, as they do when they
    encode one value, and the missing part of them otherwise. Pass it if it is already computed.

    `cast` turns a mask or a count into the dtype of x. By default they are multiplied by ones of
    that dtype, as the namespaces share no cast; ONNX has no product of a bool and a float.
    """
    missing = xp.isnan(x)
    # `where(missing, 0, x)` says the same and is 4 to 7 times slower in eager torch. The infinities
    # are passed through: they must never become ordinary numbers.
    x0 = xp.nan_to_num(x, nan=0.0, posinf=INF, neginf=-INF)
    one = 1 if cast else xp.ones_like(x[..., :1])
    number = cast or (lambda a: xp.multiply(a, one))
    if per_feature:
        extra = number(missing if absent is None else absent)
        if absent is None and layout.membership is not None:
            extra = xp.matmul(extra, layout.membership)
    elif layout.column_shares is not None:
        mask = cast(missing) if cast else missing
        extra = xp.sum(xp.multiply(mask, layout.column_shares), axis=-1, keepdims=True)
    elif layout.n_columns > 65504:  # A larger count is infinite in float16.
        extra = xp.mean(number(missing), axis=-1, keepdims=True)
    else:
        extra = number(xp.sum(missing, axis=-1, keepdims=True)) / layout.n_columns
    return xp.concatenate([x0, extra], axis=-1)


def fold(
    kernel: "Any",
    bias: "Any",
    compensation_weight: "Any",
    layout: "Any",
    *,
    xp: "Any",
    per_feature: "bool | None" = None,
) -> "Any":
    """[W; c - b] of shape (p + 1, s), or [W; V - pi b] of shape (p + F, s) if `per_feature`.

    `kernel` is (p, s), `bias` is (s,) or None, `compensation_weight` is None, (s,) or (F, s). By
    default `per_feature` follows from its rank, which a symbolic trace does not know.
    """
    if per_feature is None:
        per_feature = is_per_feature(compensation_weight)
    if bias is None:
        bias = xp.zeros_like(kernel[0])
    if compensation_weight is None:
        rows = -bias[None, :]
    elif per_feature:
        rows = compensation_weight - layout.feature_shares * bias
    else:
        rows = (compensation_weight - bias)[None, :]
    return xp.concatenate([kernel, rows], axis=-2)


def activation(
    x: "Any",
    kernel: "Any",
    bias: "Any",
    compensation_weight: "Any",
    layout: "Any",
    *,
    xp: "Any",
    cast: "Callable[[Any], Any] | None" = None,
) -> "Any":
    """The activation (..., s) of s neurons for x of shape (..., p), NaN where missing."""
    per_feature = is_per_feature(compensation_weight)
    pruned = prune(x, layout, xp=xp, per_feature=per_feature, cast=cast)
    return neurons(pruned, kernel, bias, compensation_weight, layout, xp=xp)


def neurons(
    pruned: "Any",
    kernel: "Any",
    bias: "Any",
    compensation_weight: "Any",
    layout: "Any",
    *,
    xp: "Any",
) -> "Any":
    """The activation (..., s) of s neurons for what `prune` made of x."""
    out = xp.matmul(pruned, fold(kernel, bias, compensation_weight, layout, xp=xp))
    return out if bias is None else out + bias


def neutralizers(
    kernel: "Any", bias: "Any", compensation_weight: "Any", layout: "Any", *, xp: "Any"
) -> "Any":
    """U of shape (s, p): the value that, put in a gap, gives the activation the gap gives.

    Without compensation this is the paper's -b / (p w) (Eq. 2 and 4). It is a read-out, in NumPy:
    a weight of zero gives inf or nan, without a warning.
    """
    rows = fold(kernel, bias, compensation_weight, layout, xp=xp)[layout.n_columns :]
    if is_per_feature(compensation_weight):
        gap = rows if layout.membership is None else xp.matmul(layout.membership, rows)
    elif layout.column_shares is None:
        gap = rows / layout.n_columns
    else:
        gap = layout.column_shares[:, None] * rows
    with xp.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return (gap / kernel).T
