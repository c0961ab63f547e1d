import copy
import json
import os
import pickle
import random
import stat
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plain import classifier, regressor
from safetensors import safe_open
from safetensors.numpy import save_file

import promissing
from promissing import NanMLPClassifier, NanMLPRegressor

# Files that earlier versions wrote, and what these models predicted then.
from promissing.estimators import persistence as persist

MODELS = Path(__file__).parents[1] / "data" / "models"
EXPECTED = json.loads((MODELS / "expected.json").read_text())
ROWS = pd.DataFrame(EXPECTED["rows"], columns=EXPECTED["columns"])


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


def parts(file):
    with safe_open(file, framework="numpy") as f:
        tensors = {name: f.get_tensor(name) for name in f.keys()}  # noqa: SIM118
        return json.loads(f.metadata()["promissing"]), tensors


def rewrite(file, path, change, seal=True):
    """Change a file, and make its digest that of the changed contents."""
    document, tensors = parts(file)
    change(document, tensors)
    metadata = {"promissing": json.dumps(document)}
    if seal and document.get("format") != 2:
        metadata["sha256"] = persist._digest(metadata, tensors)
    save_file(tensors, path, metadata)


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
            r"written by promissing 9.0 in format 99.*reads up to 4. Upgrade",
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


@pytest.mark.parametrize("name", EXPECTED["predictions"])
def test_files_of_earlier_formats_load_with_a_warning_and_predict_as_they_did(name, tmp_path):
    with pytest.warns(UserWarning, match=r"in format [12], .* integrity cannot be checked") as said:
        model = promissing.load(MODELS / f"{name}.safetensors")
    assert said[0].filename == __file__
    model.save(tmp_path / "m.safetensors")
    for one in (model, promissing.load(tmp_path / "m.safetensors")):
        found = predictions(one)
        np.testing.assert_allclose(found, EXPECTED["predictions"][name], rtol=1e-12)


def predictions(model):
    return model.predict_proba(ROWS) if hasattr(model, "classes_") else model.predict(ROWS)


@pytest.mark.filterwarnings("ignore:.*integrity cannot be checked")
def test_the_parameters_of_an_old_file_are_those_of_its_network():
    for name in EXPECTED["predictions"]:
        promissing.load(MODELS / f"{name}.safetensors")._check_unchanged(ROWS)


