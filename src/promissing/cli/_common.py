"""What the commands share: errors in one line, lists as values, and how the tables are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

__all__ = ["NAMED", "NUMBERS", "BadInput", "Listed", "clear_errors"]


class BadInput(click.ClickException):
    """What the user gave cannot be used: one line, exit code 2."""

    exit_code = 2


class Listed(click.ParamType[Any]):
    """Values separated by commas."""

    def __init__(self, kind: Callable[[str], Any], name: str) -> None:
        self.kind = kind
        self.name = f"{name},..."

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Split the text and convert its parts."""
        if not isinstance(value, str):
            return value
        parts = [part.strip() for part in value.split(",") if part.strip()]
        try:
            return tuple(self.kind(part) for part in parts)
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers separated by commas.", param, ctx)


NAMED, NUMBERS = Listed(str, "name"), Listed(float, "number")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Bad input ends with one line and exit code 2, a run that failed with one line and 1."""
    try:
        yield
    except (ValueError, ImportError) as error:
        raise BadInput(_one_line(error)) from error
    except (RuntimeError, OSError) as error:
        raise click.ClickException(_one_line(error)) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
