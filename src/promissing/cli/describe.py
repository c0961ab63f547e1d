"""promissing describe: the missing values of a table."""

from __future__ import annotations

import shlex
from typing import Any

import click

from promissing.cli import _options, _terminal
from promissing.cli._terminal import bar, percent

__all__ = ["describe"]

_MOST_NAMES = 6  # Column names in one line.


@click.command(cls=_options.Command)
@_options.FILE_ARGUMENT
@click.option("--target", metavar="COLUMN", help="Column to predict, marked with a star.")
@click.option("--most", type=_options.COUNT, default=40, help="Maximum number of lines per table.")
@_options.table_options
@_options.as_json
def describe(file: str, target: str | None, most: int, as_json: bool, **reading: Any) -> None:
    """Describe the missing values in FILE.

    The output shows missing values by column and by row, their patterns, and values that may mean
    missing, such as -999.

    FILE is CSV (any separator, optionally gzipped), TSV, Parquet or Excel; - is standard input.
    """
    with _terminal.progress(f"Reading {file}") as step:
        from promissing.io import description

        frame = _options.read_frame(file, **reading)
        _options.require_columns("--target", [] if target is None else [target], frame)
        step("Counting missing values")
        settled = {*_options.declared_kinds(reading), reading["identifier"]}
        found = description.describe(frame, target=target, settled=settled)
        found["notes"] = list(map(_options.with_option_names, found["notes"]))
    if as_json:
        _terminal.print_json(found)
    else:
        _show(found, most)


def _show(found: dict[str, Any], most: int) -> None:
    """Print the description as tables and notes."""
    out = _terminal.console()
    out.print(
        f"{found['rows']:,} rows, {found['columns']:,} columns. Missing: {found['missing']:,} of "
        f"{found['cells']:,} cells ({percent(found['share'])}). Complete rows: "
        f"{found['complete_rows']:,}, empty rows: {found['empty_rows']:,}."
    )
    out.print(_columns(found, most))
    if found["missing"]:
        out.print(_rows(found, most))
        out.print(_patterns(found))
    if found["blocks"]:
        out.print(_blocks(found, most))
    suspects = [(line["name"], x) for line in found["by_column"] for x in line["suspects"]]
    if suspects:
        columns = ("column", "value", "rows>", "reason")
        rows = ((name, repr(x["value"]), f"{x['count']:,}", x["why"]) for name, x in suspects)
        out.print(_terminal.table("Values that may mean missing", columns, rows))
        values = _options.join(list(dict.fromkeys(str(x["value"]) for _, x in suspects)))
        _terminal.note(f"If they mean missing, pass --missing-values {shlex.quote(values)}")
    for note in found["notes"]:
        _terminal.note(note)


def _columns(found: dict[str, Any], most: int) -> Any:
    lines = found["by_column"]
    if len(lines) > most:
        lines = sorted(lines, key=lambda line: -line["missing"])[:most]
    title = "By column" + _of(len(lines), found["columns"])
    rows = (
        (
            line["name"] + " *" * (line["name"] == found["target"]),
            line["kind"],
            f"{line['distinct']:,}",
            f"{line['missing']:,}",
            percent(line["share"]),
            bar(line["share"]),
        )
        for line in lines
    )
    return _terminal.table(title, ("column", "kind", "distinct>", "missing>", "share>", ""), rows)


def _rows(found: dict[str, Any], most: int) -> Any:
    lines = found["by_row"]
    size = -(-len(lines) // most)  # Adjacent counts share a line if there are too many.
    rows = []
    for start in range(0, len(lines), size):
        some = lines[start : start + size]
        first, last = some[0]["gaps"], some[-1]["gaps"]
        number = sum(line["rows"] for line in some)
        share = number / found["rows"]
        missing = str(first) if first == last else f"{first} to {last}"
        rows.append((missing, f"{number:,}", percent(share), bar(share)))
    return _terminal.table("By row", ("missing values>", "rows>", "share>", ""), rows)


def _patterns(found: dict[str, Any]) -> Any:
    lines = found["patterns"]
    title = "Patterns" + _of(len(lines), found["n_patterns"])
    rows = (
        (_names(line["missing"]) or "(nothing)", f"{line['rows']:,}", percent(line["share"]))
        for line in lines
    )
    return _terminal.table(title, ("missing together in a row", "rows>", "share>"), rows)


def _blocks(found: dict[str, Any], most: int) -> Any:
    lines = found["blocks"][:most]
    title = "Blocks of columns that are missing together" + _of(len(lines), len(found["blocks"]))
    rows = (
        (_names(names := x["columns"]), str(len(names)), f"{x['rows']:,}", percent(x["share"]))
        for x in lines
    )
    return _terminal.table(title, ("columns", "number>", "rows>", "share>"), rows)


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _of(number: int, total: int) -> str:
    return f" ({number} of {total:,})" if number < total else ""
