import json
import pickle
import struct

import numpy as np
import pandas as pd
import pytest
from plain import classifier, regressor
from safetensors import safe_open
from safetensors.numpy import save_file

import promissing
from promissing import NanMLPClassifier, NanMLPRegressor


def frame(n=60):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=n), "c": rng.choice(["a", "b"], n), "i": range(n)})
    return X.mask(rng.random(X.shape) < 0.2)


TARGETS = {
    "text": np.array(["no", "yes"])[np.arange(60) % 2],
    "objects": np.array(["no", "yes", "maybe"], dtype=object)[np.arange(60) % 3],
    "integers": np.arange(60) % 3 + 5,
    "booleans": np.arange(60) % 2 == 0,
    "floats": (np.arange(60) % 2).astype(float),
    "labels": np.stack([np.arange(60) % 2, np.arange(60) % 3 == 0], axis=1).astype(int),
}


def test_a_model_that_was_read_goes_on_from_its_prior(tmp_path):
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    model = NanMLPClassifier((4,), max_iter=2, n_members=1, random_state=0).fit(X, y)
    model.missing_values_ = ("-999",)
    model.save(tmp_path / "m.safetensors")
    read = promissing.load(tmp_path / "m.safetensors")
    assert read.missing_values_ == ("-999",)
    for one in (model, read):
        one.partial_fit(X[:5], np.ones(5, int))
        np.testing.assert_allclose(one.prior_, [10 / 25, 15 / 25])


def test_a_class_that_could_not_be_read_is_not_saved(tmp_path):
    class Mine(NanMLPClassifier):
        pass

    model = Mine((4,), max_iter=2, n_members=1).fit(np.arange(20.0)[:, None], np.arange(20) % 2)
    with pytest.raises(ValueError, match="A Mine cannot be saved"):
        model.save(tmp_path / "m.safetensors")


@pytest.mark.parametrize("target", TARGETS)
def test_a_classifier_comes_back_as_it_was(target, tmp_path):
    X = frame()
    keywords = {"class_weight": {5: 2.0, 6: 1, 7: 1}} if target == "integers" else {}
    model = classifier((4, 3), n_members=2, max_iter=3, kinds={"i": "category"}, **keywords)
    model.fit(X, TARGETS[target])
    model.save(tmp_path / "m.safetensors")
    again = promissing.load(tmp_path / "m.safetensors")
    assert type(again) is NanMLPClassifier
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.predict(X).dtype == model.predict(X).dtype
    assert again.loss_curve_ == model.loss_curve_
    np.testing.assert_array_equal(again.prior_, model.prior_)


@pytest.mark.parametrize("columns", [1, 2])
def test_a_regressor_comes_back_as_it_was_and_goes_on_learning(columns, tmp_path):
    X = frame()
    y = np.random.default_rng(0).normal(100, 30, (60, columns))
    y = y[:, 0] if columns == 1 else y
    model = regressor(4, max_iter=3, random_state=1).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    again = NanMLPRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    again.partial_fit(X, y)
    assert not np.allclose(again.predict(X), model.predict(X))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    classifier(4, max_iter=2, random_state=0).fit(frame(), TARGETS["text"]).save(path)
    return path


def rewrite(file, path, change):
    with safe_open(file, framework="numpy") as f:
        tensors = {name: f.get_tensor(name) for name in f.keys()}  # noqa: SIM118
        document = json.loads(f.metadata()["promissing"])
    change(document, tensors)
    save_file(tensors, path, {"promissing": json.dumps(document)})


class Bomb:
    def __reduce__(self):
        return (print, ("executed",))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f, p: p.write_bytes(f.read_bytes()[:-100]), "is not a model file, or is damaged"),
        (lambda f, p: p.write_bytes(f.read_bytes()[:40]), "is not a model file, or is damaged"),
        (lambda f, p: p.write_bytes(b""), "is not a model file, or is damaged"),
        (lambda f, p: p.write_bytes(b"PK\x03\x04" + bytes(99)), "is not a model file"),
        (lambda f, p: p.write_bytes(pickle.dumps(Bomb())), "is not a model file, or is damaged"),
        (lambda f, p: p.write_bytes(struct.pack("<Q", 2**60) + b"{}"), "is not a model file"),
        (lambda f, p: save_file({"a": np.ones(2)}, p), "but not one that promissing wrote"),
        (
            lambda f, p: save_file({"a": np.ones(2)}, p, {"promissing": "{"}),
            "its description cannot be read",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: d.update(format=99, version="9.0")),
            r"written by promissing 9.0 in format 99.*reads up to 2. Upgrade",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: d.update({"class": "os.system"})),
            "an unknown kind of model: 'os.system'",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: t.pop("params.bias_0")),
            "its parts do not fit together",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: t.update({"params.bias_0": np.ones((1, 9))})),
            "its parts do not fit together.*'bias_0' have the shape",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: d["network"].update(hidden=[10**9, 10**9])),
            "its parts do not fit together",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: t.update({"params.more": np.ones((1, 9))})),
            "its parts do not fit together",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: d["encoder"].update(kinds=["zzz"] * 3)),
            "its parts do not fit together",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: d["params"].update(min_known="x")),
            "its parts do not fit together",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: d["target"].update(labels=["yes", "no"])),
            "its parts do not fit together",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: d.update(format=float("inf"))),
            "its description cannot be read",
        ),
        (
            lambda f, p: save_file({"a": np.ones(2)}, p, {"promissing": "[" * 100_000}),
            "its description cannot be read",
        ),
        (
            lambda f, p: rewrite(f, p, lambda d, t: d["params"].update(nonsense=1)),
            "its parts do not fit together",
        ),
    ],
)
def test_bad_files_get_one_clear_line_and_nothing_is_executed(
    make, message, file, tmp_path, capsys
):
    path = tmp_path / "bad.safetensors"
    make(file, path)
    with pytest.raises(ValueError, match=message) as error:
        promissing.load(path)
    assert "\n" not in str(error.value)
    assert "executed" not in capsys.readouterr().out


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        promissing.load(tmp_path / "none")


def test_another_class_is_refused(file):
    with pytest.raises(ValueError, match="holds a NanMLPClassifier, not a NanMLPRegressor"):
        NanMLPRegressor.load(file)


def test_a_failed_save_leaves_the_old_file_and_no_other(file, tmp_path, monkeypatch):
    from promissing import persist

    path = tmp_path / "m.safetensors"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(persist, "save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        promissing.load(file).save(path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]


def test_what_json_cannot_hold_is_refused_by_name(tmp_path):
    model = classifier(4, max_iter=2).fit(frame(), TARGETS["text"])
    model.kinds = {"x": object()}
    with pytest.raises(ValueError, match="`kinds` cannot be saved"):
        model.save(tmp_path / "m.safetensors")
