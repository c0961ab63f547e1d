"""The parameters all estimators share, and what is wrong with them."""

from __future__ import annotations

from typing import Any

from promissing._core import is_count

__all__ = ["check_parameters"]

SOLVERS = ("sgd", "adam", "adamw")
RATES = ("constant", "cosine")


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
    for name, allowed in (("solver", SOLVERS), ("learning_rate", RATES)):
        expect(name, given[name] in allowed, f"one of {allowed}")
    for name in ("max_iter", "n_members"):
        expect(name, is_count(given[name]), "a positive integer")
    size = given["batch_size"]
    expect("batch_size", size == "auto" or is_count(size), "'auto' or a positive integer")
    expect("learning_rate_init", given["learning_rate_init"] > 0, "positive")
    for name in ("alpha", "tol", "n_iter_no_change"):
        expect(name, given[name] >= 0, "non-negative")
    for name in ("dropout", "validation_fraction", "momentum", "beta_1", "beta_2"):
        expect(name, 0 <= given[name] < 1, "at least 0 and less than 1")
    for name in ("augment", "min_known"):
        expect(name, 0 <= float(given[name]) <= 1, "between 0 and 1")
