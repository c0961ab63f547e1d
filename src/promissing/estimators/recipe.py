"""The default recipe: every number that makes the default what it is, and what "auto" means.

The numbers were chosen by measurement on the choosing half of the tables of the accuracy study.
`resolve` turns the parameters of an estimator into a `Recipe`, the only place where "auto" is
resolved. After `fit`, the recipe is the attribute `recipe_`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from promissing._formula import COMPENSATIONS

__all__ = ["PAPER", "PLAIN", "Recipe", "learning_rate_multipliers", "resolve"]

# Up to this many rows, more members and epochs are worth their time.
SMALL_TABLE = 5_000
# Networks in the ensemble. Members differ less, and take longer, with more rows.
MEMBERS_SMALL, MEMBERS = 12, 8
# Rows of a batch. Twice as many from each of these numbers of rows on: larger batches are faster.
BATCH_SIZE, LARGE_TABLES = 64, (2**14, 2**16)
# Most epochs. Early stopping usually ends training before.
EPOCHS_SMALL, EPOCHS, EPOCHS_LEAST = 64, 24, 12
# Rows seen in all epochs together: large tables need fewer epochs.
ROWS_SEEN = 350_000
# Fewer steps do not train a network, however many epochs they make.
STEPS_LEAST = 300
# Training that ends after fewer steps has not converged, and warns.
STEPS_TOO_FEW = 100
# From this many rows on, a validation set can be spared.
ROWS_FOR_VALIDATION = 100
# One row in this many is empty, with the prior as its target: the network learns the prior.
EMPTY_ROWS = 16
# Share of the rows that lose any feature. A tenth costs no accuracy on complete rows; half of them
# costs 0.002 of R2 in regression.
AUGMENT, AUGMENT_IF_TRUE = 0.1, 0.5
# Share of the rows that lose modalities: a modality often vanishes as a whole.
AUGMENT_MODALITIES = 0.5
# Tables with more missing cells than the first share lose more of the features that have gaps
# anyway, in full from the second share on: the network then rarely sees the same row twice.
FEW_GAPS, MANY_GAPS = 1 / 8, 1 / 4
# The largest probability with which those other rows lose a feature.
LOSE_OTHERS = 0.5
# The least standard deviation of a missing indicator for its learning-rate multiplier.
RAREST_GAP = 0.05
# Weight decay of AdamW, and the L2 penalty of the other solvers, which is scikit-learn's default.
WEIGHT_DECAY, L2_PENALTY = 1.0, 1e-4
# The correction to the prior grows with this power of the missing share of a row. 1, 2 and 4 are
# level for the default; without augmentation, 4 is best and changes nearly complete rows least.
PRIOR_POWER = 4

# One plain network as in scikit-learn: parameters of NanMLPClassifier and NanMLPRegressor.
PLAIN: Mapping[str, Any] = MappingProxyType(
    {
        "hidden_layer_sizes": (100,),
        "compensation_rate": 0.0,
        "gate_rate": 0.0,
        "n_members": 1,
        "augment": False,
        "dropout": 0.0,
        "solver": "adam",
        "alpha": 1e-4,
        "batch_size": 200,
        "learning_rate_init": 1e-3,
        "max_iter": 200,
        "early_stopping": False,
        "average": False,
        "n_bins": 0,
        "n_fine_bins": 0,
    }
)
# The parameters of NanFusionClassifier in the paper's clinical study. The modalities and the
# compensation ("none" for PROMISSING, "shared" for mPROMISSING) are passed separately. The paper
# does not give the number of epochs and the batch size.
PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "units": "paper",
        "fusion_units": 5,
        "dropout": 0.1,
        "input_dropout": "zero",
        "prior_correction": False,
        "resample": True,
        "augment": False,
        "n_members": 1,
        "early_stopping": False,
        "alpha": 0.0,
        "learning_rate": "constant",
        "learning_rate_init": 3e-4,
        "batch_size": 32,
        "max_iter": 200,
        "n_iter_no_change": np.inf,  # All epochs.
    }
)


@dataclass(frozen=True)
class Recipe:
    """The values that a fit used where a parameter was "auto" or depends on others.

    Parameters
    ----------
    n_members : int
        Networks in the ensemble.
    alpha : float
        Weight decay with the solver "adamw", otherwise the L2 penalty.
    early_stopping : bool
        Whether rows are set aside for validation.
    augment : float
        Share of the rows of a batch that lose features or modalities.
    linear_skip : bool
        Whether a linear skip connection is considered.
    n_fine_bins : int or "auto"
        Fine bins of the encoder.
    resample : bool
        Whether rows of the smaller classes are drawn repeatedly.
    batch_size : int
        Rows of a batch.
    max_iter : int
        Most epochs.
    augment_others : tuple of float or None
        How readily the other rows lose each feature.

    Examples
    --------
    >>> import numpy as np
    >>> from promissing import NanMLPRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = NanMLPRegressor(n_members=1, max_iter=2, random_state=0).fit(X, X[:, 0])
    >>> model.recipe_.batch_size, model.recipe_.augment
    (64, 0.1)
    """

    n_members: int
    alpha: float
    early_stopping: bool
    augment: float
    linear_skip: bool
    n_fine_bins: int | str
    resample: bool
    batch_size: int = 0
    max_iter: int = 0
    augment_others: tuple[float, ...] | None = None

    def with_rows(self, params: Mapping[str, Any], n_rows: int, longest: int) -> Recipe:
        """Return the recipe with batch size and epochs.

        Parameters
        ----------
        params : mapping
            Parameters of the estimator.
        n_rows : int
            Rows of the table.
        longest : int
            The largest number of rows that one member is trained on.

        Returns
        -------
        Recipe
            The completed recipe.

        Examples
        --------
        >>> from promissing.estimators import NanMLPClassifier
        >>> from promissing.estimators.recipe import resolve
        >>> from promissing.networks.losses import LogLoss
        >>> params = NanMLPClassifier().get_params()
        >>> start = resolve(params, n_rows=1000, loss=LogLoss())
        >>> start.with_rows(params, n_rows=1000, longest=956).max_iter
        64
        """
        batch, epochs = params["batch_size"], params["max_iter"]
        if batch == "auto":
            batch = BATCH_SIZE << sum(longest >= rows for rows in LARGE_TABLES)
        if epochs == "auto":
            steps = -(-longest // batch)
            most = EPOCHS_SMALL if n_rows <= SMALL_TABLE else EPOCHS
            enough = min(max(ROWS_SEEN // longest, EPOCHS_LEAST), most)
            epochs = max(-(-STEPS_LEAST // steps), enough)
        return replace(self, batch_size=int(batch), max_iter=int(epochs))


def resolve(params: Mapping[str, Any], *, n_rows: int, loss: Any) -> Recipe:
    """Resolve the parameters of an estimator.

    Parameters
    ----------
    params : mapping
        Parameters of the estimator.
    n_rows : int
        Rows of the table.
    loss : promissing.networks.losses.Loss
        The loss.

    Returns
    -------
    Recipe
        All values but batch size and epochs; see `Recipe.with_rows`.
    """
    members, stopping, alpha = params["n_members"], params["early_stopping"], params["alpha"]
    if members == "auto":
        members = MEMBERS_SMALL if n_rows <= SMALL_TABLE else MEMBERS
    if alpha == "auto":
        alpha = WEIGHT_DECAY if params["solver"] == "adamw" else L2_PENALTY
    fine = params.get("n_fine_bins", 0)
    if fine == "auto" and not params.get("gate_rate"):
        fine = 0  # Without gates, nothing holds the fine bins back.
    return Recipe(
        n_members=int(members),
        alpha=float(alpha),
        early_stopping=n_rows >= ROWS_FOR_VALIDATION if stopping == "auto" else bool(stopping),
        augment=_augment(params),
        linear_skip=bool(params.get("linear_skip") and params["n_bins"] and loss.linear_skip),
        n_fine_bins=fine,
        resample=bool(params.get("resample", False)),
    )


def _augment(params: Mapping[str, Any]) -> float:
    """Return the share of rows that lose any feature, or any modality, during training."""
    asked = params["augment"]
    if isinstance(asked, bool | np.bool_):
        return AUGMENT_IF_TRUE if asked else 0.0
    if asked != "auto":
        return float(asked)
    if "modalities" in params:
        return AUGMENT_MODALITIES
    return AUGMENT


def augment_others(asked: bool | float | str, gaps: NDArray[Any]) -> tuple[float, ...] | None:
    """Return how readily the other rows lose each feature, given the share of gaps in each.

    A table with many gaps gets more of them where they are. Where gaps are few, or all in one or
    two features, they may be informative, and random gaps would hide this: no feature counts for
    more than a quarter. Features whose share is NaN have no values to lose.
    """
    if asked != "auto" or np.isnan(gaps).all():
        return None
    spread = np.nanmean(np.minimum(gaps, MANY_GAPS))
    share = LOSE_OTHERS * np.clip((spread - FEW_GAPS) / (MANY_GAPS - FEW_GAPS), 0.0, 1.0)
    return tuple(np.where(gaps > 0, share, 0.0).tolist()) if share > 0 else None


def learning_rate_multipliers(params: Mapping[str, Any], gaps: NDArray[Any]) -> dict[str, Any]:
    """Return the learning-rate multipliers by the name of an array of parameters.

    Parameters
    ----------
    params : mapping
        Parameters of the estimator.
    gaps : ndarray (F,)
        The share of gaps in each feature.

    Returns
    -------
    dict of ndarray
        Multipliers other than 1.
    """
    found: dict[str, Any] = {}
    rate = params.get("compensation_rate", 0.0)
    if rate and COMPENSATIONS[params["compensation"]].per_feature:
        # A missing indicator is a 0/1 column. As if it were standardised, its weight learns in
        # proportion to 1 / its standard deviation: rare gaps learn as fast as frequent ones.
        deviation = np.sqrt(np.nan_to_num(gaps * (1 - gaps)))
        rates = np.where(deviation > 0, rate / np.maximum(deviation, RAREST_GAP), 1.0)
        if (rates != 1).any():
            found["compensation_weight"] = rates[:, None]
    if params.get("gate_rate") and params["solver"] == "sgd":
        # The network multiplies gates by their rate, and so their gradients. Adam divides this out
        # again; without this, SGD would change gates by the square of the rate.
        found["gate"] = np.array(1 / params["gate_rate"])
    return found