@pytest.mark.parametrize("claimed", [1, 2, 3])
@pytest.mark.parametrize("digest", ["kept", "dropped", "renamed"])
def test_a_file_without_its_digest_is_refused_whatever_its_format(file, tmp_path, claimed, digest):
    if (claimed, digest) == (3, "kept"):
        return
    document, tensors = parts(file)
    with safe_open(file, framework="numpy") as f:
        metadata = f.metadata()
    metadata["promissing"] = json.dumps({**document, "format": claimed})
    if digest != "kept":
        value = metadata.pop("sha256")
        metadata |= {"sha257": value} if digest == "renamed" else {}
    save_file(tensors, tmp_path / "m.safetensors", metadata)
    with pytest.raises(ValueError, match="is damaged"):
        promissing.load(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d["target"].update(labels=["no", "x" * 10**6]),
        lambda d, t: d["target"].update(labels=[["no"], ["yes"]]),
        lambda d, t: d["network"].update(n_columns=10**10, groups=None),
        lambda d, t: d["network"].update(gate_rate="fast"),
        lambda d, t: d["network"].update(activation="x" * 10**6),
        lambda d, t: d["network"].update(hidden=[4.0]),
        lambda d, t: d["network"].update(hidden=[]),
        lambda d, t: d["params"].update(kinds=nested(300)),
        lambda d, t: d["params"].update(max_iter="x" * 10**6),
        lambda d, t: d["encoder"]["categories"].__setitem__(1, [{}, "b"]),
        lambda d, t: d["encoder"]["categories"].__setitem__(1, ["b", "b"]),
        lambda d, t: d["encoder"]["categories"].__setitem__(1, None),
        lambda d, t: d["encoder"]["names"].__setitem__(0, 5),
        lambda d, t: d["encoder"]["names"].__setitem__(0, d["encoder"]["names"][1]),
        lambda d, t: d["encoder"]["params"].update(unseen="x" * 10**6),
        lambda d, t: d["facts"].update(n_iter_="many"),
        lambda d, t: d["facts"].update(loss_curve_=nested(300)),
        lambda d, t: d["facts"].update(n_outputs_=2),
        lambda d, t: d.update(missing_values=[1]),
        lambda d, t: d.update(prior_weight=float("nan")),
        lambda d, t: d.update(prior_weight=True),
        lambda d, t: d.update(more=1),
        lambda d, t: t["encoder.maps"].__setitem__((1, 0), 0.0),
        lambda d, t: t["encoder.maps"].__setitem__((1, 0), np.nan),
        lambda d, t: t["encoder.maps"].__setitem__((2, 0), np.nan),
        lambda d, t: t.update({"encoder.gaps": t["encoder.gaps"].astype(np.float64)}),
        lambda d, t: t.update({"params.kernel_0": t["params.kernel_0"].astype(np.float16)}),
        lambda d, t: t.update({"params.kernel_0": t["params.kernel_0"].astype(np.int64)}),
        lambda d, t: t.update({k: t[k][:0] for k in t if k.startswith("params.")}),
        lambda d, t: t.update(prior=t["prior"] * 2),
        lambda d, t: t.update({"target.class_weights": np.array([1.0, -1.0])}),
        lambda d, t: t.update(more=np.ones(2)),
    ],
)
@pytest.mark.parametrize("number", [2, 3])
def test_values_that_no_model_has_are_refused_briefly(change, number, tmp_path, file):
    source = file if number == 3 else MODELS / "format2_classifier.safetensors"
    rewrite(source, tmp_path / "bad.safetensors", change)
    with pytest.raises(ValueError, match="is damaged|is not a model file") as error:
        promissing.load(tmp_path / "bad.safetensors")
    assert len(str(error.value).replace(str(tmp_path), "")) < 400


def nested(levels):
    value = 1
    for _ in range(levels):
        value = {"list": [value]}
    return value


def test_the_width_of_labels_takes_no_memory(tmp_path, file):
    change = tmp_path / "m.safetensors"
    rewrite(file, change, lambda d, t: d["target"].update(dtype="<U1000000000"))
    assert promissing.load(change).classes_.dtype == np.dtype("<U3")


def test_a_key_that_occurs_twice_is_refused(tmp_path):
    document, tensors = parts(MODELS / "format2_classifier.safetensors")
    text = json.dumps(document)[:-1] + ', "prior_weight": 1.0}'
    save_file(tensors, tmp_path / "bad.safetensors", {"promissing": text})
    with pytest.raises(ValueError, match="its description cannot be read"):
        promissing.load(tmp_path / "bad.safetensors")


SPLICED = [
    *(None, True, 0, -1, 3, 10**9, 10**400, 0.5, 1e308, float("nan"), float("inf")),
    *("", "auto", "x" * 10**5, "<U1000000000", "object", [], {}, [None], [10**9, 10**9]),
    *(["x"] * 3, {"tuple": [1, 2]}, {"dict": 7}, {"all": [0, 1, 2]}, nested(300)),
]


