"""Public names and parameters of release 0.1.0, which work for one more release.

`tests/data/public_names_0_1_0.json` lists the documented names by module, and the parameters of
functions and of classes that users construct.
"""

import importlib
import inspect
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from promissing import NanMLPRegressor, TableEncoder
from promissing._deprecated import MOVED

RELEASE = json.loads((Path(__file__).parent / "data" / "public_names_0_1_0.json").read_text())
NAMES = [(module, name) for module, names in RELEASE["names"].items() for name in names]
PARAMETERS = [(path, name) for path, names in RELEASE["parameters"].items() for name in names]


def old(path):
    """Return the object that had this name in release 0.1.0."""
    module, _, name = path.rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_names_are_importable_from_their_old_place(module, name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert getattr(importlib.import_module(module), name) is not None
    messages = [str(w.message) for w in caught if w.category is FutureWarning]
    if module.removeprefix("promissing.") in MOVED:
        assert any(name in message and " is now promissing." in message for message in messages)
    assert len(messages) <= 1  # One that stays in its module may have a new name there.


def required(function):
    """Return None for each required positional argument."""
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [None for p in parameters if p.kind in positional and p.default is p.empty]


@pytest.mark.parametrize(("path", "name"), PARAMETERS)
def test_old_parameters_are_accepted(path, name):
    function = old(path)
    if name in inspect.signature(function).parameters:
        return
    # A renamed parameter that is no longer in the signature. Other arguments are left out, so
    # that the call may fail, but not because of this parameter.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function(*required(function), **{name: None})
        except Exception as error:
            assert "unexpected keyword" not in str(error)  # noqa: PT017
    assert any(w.category is FutureWarning and name in str(w.message) for w in caught)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "old_name", "value", "new_name"),
    [
        (NanMLPRegressor, "straight", False, "linear_skip"),
        (NanMLPRegressor, "unseen", "error", "unknown_categories"),
        (NanMLPRegressor, "fine_bins", 4, "n_fine_bins"),
        (TableEncoder, "unseen", "error", "unknown_categories"),
        (TableEncoder, "fine_bins", 4, "n_fine_bins"),
    ],
)
def test_renamed_parameters_warn_and_have_the_effect_of_the_new_ones(
    cls, old_name, value, new_name
):
    X = np.random.default_rng(0).normal(size=(40, 2))
    unchanged = {"n_bins": 8}
    if cls is NanMLPRegressor:
        unchanged |= {"max_iter": 1, "n_members": 1, "random_state": 0}

    def outputs(**parameters):
        fitted = cls(**{**unchanged, **parameters}).fit(X, X[:, 0])
        return fitted.predict(X) if cls is NanMLPRegressor else fitted.transform(X)

    with pytest.warns(FutureWarning, match=new_name):
        found = outputs(**{old_name: value})
    np.testing.assert_array_equal(found, outputs(**{new_name: value}))


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "from promissing.mlp import NanMLPClassifier",
        "import promissing.mlp; promissing.mlp.NanMLPClassifier",
        "import promissing; promissing.mlp.NanMLPClassifier",
        "from promissing import mlp; mlp.NanMLPClassifier",
    ],
)
def test_every_way_to_import_an_old_name_works_and_warns_in_the_users_line(code):
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    assert out.stderr.startswith(
        "<string>:1: FutureWarning: promissing.mlp.NanMLPClassifier is now"
    )


def test_an_unknown_name_of_an_old_module_is_an_error():
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from promissing.mlp import nothing", {})


@pytest.mark.parametrize("module", ["experiments", "experiments.runner", "experiments.openml"])
def test_the_studies_have_left_the_package(module):
    with pytest.raises(ModuleNotFoundError, match=r"folder `studies`.*python -m studies --help"):
        importlib.import_module(f"promissing.{module}")
