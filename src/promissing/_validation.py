"""Checks of parameters, and texts for messages."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar, cast

__all__ = ["did_you_mean", "expect", "few", "is_whole", "listed", "renamed_arguments", "warn"]

Function = TypeVar("Function", bound=Callable[..., Any])


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the location of the first caller outside this package."""
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


def renamed_arguments(**names: str) -> Callable[[Function], Function]:
    """Let a function accept old names of its arguments, with a FutureWarning: `old="new"`."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def with_old_names(*args: Any, **arguments: Any) -> Any:
            for old in names.keys() & arguments.keys():
                warn(
                    f"The argument `{old}` is now `{names[old]}`. The old name will be removed in "
                    "release 0.3.",
                    FutureWarning,
                )
                arguments[names[old]] = arguments.pop(old)
            return function(*args, **arguments)

        return cast(Function, with_old_names)

    return decorate
