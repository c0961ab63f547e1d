"""A loaded table, and what goes wrong when one is loaded."""

from __future__ import annotations

from typing import Any, NamedTuple


class DatasetError(ValueError):
    """A table cannot be had; the message says which and why, in one line."""


class Dataset(NamedTuple):
    """A table, ready to be learned from.

    Attributes
    ----------
    X : DataFrame (n, p)
        Numbers are int64 or float64, nominal columns are categories of text.
    y : Series (n,)
        0 or 1 as int8 if the task is binary, else float64.
    task : {"binary", "regression"}
    name, slug : str
    openml_id : int or None
    nominal : list of str
        The nominal columns.
    modalities : dict
        Named groups of columns; empty if the table has none.
    source : str
        Where it came from.
    notes : tuple of str
        Where it differs from what was expected.
    """

    X: Any
    y: Any
    task: str
    name: str
    slug: str
    openml_id: int | None
    nominal: list[str]
    modalities: dict[str, list[str]]
    source: str
    notes: tuple[str, ...]


def one_line(error: BaseException) -> str:
    """What an error says, for the end of a sentence: its first line, or its name."""
    return next(iter(str(error).splitlines()), "").strip().rstrip(".") or type(error).__name__


def differences(X: Any, rows: int | None, features: int | None, where: str) -> list[str]:
    """Say how X is not of the expected size, as far as one is known."""
    pairs = zip(X.shape, (rows, features), ("rows", "features"), strict=True)
    return [f"{n} {what} instead of the {m} {where}" for n, m, what in pairs if m not in (None, n)]
