"""Check that every name in the reference has a complete docstring.

The reference is `docs/api`: a page for every public module. numpydoc validates the classes and
functions in the `__all__` of these modules, and the public methods and properties of the classes.
`python tools/check_docstrings.py` checks all modules, or those that it is given.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpydoc.validate import validate

API = Path(__file__).parents[1] / "docs" / "api"
RULES = {
    "GL08": "there is a docstring",
    "SS03": "the summary ends with a full stop",
    "PR01": "every parameter is documented",
    "PR02": "no other parameter is documented",
    "PR03": "parameters are in the order of the signature",
    "PR04": "parameters have a type",
    "PR07": "parameters have a description",
    "RT01": "there is a section Returns",
    "RT03": "the return value has a description",
    "YD01": "there is a section Yields",
    "EX01": "there is an example",
}
# These methods mean what they mean in every Keras or PyTorch layer.
FRAMEWORK = {
    "promissing.keras": {"build", "call", "compute_output_shape", "compute_output_spec"}
    | {"get_config", "from_config"},
    "promissing.torch": {"forward", "extra_repr", "reset_parameters"},
}
# The example of the class shows how the methods of scikit-learn's protocol are called.
NO_EXAMPLE = {
    *("fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function"),
    *("score", "transform", "fit_transform", "inverse_transform", "get_feature_names_out"),
}


def modules() -> list[str]:
    """List the modules that have a page in the reference."""
    stems = sorted(page.stem for page in API.glob("*.md"))
    return ["promissing" if s == "promissing" else f"promissing.{s}" for s in stems if s != "index"]


def names(module: str) -> Iterator[tuple[str, Any]]:
    """Yield the names of a module that need a docstring, and the objects themselves."""
    home = import_module(module)
    for name in getattr(home, "__all__", ()):
        found = getattr(home, name)
        if inspect.isclass(found):
            yield f"{module}.{name}", found
            yield from ((f"{module}.{name}.{m}", o) for m, o in members(found))
        elif inspect.isroutine(found):
            yield f"{module}.{name}", found


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that this package defines for a class."""
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        # A property, a cached property, and a class or static method hold the function itself.
        inner = (getattr(found, kind, None) for kind in ("fget", "func", "__func__"))
        function = next(filter(None, inner), found)
        home = getattr(inspect.unwrap(function), "__module__", None) or ""
        ours = home.startswith("promissing.") and name not in FRAMEWORK.get(home, ())
        # An overriding method without a docstring inherits that of the base class.
        inherits = not function.__doc__ and inspect.getdoc(getattr(cls, name))
        if not name.startswith("_") and ours and not inspect.isclass(found) and not inherits:
            yield name, function


def problems(name: str, found: Any) -> list[str]:
    """List what is wrong with a docstring."""
    rules = RULES.keys() - ({"EX01"} if name.rpartition(".")[2] in NO_EXAMPLE else set())
    if inspect.isclass(found) and issubclass(found, np.ndarray | pd.DataFrame):
        rules -= {"PR01"}  # Their constructor is that of NumPy or pandas; the library calls it.
    try:
        errors = validate(name)["errors"]
    except Exception as error:  # numpydoc raises what the malformed section makes it raise.
        return [f"{name}: numpydoc cannot read the docstring: {error}"]
    return [f"{name}: {code} {text}" for code, text in errors if code in rules]


def main(chosen: list[str]) -> int:
    """Print every problem, and how many each module has."""
    warnings.simplefilter("ignore")
    seen: set[int] = set()
    count: Counter[str] = Counter()
    n = 0
    for module in chosen or modules():
        if not hasattr(import_module(module), "__all__"):
            count[module] += 1
            print(f"{module}: there is no __all__")
        for name, found in names(module):
            if id(found) in seen:
                continue  # It is documented in one place and importable from several.
            seen.add(id(found))
            n += 1
            for problem in problems(name, found):
                count[module] += 1
                print(problem)
    for module, wrong in count.most_common():
        print(f"{wrong:5} in {module}")
    print(f"{count.total()} problems in the docstrings of {n} public names.")
    return int(bool(count))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
