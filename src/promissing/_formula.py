"""The formula: a neuron that prunes what is missing and scales its bias by what is left.

A feature j has the share pi_j of a neuron, and rho is the sum of the shares of the missing
features. The activation of a row x (Eq. 3 and Eq. 5 of the paper; the third rule is new) is

    a = sum over observed x_j w_j  +  (1 - rho) b  +  compensation

    compensation   adds                                    parameters beyond kernel and bias
    "none"         nothing                                 none       PROMISSING
    "shared"       rho c                                   c (s,)     mPROMISSING
    "feature"      v_j for every missing feature j         V (F, s)

It is computed as one affine map: `prune` turns x into [x0, extra], `fold` turns the weights into
[W; rows], and a = [x0, extra] @ [W; rows] + b. A `Compensation` gives `extra`, which is rho or the
0/1 absence of every feature, and `rows`.

Every function takes the array namespace as `xp` (NumPy, jax.numpy, torch or keras.ops; NumPy only
for `neutralizers`) and a `layout`, which is a `Layout` with arrays of that namespace or any object
with the same attributes. This module imports nothing, no branch depends on data, and missing
values are replaced before any arithmetic, so that gradients stay finite.
"""

TYPE_CHECKING = False  # Type checkers know this name; importing it would be an import.
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

INF = float("inf")


class Layout:
    """Which columns of a matrix form a feature, and the share of a neuron each feature has.

    Parameters
    ----------
    n_columns : int
        p, the number of columns.
    groups : sequence of p int, optional
        The feature each column belongs to, numbered from 0. By default every column is a feature.
    shares : sequence of float, optional
        One share per feature, non-negative, with a sum of 1. By default 1/F each. The columns of a
        feature divide its share equally.

    Attributes
    ----------
    n_columns, n_features : int
        p and F.
    groups : tuple of int or None
        None if every column is its own feature, in order.
    shares : tuple of float or None
        The shares of the features; None if all are equal.
    column_shares : array (p,) or None
        None if all are equal: rho is then the mean of the mask, which is exact where a sum of 1/p
        is not.
    feature_shares : array (F, 1) or float
        A float if all are equal.
    membership : array (p, F) or None
        1 / (columns of the feature) in the cells where the column belongs to the feature, and 0
        elsewhere. None without groups, and until `arrays` computes it.
    """

    def __init__(
        self,
        n_columns: int,
        groups: "Sequence[int] | None" = None,
        shares: "Sequence[float] | None" = None,
    ) -> None:
        if n_columns < 1:
            raise ValueError(f"At least one column is needed. Received: {n_columns} columns.")
        owner = _check_groups(list(range(n_columns) if groups is None else groups), n_columns)
        size = [0] * (max(owner) + 1)
        for feature in owner:
            size[feature] += 1
        n_features = len(size)
        share = _check_shares(
            [1 / n_features] * n_features if shares is None else list(shares), n_features
        )
        equal = len(set(share)) == 1
        self.n_columns, self.n_features = n_columns, n_features
        self.groups = None if owner == list(range(n_columns)) else tuple(owner)
        self.shares = None if equal else tuple(share)
        self.membership: Any = None
        self.column_shares: Any = None
        if not (equal and len(set(size)) == 1):
            self.column_shares = [share[feature] / size[feature] for feature in owner]
        self.feature_shares: Any = 1 / n_features if equal else [[one] for one in share]
        self._size = size

    def arrays(self, np: "Any", *, per_feature: bool = False) -> "Layout":
        """Return the layout with NumPy arrays, given NumPy as `np`.

        `membership` is computed only if `per_feature`: it has p times F cells.
        """
        new = self._copy()
        if self.column_shares is not None:
            new.column_shares = np.asarray(self.column_shares)
        if self.shares is not None:
            new.feature_shares = np.asarray(self.feature_shares)
        if per_feature and self.groups is not None:
            owner = np.asarray(self.groups)[:, None]
            new.membership = (owner == np.arange(self.n_features)) / np.asarray(self._size)[owner]
        return new

    def map(self, convert: "Callable[[Any], Any]") -> "Layout":
        """Return the layout with its arrays converted to those of a framework by `convert`."""
        new = self._copy()
        for name in ("column_shares", "feature_shares", "membership"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, float):
                setattr(new, name, convert(value))
        return new

    def _copy(self) -> "Layout":
        new = object.__new__(Layout)
        new.__dict__.update(self.__dict__)
        return new


def _check_groups(groups: "list[Any]", n_columns: int) -> "list[int]":
    """Return `groups` as integers, or raise if they do not number the features of the columns."""
    if len(groups) != n_columns:
        raise ValueError(
            f"`groups` must name one feature for each of the {n_columns} columns. "
            f"Received: {len(groups)} entries."
        )
    if any(isinstance(g, str) or int(g) != g for g in groups):
        raise ValueError(f"`groups` must hold whole numbers. Received: groups={groups}")
    owner = [int(g) for g in groups]
    if min(owner) < 0:
        raise ValueError(f"`groups` must count features from 0. Received: {min(owner)}")
    used = set(owner)
    unused = next(f for f in range(n_columns + 1) if f not in used)
    if unused <= max(owner):
        raise ValueError(
            f"`groups` must use every number from 0 to {max(owner)}: no column belongs to "
            f"feature {unused}."
        )
    return owner


