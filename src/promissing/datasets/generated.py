"""Generated tables: a clinical cohort and the XOR problem.

The cohort has the shape of the paper's clinical study, whose patients are not public: the number
of measures per modality, the share of missing values, and the number of complete patients and of
remissions. The values are generated, and so is their relation to remission. The true probabilities
are therefore known, and a model can be evaluated against them.

Every measure is an observation of a Gaussian score. Scores are correlated with a factor of their
modality, and some factors are correlated with the severity of the illness. The log-odds of
remission are a weighted sum of all measures in the complete table, and remission is drawn from
them. Values are missing completely at random: independently of the values and of remission.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["MODALITIES", "Cohort", "Truth", "make_cohort", "make_xor"]

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Rng: TypeAlias = np.random.Generator


class _Modality(NamedTuple):
    """The measures of a modality, their missing values in percent, and their effect on remission.

    `numbers` to `categories` are the numbers of measures by kind. `rows` is the percentage of
    patients who lack some measures, `whole` of those who lack all, and `cells` of missing values.
    The first `core` measures are known whenever the modality is not missing as a whole. `worth` is
    the percentage of the information about remission, and `illness` the correlation of the factor
    with the severity of the illness.
    """

    numbers: int
    ratings: int
    flags: int
    categories: int
    cells: float
    rows: float
    whole: float
    core: int
    worth: float
    illness: float

    @property
    def kinds(self) -> list[str]:
        """The kind of each measure."""
        return np.repeat(["number", "rating", "flag", "category"], self[:4]).tolist()


# fmt: off
MODALITIES = {
    #                         num rat flag cat  cells  rows whole  core worth illness
    "demographics": _Modality( 6,  0,  8,  6,   16.0, 61.0,  2.0,   0,   42,  0.0),
    "diagnosis":    _Modality( 2,  0,  2,  2,    6.0,  9.0,  4.0,   2,    5,  0.0),
    "lifestyle":    _Modality( 2,  0,  3,  2,   21.0, 85.0,  3.0,   0,   22,  0.0),
    "somatic":      _Modality( 9,  0,  2,  0,   13.0, 19.0, 10.0,   2,    0,  0.0),
    "treatment":    _Modality( 1,  0,  0,  0,   14.0, 14.0, 14.0,   1,    2,  0.3),
    "comorbidity":  _Modality( 0,  0, 67,  0,    8.5,  9.5,  7.5,  20,   10,  0.0),
    "cytokines":    _Modality(34,  0,  0,  0,   19.5, 20.5, 17.5,   4,    0,  0.0),
    "symptoms":     _Modality( 0, 30,  0,  0,    8.0,  8.5,  7.5,   8,   10,  0.6),
    "functioning":  _Modality( 0,  5,  0,  0,   11.0, 12.0, 10.0,   1,    3, -0.4),
    "severity":     _Modality( 0,  1,  0,  0,    9.0,  9.0,  9.0,   1,    1,  0.6),
    "depression":   _Modality( 0,  9,  0,  0,   10.5, 11.0, 10.0,   2,    2,  0.4),
    "wellbeing":    _Modality( 0, 20,  0,  0,   16.0, 16.5, 15.5,   5,    3, -0.4),
}
# fmt: on
SEED = 74  # A typical cohort: 67 % remit, and a linear model has about the average score.
PATIENTS, COMPLETE, LACKING = 376, 17, 67  # All, complete, and lacking a whole modality.
_POPULATION = 2022  # The seed of what all cohorts share: distributions and effects of measures.
_SPREAD = 1.15  # A small network scores 0.67 with all columns and 0.61 with the complete ones.
_INTERCEPT = 0.915  # 67 % remit.
_LOADING = (0.7, 0.9)  # Correlations of scores with the factor of their modality.


class Truth(NamedTuple):
    """The true model of a generated cohort, which is unknown for real patients.

    Parameters
    ----------
    probability : Series (n,)
        The probability of remission given the complete table. No model can predict better.
    contributions : DataFrame (n, 12)
        The contribution of each modality to the log-odds of remission.
    intercept : float
        The log-odds are the sum of the contributions and the intercept.
    importance : Series (12,)
        The share of each modality in the variance of the log-odds in the population: the
        covariance of its contribution with the sum of all contributions, divided by the variance
        of the sum. The shares sum to 1.

    Examples
    --------
    >>> from promissing.datasets import make_cohort
    >>> truth = make_cohort(5).truth
    >>> truth.contributions.shape, round(float(truth.importance.sum()), 6)
    ((5, 12), 1.0)
    """

    probability: Any
    contributions: Any
    intercept: float
    importance: Any


class Cohort(NamedTuple):
    """Generated patients with missing values, their remission, and the true model.

    Parameters
    ----------
    X : DataFrame (n, 211)
        The table with missing values. Numbers and ratings (1 to 7) are float64, flags are
        "boolean" and categories are text.
    y : Series (n,)
        Remission, 0 or 1.
    modalities : dict of str to list of str
        The columns of each modality.
    truth : Truth
        The true model.
    complete : DataFrame (n, 211)
        X without missing values.

    Examples
    --------
    >>> from promissing.datasets import make_cohort
    >>> cohort = make_cohort(5)
    >>> cohort.X.shape, cohort.y.shape, len(cohort.modalities)
    ((5, 211), (5,), 12)
    """

    X: Any
    y: Any
    modalities: dict[str, list[str]]
    truth: Truth
    complete: Any


def make_cohort(n_patients: int = PATIENTS, *, random_state: Any = SEED) -> Cohort:
    """Generate patients like those of the paper's clinical study.

    There are 12 modalities with 211 measures. Of 376 patients, 17 are complete and 67 lack whole
    modalities, about six each; 67 % remit. All cohorts are drawn from the same population: another
    seed gives other patients.

    Parameters
    ----------
    n_patients : int, default=376
        The number of patients.
    random_state : int, numpy Generator or None, default=74
        The random seed. None gives other patients at every call. The default is a typical cohort:
        between seeds, the share of remission has a standard deviation of 2.4 percentage points,
        and the AUC of a model one of 0.03.

    Returns
    -------
    Cohort
        The table `X`, the target `y`, `modalities`, `truth` and the `complete` table.

    Examples
    --------
    >>> from promissing.datasets import make_cohort
    >>> cohort = make_cohort()
    >>> cohort.X.shape, int(cohort.X.notna().all(axis=1).sum())
    ((376, 211), 17)
    >>> cohort.modalities["functioning"][:2]
    ['functioning_1', 'functioning_2']
    >>> cohort.truth.importance.idxmax()
    'demographics'
    """
    if isinstance(n_patients, bool) or not isinstance(n_patients, int | np.integer):
        raise ValueError(f"`n_patients` must be a whole number. Received: {n_patients!r}")
    if n_patients < 1:
        raise ValueError(f"`n_patients` must be at least 1. Received: {n_patients}")
    rng = np.random.default_rng(random_state)
    measures, importance = _population()
    illness = rng.normal(size=n_patients)
    columns: dict[str, Any] = {}
    added: dict[str, Array] = {}
    modalities: dict[str, list[str]] = {}
    for name, modality in MODALITIES.items():
        factor = _correlated(illness, modality.illness, rng)
        added[name], modalities[name] = np.zeros(n_patients), []
        digits = len(str(len(measures[name])))
        for number, measure in enumerate(measures[name], start=1):
            column = f"{name}_{number:0{digits}}"
            columns[column], effect = _observe(measure, _correlated(factor, measure.loading, rng))
            added[name] += effect
            modalities[name].append(column)
    complete, contributions = pd.DataFrame(columns), pd.DataFrame(added)
    probability = 1 / (1 + np.exp(-_INTERCEPT - contributions.sum(axis=1)))
    y = pd.Series((rng.random(n_patients) < probability).astype(int), name="remission")
    X = complete.mask(pd.DataFrame(_draw_missing(n_patients, rng), columns=complete.columns))
    truth = Truth(probability.rename("probability"), contributions, _INTERCEPT, importance.copy())
    return Cohort(X, y, modalities, truth, complete)


class _Measure(NamedTuple):
    """The distribution of a measure, and its effect on the log-odds."""

    kind: str
    loading: float  # The correlation of its score with the factor of its modality.
    values: Array  # Mean and standard deviation of a number, else the limits between levels.
    effects: Array  # The effect of each level; for a number, of one standard deviation.


def _correlated(leader: Array, correlation: float, rng: Rng) -> Array:
    """Draw Gaussian scores with a given correlation with other scores."""
    own = rng.normal(size=len(leader))
    return np.asarray(correlation * leader + np.sqrt(1 - correlation**2) * own)


def _observe(measure: _Measure, score: Array) -> tuple[Any, Array]:
    """Return the observed values of a score, and their effects on the log-odds."""
    if measure.kind == "number":
        mean, deviation = measure.values
        return mean + deviation * score, measure.effects[0] * score
    level = np.searchsorted(measure.values, score)
    seen: Any = level + 1.0
    if measure.kind == "flag":
        seen = pd.array(level == 1, dtype="boolean")
    elif measure.kind == "category":
        seen = pd.Categorical.from_codes(level, list("abcde")[: len(measure.effects)])
    return seen, measure.effects[level]


@cache
def _population() -> tuple[dict[str, list[_Measure]], Any]:
    """Return the measures of every modality, and the importance of the modalities."""
    rng = np.random.default_rng(_POPULATION)
    measures, own, shared = {}, {}, {}
    for name, modality in MODALITIES.items():
        size = len(modality.kinds)
        # The measures of a modality that depends on illness have the same direction.
        sign = rng.choice([-1, 1], size) if not modality.illness else np.ones(size)
        loadings = sign * rng.uniform(*_LOADING, size)
        weights = -np.sign(modality.illness or 1) * sign * rng.uniform(0.2, 1, size)
        drawn = [(kind, *_draw_measure(kind, rng)) for kind in rng.permutation(modality.kinds)]
        # `tie` is the covariance of a standardised effect with its score. The covariance of two
        # effects is about the product of their ties and loadings, which gives the variance of a
        # contribution.
        ties = np.array([tie for *_, tie in drawn]) * loadings * weights
        variance = (weights**2).sum() + ties.sum() ** 2 - (ties**2).sum()
        own[name] = _SPREAD**2 * modality.worth / 100
        scale = np.sqrt(own[name] / variance)
        shared[name] = scale * ties.sum() * modality.illness
        measures[name] = [
            _Measure(kind, loading, values, scale * weight * effects)
            for (kind, values, effects, _), loading, weight in zip(
                drawn, loadings, weights, strict=True
            )
        ]
    by_illness = sum(shared.values())
    parts = {name: own[name] + shared[name] * (by_illness - shared[name]) for name in own}
    importance = pd.Series(parts, name="importance")
    return measures, importance / importance.sum()


def _draw_measure(kind: str, rng: Rng) -> tuple[Array, Array, float]:
    """Draw the values of a measure, its standardised effects, and their covariance with scores."""
    if kind == "number":
        mean = rng.uniform(20, 100)
        return np.array([mean, mean * rng.uniform(0.1, 0.3)]), np.ones(1), 1.0
    normal = NormalDist()
    if kind == "flag":
        limits, effects = np.array([normal.inv_cdf(rng.uniform(0.6, 0.94))]), np.arange(2.0)
    elif kind == "rating":
        limits, effects = rng.uniform(-0.3, 0.8) + np.linspace(-1.5, 1.5, 6), np.arange(7.0)
    else:
        levels = int(rng.integers(3, 6))
        limits = np.array([normal.inv_cdf(i / levels) for i in range(1, levels)])
        effects = rng.permutation(levels) * 1.0
    shares = np.diff([0, *map(normal.cdf, limits), 1])
    effects -= shares @ effects
    effects /= np.sqrt(shares @ effects**2)
    tie = effects @ np.diff([0, *(-normal.pdf(limit) for limit in limits), 0])
    return limits, effects, float(tie)


# ---- missing values of the cohort


def _draw_missing(n: int, rng: Rng) -> Mask:
    """Draw the missing values of n patients, completely at random.

    The numbers of complete patients and of patients who lack whole modalities are exact as long as
    they can be met together.
    """
    shares = [(m.rows / 100, m.whole / 100) for m in MODALITIES.values()]
    order = rng.permutation(n)
    ends = np.cumsum([round(n * (COMPLETE / PATIENTS)), round(n * (LACKING / PATIENTS))])
    incomplete = _mask(n, order[ends[0] :])
    lacking = _mask(n, order[ends[0] : ends[1]])
    whole = [_some(lacking, round(n * share), rng) for _, share in shares]
    whole[int(np.argmax([share for _, share in shares]))] |= lacking & ~np.any(whole, axis=0)
    # The modality with most missing values is the last. It starts with the patients who lack
    # nothing so far, because otherwise too many patients would be complete.
    blocks: dict[int, Mask] = {}
    untouched = incomplete & ~lacking
    for k in sorted(range(len(shares)), key=lambda k: shares[k][0]):
        rows, all_of_it = (round(n * share) for share in shares[k])
        first = untouched if len(blocks) == len(shares) - 1 else np.zeros(n, bool)
        free = incomplete & ~whole[k] & ~first
        partly = first | _some(free, max(rows - all_of_it - int(first.sum()), 0), rng)
        modality = list(MODALITIES.values())[k]
        blocks[k] = whole[k][:, None] | _deal(partly, lacking, modality, rng)
        untouched &= ~partly
    return np.column_stack([blocks[k] for k in range(len(shares))])


def _deal(partly: Mask, last: Mask, modality: _Modality, rng: Rng) -> Mask:
    """Choose the missing measures of the patients `partly`, those in `last` at the end.

    Measures are dealt like cards from shuffled decks, so that the missing values of a few patients
    soon cover every measure outside the core.
    """
    size = len(modality.kinds)
    out = np.zeros((len(partly), size), bool)
    rows = np.flatnonzero(partly)
    if not len(rows):
        return out
    rows = rows[np.argsort(last[rows], kind="stable")]
    cards = size - modality.core
    cells, some, whole = (share / 100 for share in (modality.cells, modality.rows, modality.whole))
    mean = size * (cells - whole) / (some - whole)
    counts = 1 + rng.binomial(cards - 1, (mean - 1) / (cards - 1), len(rows))
    decks = rng.permuted(np.tile(np.arange(cards), (counts.sum() // cards + 1, 1)), axis=1)
    out[np.repeat(rows, counts), modality.core + decks.ravel()[: counts.sum()]] = True
    return out


def _mask(n: int, rows: NDArray[np.int64]) -> Mask:
    out = np.zeros(n, bool)
    out[rows] = True
    return out


def _some(among: Mask, count: int, rng: Rng) -> Mask:
    """Choose `count` of the patients at random, or all if there are fewer."""
    return _mask(len(among), rng.permutation(np.flatnonzero(among))[:count])


# ---- XOR


def make_xor(
    n: int = 1000, *, noise: float = 0.25, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Generate points around the corners of the unit square, labelled by the XOR of the corner.

    The paper does not say how the corners are drawn. Here every corner has `n // 4` points, the
    remaining points are at different random corners, and the order is random. The label belongs to
    the corner and not to the noisy point, so some points are on the wrong side.

    Parameters
    ----------
    n : int, default=1000
        The number of points.
    noise : float, default=0.25
        The standard deviation of the Gaussian noise around a corner. The paper calls 0.25 the
        variance, but with that variance no classifier could reach its reported AUC of 0.99.
    random_state : int, numpy Generator or None, default=None
        The random seed. None gives other points at every call.

    Returns
    -------
    X : ndarray (n, 2)
        The points.
    y : ndarray (n,)
        The labels, 0 or 1.

    Examples
    --------
    >>> from promissing.datasets import make_xor
    >>> X, y = make_xor(4, noise=0, random_state=0)
    >>> [*zip(X.tolist(), y.tolist())]
    [([1.0, 1.0], 0), ([1.0, 0.0], 1), ([0.0, 1.0], 1), ([0.0, 0.0], 0)]
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"`n` must be a whole number of at least 1. Received: {n!r}")
    if not 0 <= noise < np.inf:
        raise ValueError(f"`noise` must be a number of at least 0. Received: {noise!r}")
    rng = np.random.default_rng(random_state)
    corners = np.concatenate([np.tile(np.arange(4), n // 4), rng.permutation(4)[: n % 4]])
    corners = rng.permutation(corners)
    corner = np.column_stack([corners // 2, corners % 2])
    return corner + noise * rng.normal(size=(n, 2)), corner[:, 0] ^ corner[:, 1]
