"""The generated tables: the cohort has the shape of the paper's, and its true model holds."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from promissing.datasets import generated as module
from promissing.datasets import make_cohort, make_xor

# Measures, and percent of missing cells and of patients with gaps, from the paper's table.
PAPER = {
    "demographics": (20, 16, 61),
    "diagnosis": (6, 6, 9),
    "lifestyle": (7, 21, 85),
    "somatic": (11, 13, 19),
    "treatment": (1, 14, 14),
    "comorbidity": (67, 8, 9),
    "cytokines": (34, 20, 20),
    "symptoms": (30, 8, 8),
    "functioning": (5, 11, 12),
    "severity": (1, 9, 9),
    "depression": (9, 11, 11),
    "wellbeing": (20, 16, 16),
}
seeds = pytest.mark.parametrize("seed", [0, 1, 2])


@pytest.fixture(scope="module")
def cohort():
    return make_cohort()


@pytest.fixture(scope="module")
def many():
    return make_cohort(20_000, random_state=1)


def lacking(cohort):
    """Who lacks a whole modality."""
    return np.any([cohort.X[c].isna().all(axis=1) for c in cohort.modalities.values()], axis=0)


def without_gaps(cohort):
    """The paper's feature removal: those who have all modalities, and the columns without gaps."""
    rows = cohort.X[~lacking(cohort)]
    return rows.loc[:, rows.notna().all()], cohort.y[rows.index]


# ---- the shape


@seeds
def test_modalities_and_their_gaps_are_the_papers(seed):
    cohort = make_cohort(random_state=seed)
    assert {name: len(columns) for name, columns in cohort.modalities.items()} == {
        name: size for name, (size, *_) in PAPER.items()
    }
    assert [c for columns in cohort.modalities.values() for c in columns] == list(cohort.X)
    assert cohort.X.shape == (376, 211)
    for name, (_, cells, rows) in PAPER.items():
        gaps = cohort.X[cohort.modalities[name]].isna().to_numpy()
        assert gaps.mean() * 100 == pytest.approx(cells, abs=2), name
        assert gaps.any(axis=1).mean() * 100 == pytest.approx(rows, abs=1), name
    assert 12 < cohort.X.isna().to_numpy().mean() * 100 < 13


@seeds
def test_17_patients_are_complete_and_67_lack_whole_modalities(seed):
    cohort = make_cohort(random_state=seed)
    assert cohort.X.notna().all(axis=1).sum() == 17
    assert lacking(cohort).sum() == 67


@seeds
def test_whole_modalities_are_missing_together(seed):
    cohort = make_cohort(random_state=seed)
    gone = sum(cohort.X[c].isna().all(axis=1).astype(int) for c in cohort.modalities.values())
    assert 5 < gone[gone > 0].mean() < 8
    assert gone.max() < 12


@seeds
def test_feature_removal_loses_78_percent_of_the_columns_and_two_modalities(seed):
    cohort = make_cohort(random_state=seed)
    left, y = without_gaps(cohort)
    assert len(left) == len(y) == 309
    assert 1 - left.shape[1] / 211 == pytest.approx(0.78, abs=0.02)
    lost = [name for name, c in cohort.modalities.items() if not set(c) & set(left)]
    assert lost == ["demographics", "lifestyle"]


def test_two_thirds_remit(cohort, many):
    assert cohort.y.mean() == pytest.approx(0.67, abs=0.01)
    assert many.truth.probability.mean() == pytest.approx(0.67, abs=0.005)
    assert set(cohort.y) == {0, 1}


def test_measures_are_of_every_kind_and_keep_it_with_gaps(cohort):
    kinds = cohort.X.dtypes.astype(str).value_counts()
    assert kinds.to_dict() == {"float64": 119, "boolean": 82, "category": 10}
    assert cohort.complete.dtypes.tolist() == cohort.X.dtypes.tolist()
    ratings = cohort.complete[cohort.modalities["symptoms"]]
    assert set(np.unique(ratings)) <= set(range(1, 8))
    categories = cohort.complete.select_dtypes("category")
    assert all(3 <= categories[c].nunique() <= 5 for c in categories)
    flags = cohort.complete.select_dtypes("boolean").mean()
    assert flags.between(0.02, 0.5).all()


def test_the_complete_table_differs_in_gaps_only(cohort):
    assert cohort.complete.notna().all(axis=None)
    for column in cohort.X:
        there = cohort.X[column].notna()
        assert_array_equal(cohort.X[column][there], cohort.complete[column][there])