def _check_shares(shares: "list[Any]", n_features: int) -> "list[float]":
    """Return `shares` as floats, or raise if they are not the shares of the features."""
    if len(shares) != n_features:
        raise ValueError(
            f"`shares` must have one entry for each of the {n_features} features. "
            f"Received: {len(shares)} entries."
        )
    share = [float(s) for s in shares]
    for one in share:
        if not 0 <= one < INF:
            raise ValueError(f"`shares` must be non-negative numbers. Received: {one}")
    if abs(sum(share) - 1) > 1e-6:
        raise ValueError(f"`shares` must sum to 1. Received a sum of {sum(share)}.")
    return share


def is_count(value: "Any") -> bool:
    """Return whether a value is a positive integer of Python or NumPy."""
    return hasattr(value, "__index__") and not isinstance(value, bool) and int(value) >= 1


def all_missing_message(layer: str, shape: "Sequence[int]", normalising: str) -> str:
    """Return the text of the warning about a training batch in which every value is NaN."""
    return (
        f"Every value of a training batch of shape {tuple(shape)} is NaN, so {layer} gives every "
        f"row the same output. A normalising layer before {layer} has this effect: {normalising} "
        f"turn a whole column or row with a missing value into NaN. Scale the columns by the "
        f"means and standard deviations of their known values before the network instead, for "
        f"example with scikit-learn's StandardScaler, and normalise only after {layer}."
    )


class Compensation:
    """The protocol of a compensation, and the rule "none": PROMISSING, Eq. 3 of the paper.

    A compensation has a weight, extra columns and extra rows. This one has no weight, and one
    extra column: the missing share rho of a row. The other rules override what differs.

    Attributes
    ----------
    name : str
        The public spelling, as in `NanDense(compensation=name)`.
    per_feature : bool
        Whether there is one extra column per feature. If the columns form groups, `extra` (unless
        `absent` is passed) and `gaps` then need the `membership` of the layout.
    starts_as_kernel_row : bool
        Whether the layers draw the initial weight like one more row of the kernel, as the paper
        does. Otherwise it starts at zero.
    """

    name = "none"
    per_feature = False
    starts_as_kernel_row = False

    def weight_shape(self, n_features: int, units: int) -> "tuple[int, ...] | None":
        """Return the shape of the compensation weight, or None if there is no such weight."""
        return None

    def n_extra(self, n_features: int) -> int:
        """Return the number of extra columns."""
        return 1

    def extra(
        self, missing: "Any", layout: "Any", number: "Any", absent: "Any", *, xp: "Any"
    ) -> "Any":
        """Return the columns that `prune` appends to x0, given the mask of x.

        `number` is a function that turns a mask or a count into the dtype of x. `absent` is as in
        `prune`.
        """
        if layout.column_shares is not None:
            weighted = xp.multiply(number(missing), layout.column_shares)
            return xp.sum(weighted, axis=-1, keepdims=True)
        if layout.n_columns > 65504:  # A larger count is infinite in float16.
            return xp.mean(number(missing), axis=-1, keepdims=True)
        return number(xp.sum(missing, axis=-1, keepdims=True)) / layout.n_columns

    def fold_rows(self, weight: "Any", bias: "Any", layout: "Any") -> "Any":
        """Return the rows that `fold` appends to the kernel, one per extra column."""
        return -bias[None, :]

    def weight_of(self, rows: "Any") -> "Any":
        """Return the weight for which `fold_rows` gives these rows if the bias is zero."""
        return None

    def gaps(self, rows: "Any", layout: "Any", *, xp: "Any") -> "Any":
        """Return what each column adds to each neuron if it is missing (p, s)."""
        if layout.column_shares is None:
            return rows / layout.n_columns
        return layout.column_shares[:, None] * rows


class SharedCompensation(Compensation):
    """Add rho times one weight per neuron: mPROMISSING, Eq. 5 of the paper."""

    name = "shared"
    starts_as_kernel_row = True

    def weight_shape(self, n_features: int, units: int) -> "tuple[int, ...]":
        return (units,)

    def fold_rows(self, weight: "Any", bias: "Any", layout: "Any") -> "Any":
        return (weight - bias)[None, :]

    def weight_of(self, rows: "Any") -> "Any":
        return rows[0]


