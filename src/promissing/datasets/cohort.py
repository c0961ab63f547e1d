"""A cohort of the shape of the paper's clinical study, whose patients are not public.

Only the shape is the paper's: how many measures a modality has, how much of it is missing, how many
patients are complete or remit. The values are made up, and so is what they say about remission;
therefore it is known, and a model can be judged by the truth.

Every measure is what can be seen of a Gaussian score. Scores follow a factor of their modality, and
some factors follow how ill the patient is. The log-odds of remission are a weighted sum of all
measures in the complete table, and remission is drawn from them. What goes missing is left to
chance, and depends neither on the values nor on remission.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from promissing.datasets._gaps import Loss, draw_gaps

Array: TypeAlias = NDArray[np.float64]


class _Modality(NamedTuple):
    """What a modality measures, how much of it is missing (in percent), and what it is worth.

    `numbers` to `categories` count its measures by kind. Of all patients, `rows` lack something of
    it and `whole` all of it, so that `cells` are missing. The first `core` measures are there
    whenever the modality is. `worth` is its part of what the modalities tell of remission, in
    percent; `illness` is the correlation of its factor with how ill the patient is.
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
        counts = self.numbers, self.ratings, self.flags, self.categories
        return np.repeat(["number", "rating", "flag", "category"], counts).tolist()


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
SEED = 74  # Picked as typical: 67 % remit, and a linear model scores about as on average.
PATIENTS, COMPLETE, LACKING = 376, 17, 67  # Complete, and lacking a whole modality or several.
_POPULATION = 2022  # One seed for what all cohorts share: how measures look and what they mean.
_SPREAD = (
    1.15  # So that a small network scores 0.67 with all columns, 0.61 with those without gaps.
)
_INTERCEPT = 0.915  # So that 67 % remit.
_LOADING = (0.7, 0.9)  # How closely scores follow the factor of their modality: correlations.


class Truth(NamedTuple):
    """What nobody knows of real patients.

    Attributes
    ----------
    probability : Series (n,)
        The probability of remission given the complete table. No model can know more.
    contributions : DataFrame (n, 12)
        What each modality adds to the log-odds of remission.
    intercept : float
        The contributions and this sum up to the log-odds.
    importance : Series (12,)
        The part of each modality in the variance of the log-odds over all patients there could be:
        the covariance of its contribution with the sum of all, over the variance of that. Parts
        sum up to 1.
    """

    probability: Any
    contributions: Any
    intercept: float
    importance: Any


class Cohort(NamedTuple):
    """Patients with gaps, whether they remit, and the truth.

    Attributes
    ----------
    X : DataFrame (n, 211)
        Numbers and ratings (1 to 7) are float64, flags "boolean", categories text.
    y : Series (n,)
        Remission, 0 or 1.
    modalities : dict
        The columns of each modality.
    truth : Truth
    complete : DataFrame (n, 211)
        X before anything went missing.
    """

    X: Any
    y: Any
    modalities: dict[str, list[str]]
    truth: Truth
    complete: Any


def make_cohort(n_patients: int = PATIENTS, *, random_state: Any = SEED) -> Cohort:
    """Generate patients like those of the paper's clinical study.

    12 modalities with 211 measures. In every 376 patients 17 are complete and 67 lack whole
    modalities, about six each; 67 % remit. All cohorts are of the same population: patients with
    another seed are new patients.

    Parameters
    ----------
    n_patients : int, default=376
    random_state : int, numpy Generator or None, default=74
        None gives other patients at every call. The default is a typical cohort: by the luck of
        376 draws the share that remits differs by 2.4 points from seed to seed, and the AUC that a
        model reaches by 0.03.

    Returns
    -------
    Cohort

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
        factor = _follow(illness, modality.illness, rng)
        added[name], modalities[name] = np.zeros(n_patients), []
        digits = len(str(len(measures[name])))
        for number, measure in enumerate(measures[name], start=1):
            column = f"{name}_{number:0{digits}}"
            columns[column], effect = _look(measure, _follow(factor, measure.loading, rng))
            added[name] += effect
            modalities[name].append(column)
    complete, contributions = pd.DataFrame(columns), pd.DataFrame(added)
    probability = 1 / (1 + np.exp(-_INTERCEPT - contributions.sum(axis=1)))
    y = pd.Series((rng.random(n_patients) < probability).astype(int), name="remission")
    losses = [
        Loss(len(m.kinds), m.core, m.cells / 100, m.rows / 100, m.whole / 100)
        for m in MODALITIES.values()
    ]
    gaps = draw_gaps(n_patients, losses, COMPLETE / PATIENTS, LACKING / PATIENTS, rng)
    X = complete.mask(pd.DataFrame(gaps, columns=complete.columns))
    truth = Truth(probability.rename("probability"), contributions, _INTERCEPT, importance.copy())
    return Cohort(X, y, modalities, truth, complete)


class _Measure(NamedTuple):
    """How a measure is seen, and what it adds to the log-odds."""

    kind: str
    loading: float  # The correlation of its score with the factor of its modality.
    values: Array  # The mean and the deviation of a number; else where scores pass to a new level.
    effects: Array  # Of each level, in order; of a number, of a standard deviation.


def _follow(leader: Array, correlation: float, rng: np.random.Generator) -> Array:
    """Gaussian scores with this correlation with others."""
    own = rng.normal(size=len(leader))
    return np.asarray(correlation * leader + np.sqrt(1 - correlation**2) * own)


def _look(measure: _Measure, score: Array) -> tuple[Any, Array]:
    """What is seen of a score, and what this adds to the log-odds."""
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
    """The measures of every modality, and the importance of the modalities."""
    rng = np.random.default_rng(_POPULATION)
    measures, own, shared = {}, {}, {}
    for name, modality in MODALITIES.items():
        size = len(modality.kinds)
        # Where a modality follows illness its measures point one way, elsewhere each its own way.
        sign = rng.choice([-1, 1], size) if not modality.illness else np.ones(size)
        loadings = sign * rng.uniform(*_LOADING, size)
        weights = -np.sign(modality.illness or 1) * sign * rng.uniform(0.2, 1, size)
        drawn = [(kind, *_draw(kind, rng)) for kind in rng.permutation(modality.kinds)]
        # A standardised effect and its score have the covariance `tie`, so two effects have about
        # the product of their ties and loadings. With it the variance of a contribution is known.
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


def _draw(kind: str, rng: np.random.Generator) -> tuple[Array, Array, float]:
    """How a measure is seen, its standardised effects, and their covariance with the score."""
    if kind == "number":
        mean = rng.uniform(20, 100)
        return np.array([mean, mean * rng.uniform(0.1, 0.3)]), np.ones(1), 1.0
    normal = NormalDist()
    if kind == "flag":
        passes, effects = np.array([normal.inv_cdf(rng.uniform(0.6, 0.94))]), np.arange(2.0)
    elif kind == "rating":
        passes, effects = rng.uniform(-0.3, 0.8) + np.linspace(-1.5, 1.5, 6), np.arange(7.0)
    else:
        levels = int(rng.integers(3, 6))
        passes = np.array([normal.inv_cdf(i / levels) for i in range(1, levels)])
        effects = rng.permutation(levels) * 1.0
    shares = np.diff([0, *map(normal.cdf, passes), 1])
    effects -= shares @ effects
    effects /= np.sqrt(shares @ effects**2)
    return passes, effects, float(effects @ np.diff([0, *(-normal.pdf(p) for p in passes), 0]))