# ---- any number of patients, by seed


def test_20_000_patients_are_of_the_same_shape(many):
    assert many.X.notna().all(axis=1).mean() == pytest.approx(17 / 376, abs=1e-4)
    assert lacking(many).mean() == pytest.approx(67 / 376, abs=1e-4)
    assert many.X.isna().to_numpy().mean() == pytest.approx(0.125, abs=0.005)
    assert without_gaps(many)[0].shape[1] == 46


@pytest.mark.parametrize("n", [1, 2, 5, 10, 50])
def test_few_patients_will_do(n):
    cohort = make_cohort(n, random_state=0)
    assert cohort.X.shape == (n, 211)
    assert cohort.X.isna().to_numpy().mean() < 0.5


def test_a_seed_repeats_the_patients_and_another_gives_new_ones(cohort):
    again = make_cohort(random_state=module.SEED)
    pd.testing.assert_frame_equal(again.X, cohort.X)
    pd.testing.assert_series_equal(again.y, cohort.y)
    pd.testing.assert_series_equal(again.truth.probability, cohort.truth.probability)
    other = make_cohort(random_state=module.SEED + 1)
    assert (other.complete["treatment_1"] != cohort.complete["treatment_1"]).all()
    fresh = [make_cohort(3, random_state=None).complete["treatment_1"] for _ in range(2)]
    assert (fresh[0] != fresh[1]).all()
    rng = np.random.default_rng(5)
    assert make_cohort(3, random_state=rng).y.size == 3


@pytest.mark.parametrize("n", [1.5, True, "all"])
def test_the_number_of_patients_is_a_whole_number(n):
    with pytest.raises(ValueError, match="`n_patients` must be a whole number. Received: "):
        make_cohort(n)


def test_there_is_at_least_one_patient():
    with pytest.raises(ValueError, match="`n_patients` must be at least 1. Received: 0"):
        make_cohort(0)


# ---- the truth


def test_contributions_sum_up_to_the_log_odds(many):
    truth = many.truth
    log_odds = truth.intercept + truth.contributions.sum(axis=1)
    assert_allclose(truth.probability, 1 / (1 + np.exp(-log_odds)))
    assert list(truth.contributions) == list(truth.importance.index) == list(PAPER)


def test_remission_is_drawn_from_the_probability(many):
    """In every tenth of the patients as many remit as should, to three standard errors."""
    tenth = pd.qcut(many.truth.probability, 10, labels=False)
    off = (many.y - many.truth.probability).groupby(tenth).mean()
    assert off.abs().max() < 3 * 0.5 / np.sqrt(2000)


def test_importance_is_the_part_in_the_variance_of_the_log_odds(many):
    parts, total = many.truth.contributions, many.truth.contributions.sum(axis=1)
    shares = parts.apply(lambda part: part.cov(total)) / total.var()
    assert_allclose(many.truth.importance, shares, atol=0.012)
    assert many.truth.importance.sum() == pytest.approx(1)


def test_some_modalities_matter_much_and_some_do_not_matter(cohort):
    order = cohort.truth.importance.sort_values(ascending=False)
    assert list(order.index[:3]) == ["demographics", "lifestyle", "symptoms"]
    assert cohort.truth.importance[["somatic", "cytokines"]].tolist() == [0, 0]
    assert (cohort.truth.contributions[["somatic", "cytokines"]] == 0).all(axis=None)


def test_a_modality_tells_as_much_as_it_is_important(many):
    """A linear model on one modality of many complete patients; cytokines tell nothing."""
    scores = {}
    for name in ("demographics", "lifestyle", "symptoms", "cytokines"):
        X = encoded(many.complete[many.modalities[name]])
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[::2], many.y[::2])
        scores[name] = roc_auc_score(many.y[1::2], model.predict_proba(X[1::2])[:, 1])
    assert scores["demographics"] > scores["lifestyle"] > scores["symptoms"] > 0.55
    assert scores["cytokines"] == pytest.approx(0.5, abs=0.02)


def test_illness_shows_in_symptoms_and_the_other_way_round_in_wellbeing(many):
    mean = {m: many.complete[many.modalities[m]].mean(axis=1) for m in ("symptoms", "wellbeing")}
    assert mean["symptoms"].corr(many.complete["severity_1"]) > 0.2
    assert mean["symptoms"].corr(mean["wellbeing"]) < -0.1
    assert mean["symptoms"].corr(many.truth.probability) < -0.2


