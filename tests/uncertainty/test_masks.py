"""Masks of calibration rows, and their neighbours."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from promissing.uncertainty.masks import MaskBank, draw_masks, feature_weights, row_uniforms


def bank(n=60, m=5, p=7, seed=0):
    rng = np.random.default_rng(seed)
    masks = rng.random((n, m, p)) < rng.random((n, m, 1))
    weights = rng.random(p)
    zeros = np.zeros(n, np.intp)
    return MaskBank(masks, rng.normal(size=(n, m)), zeros, zeros, weights / weights.sum())


def test_the_nearest_rows_are_those_of_a_literal_search():
    b = bank()
    new = np.random.default_rng(1).random((20, 7)) < 0.4
    rows, scores = b.nearest(new, 10)
    for i, mask in enumerate(new):
        distances = ((b.masks != mask) * b.weights).sum(axis=2)
        assert len(set(rows[i])) == 10  # Each calibration row counts once.
        farthest = np.sort(distances.min(axis=1))[9]
        assert (distances[rows[i]].min(axis=1) <= farthest + 1e-5).all()
        best = distances[rows[i]].argmin(axis=1)
        assert_allclose(scores[i], b.scores[rows[i], best])


def test_neighbours_do_not_depend_on_the_other_masks():
    b = bank(200, 16, 12)
    new = np.random.default_rng(1).random((500, 12)) < 0.5
    rows, scores = b.nearest(new, 30)
    for i in (0, 17, 499):
        alone = b.nearest(new[[i]], 30)
        assert_array_equal(alone[0][0], rows[i])
        assert_array_equal(alone[1][0], scores[i])


def test_neighbours_are_chosen_among_the_given_rows():
    b = bank()
    rows, scores = b.nearest(b.masks[:3, 0], 100, rows=np.array([4, 8, 15]))
    assert [set(row) for row in rows] == [{4, 8, 15}] * 3
    assert scores.shape == (3, 3)


def test_masks_have_all_shares_of_missing_values():
    masks = draw_masks(500, 10, 16, patterns=None, rng=np.random.default_rng(0))
    assert not masks[:, 0].any()
    shares = masks[:, 1:].mean(axis=(0, 2))
    assert_allclose(shares, (np.arange(15) + 0.5) / 15, atol=0.03)


def test_features_that_change_predictions_weigh_more():
    rng = np.random.default_rng(0)
    masks = rng.random((2000, 3)) < 0.5
    weights = feature_weights(masks, masks @ [3.0, 1.0, 0.0])
    assert_allclose(weights, 0.9 * np.array([0.75, 0.25, 0]) + 0.1 / 3, atol=0.01)
    assert_allclose(feature_weights(masks, np.zeros(2000)), np.full(3, 1 / 3))


def test_the_number_of_a_row_depends_on_its_values_and_the_seed_alone():
    x = np.random.default_rng(0).normal(size=(2000, 3))
    x[::3, 1] = np.nan
    u = row_uniforms(x, seed=0)
    assert_array_equal(row_uniforms(x[::-1], seed=0), u[::-1])
    assert_array_equal(row_uniforms(x + 0.0, seed=0), u)
    assert (row_uniforms(x, seed=1) != u).all()
    assert_array_equal(row_uniforms(np.array([[0.0]]), 0), row_uniforms(np.array([[-0.0]]), 0))
    assert np.histogram(u, 10, (0, 1))[0].min() > 150
    assert u.mean() == pytest.approx(0.5, abs=0.02)
