"""Trajectories of predictions as information is lost."""

import numpy as np
import pandas as pd
import pytest
from masked_models import GROUPS, NAN, Network, columns_of, numbers, without
from numpy.testing import assert_allclose, assert_array_equal

from promissing import metrics
from promissing.inspection import information_loss


def test_trajectories_lead_from_all_to_nothing():
    model, x = Network(), numbers(4, gaps=0.2)
    result = information_loss(model, x, GROUPS, orders=7, random_state=0)
    assert result.predictions.shape == (7, 4, 4)
    assert_array_equal(np.sort(result.orders, axis=1), np.tile(np.arange(3), (7, 1)))
    for order, path in zip(result.orders, result.predictions, strict=True):
        for step in range(4):
            names = [result.groups[g] for g in order[:step]]
            p = model.predict_proba(without(x, columns_of(GROUPS, names)))[:, 1]
            assert_allclose(path[:, step], p, atol=1e-15)
    assert_allclose(result.mean, result.predictions.mean(axis=0))
    assert_allclose(result.spread, result.predictions.std(axis=0))
    assert_allclose(result.spread[:, [0, 3]], 0, atol=1e-15)


def test_the_same_seed_gives_the_same_orders_for_every_model():
    first = information_loss(Network(6), numbers(2, 6), orders=5, random_state=3)
    second = information_loss(Network(6, 1), numbers(9, 6, seed=1), orders=5, random_state=3)
    assert_array_equal(first.orders, second.orders)


def test_each_set_of_unknowns_is_asked_for_once():
    model, x = Network(), numbers(2)
    x[1, 3] = NAN
    information_loss(model, x, orders=200, random_state=0)
    assert len(model.asked[-1]) == 2**4 + 2**3


def test_the_share_missing_counts_what_was_unknown_before():
    x = numbers(2)
    x[1, 2] = NAN
    result = information_loss(Network(), x, GROUPS, orders=3, random_state=0)
    share = result.share_missing
    assert share.shape == (3, 2, 4)
    assert_allclose(share[:, 0], np.tile([0, 1 / 3, 2 / 3, 1], (3, 1)))
    for order, path in zip(result.orders, share[:, 1], strict=True):
        gone = [{1, *order[:step]} for step in range(4)]
        assert_allclose(path, [len(lost) / 3 for lost in gone])


def test_measures_of_knowing_by_step():
    model, x, y = Network(), numbers(30), np.array(["a", "b"] * 15)
    result = information_loss(model, x, orders=4, prior=[0.4, 0.6], random_state=0)
    assert result.prior == 0.6
    assert_allclose(result.distance, np.abs(result.predictions - 0.6))
    assert_allclose(result.monotonicity.mean, result.distance.mean(axis=(0, 1)))
    table = result.measures(y)
    assert table.index.name == "step"
    assert_allclose(table["prediction"], result.predictions.mean(axis=(0, 1)))
    assert_allclose(table["distance"], result.distance.mean(axis=(0, 1)))
    p, truth = result.predictions[:, :, 2].ravel(), np.tile(y == "b", 4)
    assert table["brier_score"][2] == pytest.approx(((p - truth) ** 2).mean())
    assert table["calibration_error"][2] == pytest.approx(metrics.calibration_error(truth, p))
    assert table["accuracy"][2] == pytest.approx(((p > 0.5) == truth).mean())
    with pytest.raises(ValueError, match="`y` must have one class for each of the 30 rows"):
        result.measures(y[:5])
    other = information_loss(model, x, orders=4, positive="a", random_state=0)
    same = other.measures(y)[["brier_score", "accuracy"]]
    assert_allclose(same, table[["brier_score", "accuracy"]])


def test_trajectories_of_several_classes_and_of_regressors():
    model, x = Network(n_outputs=3), numbers(5)
    result = information_loss(model, x, orders=2, prior=[0.2, 0.3, 0.5], random_state=0)
    assert result.predictions.shape == (2, 5, 5, 3)
    assert_allclose(result.predictions.sum(axis=-1), 1)
    assert result.distance.shape == (2, 5, 5)
    table = result.measures(["a", "b", "c", "a", "b"])
    assert table.columns.tolist() == ["distance", "brier_score", "calibration_error", "accuracy"]
    assert result.to_frame().columns.tolist()[-3:] == ["a", "b", "c"]
    one = information_loss(model, x, orders=2, prior=[0.2, 0.3, 0.5], target="c", random_state=0)
    assert_allclose(one.predictions, result.predictions[..., 2])
    assert one.prior == 0.5

    regressor = Network(n_outputs=1)
    result = information_loss(regressor, x, orders=2, prior=1.5, random_state=0)
    assert_allclose(result.predictions[0, :, 0], regressor.predict(x)[:, 0])
    assert_allclose(result.distance, np.abs(result.predictions - 1.5))
    with pytest.raises(ValueError, match="a regressor gives none"):
        result.measures([1, 2, 3, 4, 5])


def test_trajectories_as_a_frame():
    x = pd.DataFrame(numbers(2), index=["p", "q"])
    result = information_loss(Network(), x, GROUPS, orders=3, random_state=0)
    table = result.to_frame()
    assert table.columns.tolist() == ["order", "row", "step", "lost", "class", "prediction"]
    line = table.query("order == 2 and row == 'q' and step == 1")
    assert line["lost"].item() == result.groups[result.orders[2, 0]]
    assert line["prediction"].item() == result.predictions[2, 1, 1]
    assert table.query("step == 0")["lost"].isna().all()


def test_without_a_prior_there_is_no_distance():
    result = information_loss(Network(), numbers(2), orders=2, random_state=0)
    assert result.prior is None
    assert "distance" not in result.measures()
    with pytest.raises(ValueError, match=r"`information_loss\(..., prior=...\)`: the class"):
        result.distance  # noqa: B018
    with pytest.raises(ValueError, match="`prior` must have one number for each of the 2 outputs"):
        information_loss(Network(), numbers(2), prior=[0.1, 0.2, 0.7])