def test_gaps_say_nothing_about_values_or_remission(many):
    gaps = many.X.isna().to_numpy(float)
    gaps = gaps[:, gaps.any(axis=0)]
    for value in (many.y, many.truth.probability, many.complete["severity_1"]):
        z = (value - value.mean()) / value.std()
        r = (gaps - gaps.mean(axis=0)).T @ z.to_numpy() / len(z) / gaps.std(axis=0)
        assert np.abs(r).max() < 4.5 / np.sqrt(len(z))


# ---- the signal


def encoded(X):
    """Flags and categories as 0 and 1, a missing category missing in all its columns."""
    text = X.select_dtypes("category")
    columns = [X.drop(columns=list(text)).astype(float)]
    for name in text:
        dummies = pd.get_dummies(text[name], prefix=name, dtype=float)
        columns.append(dummies.mask(text[name].isna()))
    return pd.concat(columns, axis=1).to_numpy()


def model():
    return make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(C=0.1, max_iter=500))


def auc(X, y):
    folds = StratifiedKFold(n_splits=10, shuffle=True, random_state=0)
    return cross_val_score(model(), encoded(X), y, cv=folds, scoring="roc_auc").mean()


def test_models_score_as_in_the_paper_and_worse_without_the_columns_with_gaps(cohort):
    everything, left = auc(cohort.X, cohort.y), auc(*without_gaps(cohort))
    assert everything == pytest.approx(0.67, abs=0.03)
    assert left == pytest.approx(0.61, abs=0.03)
    assert everything - left > 0.04


def test_so_do_they_on_average_over_cohorts(many):
    """Fitted on 338 patients, as in one of ten folds, and judged on 20,000 others."""
    scores, encoded_many = [], encoded(many.X)
    for seed in range(6):
        cohort = make_cohort(338, random_state=seed)
        left, y = without_gaps(cohort)
        there = many.X[left.columns].notna().all(axis=1)
        fitted = model().fit(encoded(cohort.X), cohort.y), model().fit(encoded(left), y)
        scores.append(
            [
                roc_auc_score(many.y, fitted[0].decision_function(encoded_many)),
                roc_auc_score(
                    many.y[there],
                    fitted[1].decision_function(encoded(many.X.loc[there, left.columns])),
                ),
            ]
        )
    assert_allclose(np.mean(scores, axis=0), [0.67, 0.61], atol=0.02)


def test_no_model_can_know_more_than_the_truth(many):
    best = roc_auc_score(many.y, many.truth.probability)
    fitted = model().fit(encoded(many.complete[::2]), many.y[::2])
    known = roc_auc_score(many.y[1::2], fitted.decision_function(encoded(many.complete[1::2])))
    assert best == pytest.approx(0.78, abs=0.015)
    assert best - 0.02 < known < best + 0.01


# ---- the XOR problem


def test_every_corner_has_its_share_of_the_points():
    X, y = make_xor(1002, noise=0, random_state=0)
    corners, counts = np.unique(X, axis=0, return_counts=True)
    assert corners.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert sorted(counts) == [250, 250, 251, 251]
    assert_array_equal(y, X[:, 0] != X[:, 1])


def test_noise_is_a_standard_deviation_and_leaves_the_label_alone():
    X, y = make_xor(40_000, noise=0.25, random_state=1)
    corner = make_xor(40_000, noise=0, random_state=1)[0]
    assert_allclose((X - corner).std(axis=0), 0.25, atol=0.003)
    assert_array_equal(y, corner[:, 0] != corner[:, 1])
    assert 0.02 < (y != ((X[:, 0] > 0.5) != (X[:, 1] > 0.5))).mean() < 0.06


def test_points_stand_in_random_order_and_a_seed_repeats_them():
    X, y = make_xor(random_state=3)
    assert (X.shape, y.shape, y.dtype.kind) == ((1000, 2), (1000,), "i")
    assert 200 < y[:500].sum() < 300
    assert_array_equal(X, make_xor(random_state=3)[0])
    assert (make_xor()[0] != make_xor()[0]).all()
    rng = np.random.default_rng(3)
    assert_array_equal(X, make_xor(random_state=rng)[0])
    assert (make_xor(random_state=rng)[0] != X).all()


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "many"])
def test_n_must_be_a_whole_number(n):
    with pytest.raises(ValueError, match="`n` must be a whole number of at least 1. Received: "):
        make_xor(n)


def test_noise_cannot_be_negative():
    with pytest.raises(ValueError, match="`noise` must be a number of at least 0. Received: -1"):
        make_xor(noise=-1)


# ---- the module
