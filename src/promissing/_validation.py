"""Checks of parameters, and texts for messages."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any

__all__ = ["did_you_mean", "expect", "few", "is_whole", "listed", "warn"]


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, in the name of the first caller outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("promissing."):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level + 1)


def listed(names: list[str], most: int = 5) -> str:
    """Columns by name, the first of them if they are many."""
    return f"Column{'s' * (len(names) > 1)} {few(names, most)}"


def few(values: Sequence[Any], most: int = 5) -> str:
    """Values separated by commas, the first of them if they are many."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(map(repr, values[:most])) + more


def expect(condition: bool, argument: str, expected: str, value: Any) -> None:
    """Raise a ValueError that names the argument, unless the condition holds."""
    if not condition:
        raise ValueError(f"`{argument}` must be {expected}. Received: {value!r}")


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer and no boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def did_you_mean(name: Any, names: Iterable[Any], *, show: int = 8) -> str:
    """Return the end of an error message: similar names, or else the first `show` names."""
    known = [str(one) for one in names]
    lower = {one.lower(): one for one in known}
    found = get_close_matches(str(name).lower(), lower, n=3, cutoff=0.5)
    if found:
        return f" Did you mean {' or '.join(repr(lower[one]) for one in found)}?"
    return f" There are {few(known, show)}." if show and known else ""
