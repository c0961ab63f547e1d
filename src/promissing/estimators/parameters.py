"""Validation of the parameters of the estimators."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from promissing._formula import is_count
from promissing._validation import warn
from promissing.networks.losses import REGRESSION_LOSSES, NumberLoss
from promissing.training.options import LAWS, SCHEDULES, SOLVERS

__all__ = ["RENAMED", "check_parameters", "current_parameters"]

# Parameters of release 0.1.0 and their present names. The old ones work for one release.
RENAMED = {
    "straight": "linear_skip",
    "fine_bins": "n_fine_bins",
    "unseen": "unknown_categories",
}
# Not all estimators have all of these.
_CHOICES = {
    "solver": SOLVERS,
    "learning_rate": SCHEDULES,
    "augment_by": LAWS,
    "augment_empty": (True, False),
    "resample": (True, False),
    "early_stopping": (True, False, "auto"),
    "average": (True, False),
    "linear_skip": (True, False),
    "prior_correction": (True, False),
    "below_min_known": ("abstain", "raise"),
}
_LEAST, _MOST = 1e-30, 1e30  # What float32 can represent.
_BELOW_ONE = float(np.nextafter(1.0, 0.0))
# The range of each number, and its description.
_RANGES = {
    **dict.fromkeys(("learning_rate_init", "epsilon"), (_LEAST, _MOST, "a positive number")),
    **dict.fromkeys(
        ("tol", "n_iter_no_change", "gate_rate", "compensation_rate"),
        (0, np.inf, "a non-negative number"),
    ),
    **dict.fromkeys(
        ("dropout", "momentum", "beta_1", "beta_2"), (0, _BELOW_ONE, "at least 0 and less than 1")
    ),
    "alpha": (0, np.inf, "'auto' or a non-negative number"),
    "validation_fraction": (_LEAST, _BELOW_ONE, "more than 0 and less than 1"),
    "min_known": (0, 1, "between 0 and 1"),
    "augment": (0, 1, "'auto', True, False or between 0 and 1"),
}


def current_parameters(estimator: Any, *, silent: bool = False) -> dict[str, Any]:
    """Return the parameters under their present names.

    Parameters
    ----------
    estimator : estimator
        An estimator.
    silent : bool, default=False
        Whether old names are accepted without a warning.

    Returns
    -------
    dict
        Values by name. A value that was given under an old name counts.
    """
    params = dict(estimator.get_params(deep=False))
    for old, new in RENAMED.items():
        value = params.pop(old, "deprecated")
        if isinstance(value, str) and value == "deprecated":
            continue
        default = type(estimator)().get_params()[new]
        if params[new] != default and params[new] != value:
            raise ValueError(
                f"`{old}` is the old name of `{new}`, and both were given: {old}={value!r} and "
                f"{new}={params[new]!r}. Pass `{new}` only."
            )
        if not silent:
            warn(
                f"`{old}` was renamed to `{new}` and will be removed in release 0.3.", FutureWarning
            )
        params[new] = value
    return params


def check_parameters(estimator: Any) -> None:
    """Refuse parameters that make no sense, by name.

    Parameters
    ----------
    estimator : estimator
        An estimator.
    """
    given = current_parameters(estimator, silent=True)

    def expect(name: str, good: bool, expected: str) -> None:
        if not good:
            raise ValueError(f"`{name}` must be {expected}. Received: {name}={given[name]!r}")

    if given["solver"] == "lbfgs":
        raise ValueError(
            "`solver` 'lbfgs' does not train in minibatches and is not available. Use 'adam', "
            "'adamw' or 'sgd'."
        )
    for name, allowed in _CHOICES.items():
        if name in given:
            expect(name, given[name] in allowed, f"one of {allowed}")
    if "fusion_units" in given:
        expect("fusion_units", is_count(given["fusion_units"]), "a positive integer")
    for name in ("max_iter", "batch_size", "n_members"):
        value = given[name]
        good = value == "auto" if isinstance(value, str) else is_count(value)
        expect(name, good, "'auto' or a positive integer")
    for name, (low, high, expected) in _RANGES.items():
        value = given.get(name, low)
        if name in ("alpha", "augment") and isinstance(value, str) and value == "auto":
            continue
        good = isinstance(value, Real | np.bool_) and low <= float(value) <= high
        expect(name, good, expected)
    if "loss" in given and not isinstance(given["loss"], NumberLoss):
        good = isinstance(given["loss"], str) and given["loss"] in REGRESSION_LOSSES
        known = ", ".join(map(repr, REGRESSION_LOSSES))
        expect("loss", good, f"one of {known}, or a loss of promissing.networks.losses")