def mutants(path, count, seed):
    """Damaged files: bytes flipped, cut off or put in, and other values in the JSON text."""
    rng, data = random.Random(seed), path.read_bytes()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    document, tensors = parts(path)
    for i in range(count):
        changed, place = bytearray(data), rng.randrange(len(data))
        if i % 4 == 0:
            changed[place] ^= 1 << rng.randrange(8)
        elif i % 4 == 1:
            changed[rng.randrange(size)] ^= 1 << rng.randrange(8)
        elif i % 4 == 2:
            changed[place:] = rng.choice([b"", rng.randbytes(9) + changed[place:]])
        else:
            spliced = copy.deepcopy(document)
            part = spliced[rng.choice([k for k in spliced if isinstance(spliced[k], dict)])]
            part[rng.choice(list(part))] = rng.choice(SPLICED)
            metadata = {"promissing": json.dumps(spliced)}
            if document["format"] == 3:
                with safe_open(path, framework="numpy") as f:
                    metadata["sha256"] = f.metadata()["sha256"]
            yield spliced != document, lambda p, t=tensors, m=metadata: save_file(t, p, m)
            continue
        yield bytes(changed) != data, lambda p, c=bytes(changed): p.write_bytes(c)


@pytest.mark.parametrize("kind", ["classifier", "regressor", "fusion"])
@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.filterwarnings("ignore:.*integrity cannot be checked", "ignore:.*had no gap")
def test_no_damaged_file_gives_other_predictions_or_other_errors(kind, number, tmp_path):
    source = MODELS / f"format2_{kind}.safetensors"
    model = promissing.load(source)
    right = predictions(model)
    if number == 3:
        source = tmp_path / "m.safetensors"
        model.save(source)
    refused = 0
    for changed, write in mutants(source, 80, seed=number):
        write(tmp_path / "bad.safetensors")
        read, error = attempt(promissing.load, tmp_path / "bad.safetensors")
        if error is not None:
            refused += 1
            assert len(error) < 600
            continue
        found, error = attempt(predictions, read)
        if number == 3 or not changed:
            np.testing.assert_array_equal(found, right)
        else:  # Without a digest, predictions and names may differ.
            assert error is None or "feature names" in error or "min_known" in error
    assert refused > (75 if number == 3 else 40)


def attempt(function, argument):
    """What a function gives, or the message of its ValueError; all other errors are raised."""
    try:
        return function(argument), None
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        return None, str(error)


def test_a_link_is_followed_and_stays(file, tmp_path):
    (tmp_path / "real.safetensors").write_bytes(b"old")
    (tmp_path / "link.safetensors").symlink_to("real.safetensors")
    promissing.load(file).save(tmp_path / "link.safetensors")
    assert (tmp_path / "link.safetensors").is_symlink()
    promissing.load(tmp_path / "real.safetensors")
    (tmp_path / "new.safetensors").symlink_to("later.safetensors")
    promissing.load(file).save(tmp_path / "new.safetensors")
    assert (tmp_path / "later.safetensors").is_file()
    assert sorted(os.listdir(tmp_path)) == [
        *("later.safetensors", "link.safetensors", "new.safetensors", "real.safetensors")
    ]


def test_only_regular_files_are_written_and_read(file, tmp_path):
    model = promissing.load(file)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(ValueError, match=f"{name} is a device or a pipe. Give the name of a"):
            model.save(tmp_path / name)
        with pytest.raises(ValueError, match=f"{name} is a device or a pipe, not a model file"):
            promissing.load(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    with pytest.raises(ValueError, match="null is a device or a pipe"):
        model.save("/dev/null")
    with pytest.raises(ValueError, match="is a directory. Give the name of a file"):
        model.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="There is no directory"):
        model.save(tmp_path / "none" / "m.safetensors")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ValueError, match="a symbolic link that leads back to itself"):
        model.save(tmp_path / "loop")
    (tmp_path / "lost").symlink_to(tmp_path / "none" / "m.safetensors")
    with pytest.raises(ValueError, match="There is no directory .*none to write m.safetensors in"):
        model.save(tmp_path / "lost")


def test_a_class_that_is_not_valid_text_is_not_saved(tmp_path):
    y = np.array(["a\ud800", "b"] * 10)
    model = classifier(4, max_iter=2).fit(np.arange(20.0)[:, None], y)
    with pytest.raises(ValueError, match=r"class or parameter holds '\\ud800', which is not valid"):
        model.save(tmp_path / "m.safetensors")
    assert not os.listdir(tmp_path)
