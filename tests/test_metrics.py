"""Metrics of probabilities: calibration, abstention and the effect of missing values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.testing import assert_allclose

from promissing.metrics import (
    accuracy,
    accuracy_coverage,
    brier_score,
    by_share_missing,
    calibration_error,
    calibration_test,
    distance_from_prior,
    monotonicity,
)

MEASURES = [accuracy, brier_score, calibration_error]
grid = st.integers(0, 20).map(lambda twentieth: twentieth / 20)  # Many ties.
binary = st.lists(st.tuples(st.booleans(), grid), min_size=1, max_size=60)


def split(rows):
    y, p = zip(*rows, strict=True)
    return np.array(y, dtype=int), np.array(p)


def several(n=200, k=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, k, n), rng.dirichlet(np.ones(k), n)


# ---- distance from the prior


def test_distance_is_the_total_variation():
    _, p = several()
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    assert_allclose(distance_from_prior(p, prior), np.maximum(p - prior, 0).sum(axis=1))
    assert distance_from_prior(p.reshape(10, 20, 4), prior).shape == (10, 20)


@given(npst.arrays(float, (3, 5), elements=grid), grid)
def test_distance_with_two_classes_is_that_of_either(p, prior):
    both = distance_from_prior(np.stack([1 - p, p], axis=-1), [1 - prior, prior])
    assert_allclose(both, distance_from_prior(p, prior), atol=1e-12)
    assert_allclose(both, np.abs(p - prior), atol=1e-12)


def test_a_prior_that_does_not_fit():
    with pytest.raises(ValueError, match=r"of shape \(7,\). Received: shape \(2,\)"):
        distance_from_prior(np.zeros(7), [0.5, 0.5])


# ---- monotonicity


def test_monotonicity_is_that_of_the_mean():
    falling = monotonicity([[[3.0, 2.0, 1.0]], [[3.0, 3.5, 0.0]]])
    assert_allclose(falling.mean, [3, 2.75, 0.5])
    assert falling[1:] == (1.0, True, -0.25)
    rising = monotonicity([3.0, 1.0, 2.0, 2.0])
    assert rising.share == pytest.approx(1 / 3)
    assert not rising.always
    assert rising.worst == 1
    with pytest.raises(ValueError, match=r"`distance` must have two steps or more. .*\(3, 1\)"):
        monotonicity(np.zeros((3, 1)))


# ---- calibration


def by_bins(y, p, n_bins):
    """The definition where no probability occurs twice."""
    order = np.argsort(p)
    # The r-th of n rows, its middle at r + 1/2, is in bin floor((r + 1/2) B / n).
    bins = np.floor((np.arange(len(p)) + 0.5) * n_bins / len(p)).astype(int)
    error = 0.0
    for b in np.unique(bins):
        rows = order[bins == b]
        error += len(rows) / len(p) * abs(y[rows].mean() - p[rows].mean())
    return error


@pytest.mark.parametrize("n", [10, 15, 150, 152])
def test_calibration_error_by_bins_of_equally_many(n):
    rng = np.random.default_rng(n)
    p = rng.permutation(np.linspace(0.01, 0.99, n))
    y = (rng.random(n) < p**2).astype(int)
    assert calibration_error(y, p) == pytest.approx(by_bins(y, p, 15))
    assert calibration_error(y, p, n_bins=1) == pytest.approx(abs(y.mean() - p.mean()))


def test_bins_hold_equally_many():
    y, p = np.zeros(90), np.linspace(0, 1, 90)
    y[:6] = 1  # The first of 15 bins of six: all of its error is 1 - mean p.
    rest = p[6:].reshape(14, 6).mean(axis=1).sum()
    assert calibration_error(y, p) == pytest.approx((1 - p[:6].mean() + rest) / 15)


@given(binary, st.integers(1, 20), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows, n_bins, random):
    error = calibration_error(*split(rows), n_bins=n_bins)
    random.shuffle(rows)
    assert calibration_error(*split(rows), n_bins=n_bins) == pytest.approx(error, abs=1e-12)
    assert 0 <= error <= 1


@given(binary)
def test_predicting_the_prior_is_calibrated(rows):
    y, _ = split(rows)
    assert calibration_error(y, np.full(len(y), y.mean())) == pytest.approx(0, abs=1e-12)
    jitter = np.resize([0, 1e-15], len(y))  # Sums in another order.
    assert calibration_error(y, y.mean() + jitter * (y.mean() < 1)) == pytest.approx(0, abs=1e-12)


def test_calibration_error_of_several_classes_is_the_mean_of_each_against_the_rest():
    y, p = several()
    each = [calibration_error(y == k, p[:, k]) for k in range(4)]
    assert calibration_error(y, p) == pytest.approx(np.mean(each))


@pytest.mark.parametrize("k", [2, 4])
def test_simulated_errors_are_those_of_a_calibrated_model(k):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.r_[0.2, np.ones(k - 1)], 300)  # The first class is rare.
    errors = []
    for _ in range(300):
        y = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
        errors.append(calibration_error(y, p))
    found = calibration_test(y, p)
    assert found.error == errors[-1]
    assert found.median == pytest.approx(np.median(errors), rel=0.05)
    assert found.upper == pytest.approx(np.quantile(errors, 0.95), rel=0.1)
    assert found == calibration_test(y, p)


def test_a_calibrated_model_is_rarely_rejected():
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(200):
        p = rng.beta(1, 19, 400)
        p_values.append(calibration_test(rng.random(400) < p, p, n_simulations=200).p_value)
    assert 0.01 < np.mean(np.array(p_values) < 0.05) < 0.1


def test_a_rare_class_predicted_too_rarely_is_miscalibrated():
    rng = np.random.default_rng(0)
    y = rng.random(500) < 0.09
    found = calibration_test(y, np.full(500, 0.02))
    assert found.error > found.upper
    assert found.p_value < 0.01
    assert found.upper < 0.02
    with pytest.raises(ValueError, match="`n_simulations` must be a whole number >= 1"):
        calibration_test(y, np.full(500, 0.02), n_simulations=0)


# ---- Brier score and accuracy


@given(binary)
def test_brier_score_and_accuracy_of_two_classes(rows):
    y, p = split(rows)
    assert brier_score(y, p) == pytest.approx(((p - y) ** 2).mean())
    assert accuracy(y, p) == pytest.approx(((p > 0.5) == y).mean())


def test_brier_score_and_accuracy_of_several():
    y, p = several()
    assert brier_score(y, p) == pytest.approx(((p - np.eye(4)[y]) ** 2).sum() / 2 / len(y))
    assert brier_score([0, 1], [[0, 0, 1], [0, 0, 1]]) == 1  # Certain and wrong.
    assert accuracy(y, p) == (p.argmax(axis=1) == y).mean()


@pytest.mark.parametrize("measure", MEASURES)
def test_two_columns_are_equivalent_to_the_second(measure):
    rng = np.random.default_rng(0)
    p, y = rng.random(100), rng.integers(0, 2, 100)
    assert measure(y, np.column_stack([1 - p, p])) == pytest.approx(measure(y, p))


@pytest.mark.parametrize("measure", [*MEASURES, lambda *a, **k: accuracy_coverage(*a, **k).area])
def test_labels_in_the_order_of_the_classes(measure):
    y, p = several()
    labels = np.array(["d", "b", "a", "c"])
    assert measure(labels[y], p, classes=labels) == measure(y, p)
    assert measure([1, 0], [0.3, 0.4]) == measure([True, False], [0.3, 0.4])


@pytest.mark.parametrize("measure", [*MEASURES, lambda *a, **k: accuracy_coverage(*a, **k).area])
@pytest.mark.parametrize("dtype", [str, object])
def test_probabilities_of_the_positive_class(measure, dtype):
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 50), rng.random(50)
    labels = np.array(["healthy", "disease"], dtype=dtype)[y]
    assert measure(labels, p, positive="disease") == measure(y, p)
    assert measure(labels, 1 - p, positive="healthy") == pytest.approx(measure(y, p))
    both = {"classes": ["disease", "healthy"], "positive": "disease"}
    assert measure(labels, p, **both) == measure(y, p)
    assert measure(labels[y == 1], p[y == 1], positive="disease") == measure(y[y == 1], p[y == 1])
    with pytest.raises(ValueError, match=r"`positive` names the class of probabilities \(n,\)"):
        measure(labels, np.column_stack([1 - p, p]), positive="disease")
    with pytest.raises(ValueError, match="must be one of two classes, .* Received: 'flu'"):
        measure(labels, p, positive="flu")


# ---- accuracy against coverage


@given(binary)
def test_the_least_certain_abstain_first(rows):
    y, p = split(rows)
    result = accuracy_coverage(y, p)
    assert_allclose(result.coverage, np.arange(1, len(y) + 1) / len(y))
    assert result.accuracy[-1] == pytest.approx(accuracy(y, p))
    assert (np.diff(result.certainty) <= 0).all()
    assert result.area == pytest.approx(result.accuracy.mean())
    certain = np.round(np.maximum(p, 1 - p), 12)
    last = np.append(result.certainty[1:] != result.certainty[:-1], True)  # Of its certainty.
    for level, rate in zip(result.certainty[last], result.accuracy[last], strict=True):
        decided = certain >= level
        assert rate == pytest.approx(((p > 0.5) == y)[decided].mean())


def test_abstaining_raises_the_accuracy():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.random(2000) < p
    curve = accuracy_coverage(y, p)
    assert curve.accuracy[200] > 0.9 > curve.accuracy[-1]
    decided = np.where(p > 0.5, 0.9, 0.1)  # The same decisions, all equally certain.
    assert accuracy_coverage(y, decided).area == pytest.approx(accuracy(y, p))
    assert curve.area > accuracy(y, p) + 0.1


# ---- by share missing


def test_measures_by_share_missing():
    rng = np.random.default_rng(0)
    share = rng.choice([0, 0.1, 0.2, 0.5, 1.0], 500)
    p, y = rng.random(500), rng.integers(0, 2, 500)
    table = by_share_missing(y, p, share, 5, prior=0.5)
    assert table[["low", "high"]].to_numpy().tolist() == [
        [0, 0],  # Complete rows.
        [0, pytest.approx(0.2)],
        [pytest.approx(0.4), pytest.approx(0.6)],
        [pytest.approx(0.8), 1],
    ]
    rows = (share == 0.1) | (share == 0.2)
    line = table.iloc[1]
    assert line["n"] == rows.sum()
    assert line["share_missing"] == pytest.approx(share[rows].mean())
    for measure in MEASURES:
        assert line[measure.__name__] == pytest.approx(measure(y[rows], p[rows]))
    assert line["distance"] == pytest.approx(np.abs(p[rows] - 0.5).mean())
    assert table["n"].sum() == 500


def test_bins_by_their_edges_hold_the_upper_one():
    share = np.array([0, 3, 6, 7]) / 10
    table = by_share_missing([0, 1, 0, 1], [0.5] * 4, share, [0, 0.3, 0.6])
    assert table["n"].tolist() == [1, 1, 1]  # The last row is beyond all bins.
    assert by_share_missing([0, 1], [0.5] * 2, [0.3, 0.6], np.linspace(0, 1, 11))[
        "high"
    ].tolist() == pytest.approx([0.3, 0.6])


def test_several_classes_and_labels_by_share_missing():
    y, p = several()
    labels = np.array(list("wxyz"))
    share = np.resize([0, 0.5], len(y))
    table = by_share_missing(labels[y], p, share, classes=labels, prior=np.full(4, 0.25))
    assert table["brier_score"][0] == pytest.approx(brier_score(y[::2], p[::2]))
    assert_allclose(table["distance"][1], distance_from_prior(p[1::2], np.full(4, 0.25)).mean())


# ---- bad input


@pytest.mark.parametrize("measure", [*MEASURES, accuracy_coverage])
@pytest.mark.parametrize(
    ("y", "p", "how", "message"),
    [
        ([0, 1], [0.5], {}, r"one class for each of the 1 rows .*shapes \(2,\), \(2,\)"),
        ([0, 1], [0.5, 1.5], {}, "`proba` must hold probabilities: numbers between 0 and 1"),
        ([0, 1], [0.5, np.nan], {}, "`proba` must hold probabilities"),
        ([], [], {}, r"at least one row. Received: shape \(0,\)"),
        ([0, 1], [[[0.5]]], {}, r"or \(n, K\) of all.*Received: shape \(1, 1, 1\)"),
        (["no", "yes"], [0.5, 0.5], {}, "`y` holds 'no', which is not one of the classes"),
        (
            np.array(["no", "yes"], dtype=object),
            [0.5, 0.5],
            {},
            "`y` holds 'no', which is not one of the classes",
        ),
        ([0, 2], [0.5, 0.5], {}, r"holds 2, .*\[0, 1\]. .*`classes=model.classes_`"),
        ([0, 1], [0.5, 0.5], {"classes": [0, 1, 2]}, "`classes` one label for each of its 2"),
    ],
)
def test_bad_truth_and_bad_probabilities(measure, y, p, how, message):
    with pytest.raises(ValueError, match=message):
        measure(y, p, **how)


def test_bad_bins_and_shares():
    with pytest.raises(ValueError, match="`n_bins` must be a whole number >= 1. Received: 0"):
        calibration_error([0], [0.5], n_bins=0)
    for bins in (0, [0.1, 1], [0, 0.5, 0.5], []):
        with pytest.raises(ValueError, match="`bins` must be a number of bins or rising edges"):
            by_share_missing([0], [0.5], [0], bins)
    for share in ([2.0], [np.nan], [0, 1]):
        with pytest.raises(ValueError, match="a share between 0 and 1 for each of the 1 rows"):
            by_share_missing([0], [0.5], share)
