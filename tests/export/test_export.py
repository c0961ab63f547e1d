"""Fitted models as ONNX graphs, PyTorch modules and Keras models."""

import json

import keras
import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from promissing import (
    NanFusionClassifier,
    NanFusionRegressor,
    NanMLPClassifier,
    NanMLPRegressor,
    Pruner,
    TableEncoder,
)
from promissing.export import to_keras, to_onnx, to_torch
from promissing.export.onnx import MISSING_DATE
from promissing.networks.losses import Pinball
from promissing.uncertainty import ConformalClassifier

SHORT = {"n_members": 2, "max_iter": 4, "random_state": 0}
MODALITIES = {"left": ["a", "b", "seen"], "right": ["c", "d", "city", "smoker"]}


def table(n=500, seed=0):
    """Numbers, a category, a boolean and dates with missing values, and a noisy level."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    frame["d"] = np.exp(1.5 * frame["d"])
    frame["city"] = rng.choice(["Bonn", "Ulm", "Kiel"], n)
    frame["smoker"] = pd.array(rng.random(n) < 0.5, dtype="boolean")
    days = pd.to_timedelta(rng.integers(0, 900, n), "D")
    frame["seen"] = pd.Timestamp("2020-01-01") + days
    level = frame["a"] - frame["b"] + (frame["city"] == "Ulm") + 0.3 * rng.normal(size=n)
    return frame.mask(rng.random(frame.shape) < 0.2), level.to_numpy()


def hostile(n, model):
    """Complete, incomplete and empty rows, unknown categories and extreme numbers."""
    frame = table(n, seed=1)[0]
    rng = np.random.default_rng(2)
    frame = frame.mask(rng.random(frame.shape) < rng.random((n, 1)))
    frame.loc[:9] = frame.loc[:9].mask(np.ones((10, frame.shape[1]), bool))
    frame["city"] = frame["city"].where((rng.random(n) < 0.9) | frame["city"].isna(), "Rome")
    # Without bins, numbers are not clipped.
    far = 1e300 if model.n_bins else 1e9
    frame.loc[10:19, "d"] = [1e9, -1e9, far, -far, 1e-300, 0.0, -0.0, 300.0, 3e3, 1e2]
    return frame


def fits():
    frame, level = table()
    tail = 3 * frame["a"].fillna(0).to_numpy() + 2 * frame["d"].fillna(1).to_numpy()
    three = np.array(["low", "middle", "high"])[np.digitize(level, [-0.7, 0.7])]
    both, numbers = np.c_[level > 0, level > 1].astype(int), np.c_[level, 5 - 3 * level]
    median = Pinball(levels=(0.1, 0.4, 0.9))
    yield "two classes", NanMLPClassifier(**SHORT).fit(frame, level > 0)
    yield "text", NanMLPClassifier(**SHORT, activation="gelu").fit(frame, three)
    yield "labels", NanMLPClassifier(**SHORT, compensation="shared").fit(frame, both)
    yield "linear", NanMLPClassifier((), **SHORT, compensation="none").fit(frame, level > 0)
    yield "uncorrected", NanMLPClassifier(**SHORT, prior_correction=False).fit(frame, level > 0)
    yield "number", NanMLPRegressor(**SHORT, activation="silu").fit(frame, level)
    yield "numbers", NanMLPRegressor(**SHORT, loss="squared_error").fit(frame, numbers)
    yield "skip", NanMLPRegressor(**SHORT, activation="tanh").fit(frame, tail)
    yield "counts", NanMLPRegressor(**SHORT, loss="poisson").fit(frame, np.abs(level))
    yield "gaussian", NanMLPRegressor(**SHORT, loss="gaussian").fit(frame, numbers)
    yield "median", NanMLPRegressor(**SHORT, loss=median).fit(frame, level)
    fused = {**SHORT, "n_bins": 0}
    yield "fusion", NanFusionClassifier(MODALITIES, **fused).fit(frame, three)
    shared = {**fused, "compensation": "shared"}
    yield "fused pair", NanFusionClassifier(MODALITIES, **shared).fit(frame, level > 0)
    yield "fused number", NanFusionRegressor(MODALITIES, **SHORT).fit(frame, level)


NAMES = ["two classes", "text", "labels", "linear", "uncorrected", "number", "numbers", "skip"]
NAMES += ["counts", "gaussian", "median", "fusion", "fused pair", "fused number"]


@pytest.fixture(scope="module")
def models():
    found = dict(fits())
    assert list(found) == NAMES
    assert found["skip"]._network.linear_skip
    return found


def predicted(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def assert_close(found, model, X):
    """Probabilities within 1e-5, and numbers within 1e-5 of the spread of predictions."""
    expected = predicted(model, X)
    unit = 1.0 if hasattr(model, "classes_") else max(1.0, np.nanmax(np.abs(expected)))
    np.testing.assert_allclose(np.reshape(found, expected.shape), expected, atol=1e-5 * unit)


def feeds(X, model):
    """Return the inputs of a graph as its documentation describes them."""
    found = {}
    for name, kind in zip(X, model.encoder_.kinds_, strict=True):
        column = X[name]
        if kind in ("number", "boolean"):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        elif kind == "date":
            values = column.astype("datetime64[ns]").to_numpy().astype(np.int64)
        else:
            values = column.fillna("").to_numpy(dtype=object)
        found[name] = values[:, None]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_graph_predicts_like_the_model(models, name):
    model, X = models[name], hostile(10_000, models[name])
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    *label, found = session.run(None, feeds(X, model))
    assert_close(found, model, X)
    for one in label:
        assert (np.asarray(one) == model.predict(X)).mean() > 0.999  # But for ties.


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_module_predicts_like_the_model_and_learns(models, name):
    model, X = models[name], hostile(2000, models[name])
    x = torch.from_numpy(model.encoder_.transform(X))
    module = to_torch(model)
    assert_close(module(x).detach().numpy(), model, X)
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
    module.train()(x[64:128]).square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())
    before = [p.detach().clone() for p in module.parameters()]
    optimizer.step()
    assert any((p != q).any() for p, q in zip(module.parameters(), before, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_keras_model_predicts_like_the_model_and_learns(models, name, tmp_path):
    model, X = models[name], hostile(1000, models[name])
    x = model.encoder_.transform(X)
    network = to_keras(model)
    found = network.predict(x, verbose=0)
    assert_close(found, model, X)
    network.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras").predict(x, verbose=0)
    np.testing.assert_allclose(again, found, atol=1e-6)
    network.compile("sgd", "mse")
    network.fit(x[64:128], np.zeros_like(found[64:128]), epochs=1, verbose=0)
    assert all(np.isfinite(w).all() for w in network.get_weights())


def small(y=None, columns=None):
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[::5, 0] = np.nan
    frame = X if columns is None else pd.DataFrame(X, columns=columns)
    labels = X[:, 1] > 0 if y is None else y
    return NanMLPClassifier((4,), n_members=1, max_iter=2, random_state=0).fit(frame, labels), X


def test_a_graph_may_take_one_matrix(tmp_path):
    model, X = small()
    made = to_onnx(model, tmp_path / "model.onnx", matrix=True)
    assert onnx.load(tmp_path / "model.onnx") == made
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    label, proba = session.run(None, {"X": X})
    np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-6)
    assert label.tolist() == model.predict(X).astype(int).tolist()


@pytest.mark.parametrize("first", ["encoder", "pruner", "both"])
def test_a_pipeline_of_our_transformers_is_one_graph(first):
    frame, level = table(300)
    steps = {
        "encoder": [TableEncoder()],
        "pruner": [Pruner("feature", groups=[0, 1, 1, 2])],
        "both": [TableEncoder(n_bins=4), Pruner("shared")],
    }[first]
    X = frame[["a", "b", "c", "d"]] if first == "pruner" else frame
    network = NanMLPClassifier((8,), n_members=2, max_iter=3, random_state=0)
    model = make_pipeline(*steps, network).fit(X, level > 0)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    if first == "pruner":
        given = {name: X[[name]].to_numpy() for name in X}
    else:
        reader = NanMLPClassifier((4,), n_members=1, max_iter=1).fit(frame, level > 0)
        given = feeds(X, reader)
    found = session.run(["probabilities"], given)[0]
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-5)


def test_the_metadata_say_what_a_user_must_know():
    frame, level = table()
    model = NanMLPClassifier((4,), n_members=1, max_iter=2).fit(frame, level > 0)
    made = to_onnx(model)
    told = json.loads({p.key: p.value for p in made.metadata_props}["promissing"])
    assert told["columns"]["seen"] == "date"
    assert told["categories"] == {"city": ["Bonn", "Kiel", "Ulm"]}
    assert told["missing"]["date"] == MISSING_DATE
    assert told["classes"] == ["False", "True"]
    assert made.opset_import[0].version == 18


def test_numbers_as_categories_are_spelled_like_str_and_rare_ones_share_a_column():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"code": pd.Categorical(rng.integers(0, 9, 200)), "x": rng.normal(size=200)}
    )
    model = NanMLPClassifier((4,), n_members=1, max_iter=2, max_categories=5, random_state=0)
    model.fit(frame, rng.random(200) < 0.5)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    texts = frame["code"].astype(str).to_numpy(dtype=object)[:, None]
    found = session.run(["probabilities"], {"code": texts, "x": frame[["x"]].to_numpy()})[0]
    np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-6)


def test_what_cannot_be_exported_is_refused(tmp_path):
    model, X = small()
    for export in (to_onnx, to_torch, to_keras):
        with pytest.raises(ValueError, match="must be a NanMLP or NanFusion estimator"):
            export(HistGradientBoostingClassifier())
    with pytest.raises(ValueError, match="Export the last step of the pipeline"):
        to_torch(make_pipeline(StandardScaler(), model))
    with pytest.raises(ValueError, match="has a StandardScaler, and only TableEncoder and Pruner"):
        to_onnx(make_pipeline(StandardScaler(), model))
    with pytest.raises(ValueError, match="`opset` must be a whole number from 18"):
        to_onnx(model, opset=11)
    with pytest.raises(ValueError, match="suffix"):
        to_onnx(model, tmp_path / "model.txt")
    frame = pd.DataFrame({"ward": ["", "a"] * 40, "x": X[:, 1]})
    text = NanMLPClassifier((4,), n_members=1, max_iter=2).fit(frame, X[:, 1] > 0)
    with pytest.raises(ValueError, match="'ward' has a category with the empty text"):
        to_onnx(text)
    with pytest.raises(ValueError, match="`matrix=True` is for numbers, and column 'ward'"):
        to_onnx(text, matrix=True)


@pytest.mark.parametrize("export", [to_onnx, to_torch, to_keras])
def test_abstention_by_known_share_is_left_out_with_a_warning(export):
    model, _ = small()
    with pytest.warns(UserWarning, match=r"`min_known=0.5` is not exported"):
        export(model.set_params(min_known=0.5))


def test_a_calibration_is_left_out_with_a_warning():
    model, X = small()
    ConformalClassifier(model, prefit=True).conformalize(X, X[:, 1] > 0).store()
    with pytest.warns(UserWarning, match="Sets, intervals and abstention.* are left out"):
        made = to_onnx(model)
    told = json.loads({p.key: p.value for p in made.metadata_props}["promissing"])
    assert told["left_out"] == ["conformal"]
