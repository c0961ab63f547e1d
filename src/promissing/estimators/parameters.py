"""The parameters all estimators share, and what is wrong with them."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from promissing._formula import is_count
from promissing.training import LAWS, RATES, SOLVERS

__all__ = ["check_parameters"]

# Not all estimators have all of these.
_CHOICES = {
    "solver": SOLVERS,
    "learning_rate": RATES,
    "augment_by": LAWS,
    "augment_empty": (True, False),
    "resample": (True, False),
    "early_stopping": (True, False, "auto"),
    "average": (True, False),
    "straight": (True, False),
    "prior_correction": (True, False),
    "below_min_known": ("abstain", "raise"),
}


def check_parameters(estimator: Any) -> None:
    """Refuse parameters that make no sense, by name."""
    given = estimator.get_params(deep=False)

    def expect(name: str, good: bool, expected: str) -> None:
        if not good:
            raise ValueError(f"`{name}` must be {expected}. Received: {name}={given[name]!r}")

    if given["solver"] == "lbfgs":
        raise ValueError(
            "`solver` 'lbfgs' does not train in minibatches and is not offered. Use 'adam', "
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

    def within(name: str, low: float, high: float, expected: str) -> None:
        value = given[name]
        is_number = isinstance(value, Real | np.bool_)
        expect(name, is_number and low <= float(value) <= high, expected)

    least, most = 1e-30, 1e30  # What float32 can work with.
    below_one = float(np.nextafter(1.0, 0.0))
    for name in ("learning_rate_init", "epsilon"):
        within(name, least, most, "a positive number")
    for name in ("alpha", "tol", "n_iter_no_change", "gate_rate", "compensation_rate"):
        if name in given:
            within(name, 0, np.inf, "a non-negative number")
    for name in ("dropout", "momentum", "beta_1", "beta_2"):
        within(name, 0, below_one, "at least 0 and less than 1")
    within("validation_fraction", least, below_one, "more than 0 and less than 1")
    within("min_known", 0, 1, "between 0 and 1")
    if not estimator._augments_by_gaps:
        within("augment", 0, 1, "between 0 and 1")
    elif not isinstance(given["augment"], str) or given["augment"] != "auto":
        within("augment", 0, 1, "'auto', True, False or between 0 and 1")