class FeatureCompensation(Compensation):
    """Add one weight per neuron for every missing feature."""

    name = "feature"
    per_feature = True

    def weight_shape(self, n_features: int, units: int) -> "tuple[int, ...]":
        return (n_features, units)

    def fold_rows(self, weight: "Any", bias: "Any", layout: "Any") -> "Any":
        return weight - layout.feature_shares * bias

    def weight_of(self, rows: "Any") -> "Any":
        return rows

    def n_extra(self, n_features: int) -> int:
        return n_features

    def extra(
        self, missing: "Any", layout: "Any", number: "Any", absent: "Any", *, xp: "Any"
    ) -> "Any":
        if absent is not None:
            return number(absent)
        if layout.membership is None:
            return number(missing)
        return xp.matmul(number(missing), layout.membership)

    def gaps(self, rows: "Any", layout: "Any", *, xp: "Any") -> "Any":
        return rows if layout.membership is None else xp.matmul(layout.membership, rows)


COMPENSATIONS: "dict[str, Compensation]" = {
    rule.name: rule for rule in (Compensation(), SharedCompensation(), FeatureCompensation())
}


def get_compensation(name: object) -> Compensation:
    """Return the compensation of a name, or raise a ValueError that lists the names."""
    if not isinstance(name, str) or name not in COMPENSATIONS:
        raise ValueError(
            f'`compensation` must be "none", "shared" or "feature". Received: compensation={name!r}'
        )
    return COMPENSATIONS[name]


def prune(
    x: "Any",
    layout: "Any",
    compensation: Compensation,
    *,
    xp: "Any",
    absent: "Any" = None,
    cast: "Callable[[Any], Any] | None" = None,
) -> "Any":
    """Return [x0, extra]: x with zeros for NaN, and the extra columns of the compensation.

    The compensation per feature appends the absence of each feature (..., F). It is 0 or 1 if the
    columns of a feature go missing together, as they do when they encode one value, and the
    missing part of them otherwise. Pass `absent` if it is already computed.

    `cast` turns a mask or a count into the dtype of x. By default they are multiplied by ones of
    that dtype, as the namespaces share no cast; ONNX has no product of a bool and a float.
    """
    missing = xp.isnan(x)
    # `where(missing, 0, x)` gives the same and is 4 to 7 times slower in eager torch. Infinities
    # are kept: they must never become ordinary numbers.
    x0 = xp.nan_to_num(x, nan=0.0, posinf=INF, neginf=-INF)
    number = cast or (lambda a: xp.multiply(a, xp.ones_like(x[..., :1])))
    extra = compensation.extra(missing, layout, number, absent, xp=xp)
    return xp.concatenate([x0, extra], axis=-1)


def fold(
    kernel: "Any",
    bias: "Any",
    weight: "Any",
    layout: "Any",
    compensation: Compensation,
    *,
    xp: "Any",
) -> "Any":
    """Return [W; c - b] of shape (p + 1, s), or [W; V - pi b] of shape (p + F, s).

    `kernel` is (p, s), `bias` is (s,) or None, and `weight` is that of the compensation.
    """
    if bias is None:
        bias = xp.zeros_like(kernel[0])
    return xp.concatenate([kernel, compensation.fold_rows(weight, bias, layout)], axis=-2)


def activation(
    x: "Any",
    kernel: "Any",
    bias: "Any",
    weight: "Any",
    layout: "Any",
    compensation: Compensation,
    *,
    xp: "Any",
    cast: "Callable[[Any], Any] | None" = None,
) -> "Any":
    """Return the activation (..., s) of s neurons for x of shape (..., p), NaN where missing."""
    pruned = prune(x, layout, compensation, xp=xp, cast=cast)
    return neurons(pruned, kernel, bias, weight, layout, compensation, xp=xp)


def neurons(
    pruned: "Any",
    kernel: "Any",
    bias: "Any",
    weight: "Any",
    layout: "Any",
    compensation: Compensation,
    *,
    xp: "Any",
) -> "Any":
    """Return the activation (..., s) of s neurons, given the output of `prune`."""
    out = xp.matmul(pruned, fold(kernel, bias, weight, layout, compensation, xp=xp))
    return out if bias is None else out + bias


def neutralizers(
    kernel: "Any",
    bias: "Any",
    weight: "Any",
    layout: "Any",
    compensation: Compensation,
    *,
    xp: "Any",
) -> "Any":
    """Return U (s, p): the value that, put in a gap, gives the same activation as the gap.

    Without compensation this is the paper's -b / (p w) (Eq. 2 and 4). `xp` is NumPy. A weight of
    zero gives inf or NaN, without a warning.
    """
    missing = gaps(kernel, bias, weight, layout, compensation, xp=xp)
    with xp.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return (missing / kernel).T


def gaps(
    kernel: "Any",
    bias: "Any",
    weight: "Any",
    layout: "Any",
    compensation: Compensation,
    *,
    xp: "Any",
) -> "Any":
    """Return what each column adds to each neuron if it is missing (p, s). `xp` is NumPy."""
    rows = fold(kernel, bias, weight, layout, compensation, xp=xp)[layout.n_columns :]
    return xp.broadcast_to(compensation.gaps(rows, layout, xp=xp), kernel.shape)
