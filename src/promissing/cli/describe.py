"""promissing describe: what is missing in a table."""

from __future__ import annotations

import shlex
from typing import Any

import click

from promissing.cli._common import (
    clear_errors,
    declared_kinds,
    json_option,
    progress,
    read_frame,
    say,
    show_json,
    shown,
    table_options,
    terminal,
)
from promissing.cli._drawing import bar, new_table, percent
from promissing.cli._words import in_shell_words, joined

__all__ = ["describe"]

_NAMES = 6  # Names of columns on a line.


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--target", metavar="COLUMN", help="The column to predict, marked with a star.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=40,
    show_default=True,
    help="Lines of a table; columns with most gaps come first if there are more.",
)
@table_options
@json_option
def describe(file: str, target: str | None, most: int, as_json: bool, **reading: Any) -> None:
    """Say what is missing in FILE: by column, by row, in patterns, and in disguise.

    FILE is CSV (any separator, also gzipped), TSV, Parquet or Excel; - is standard input.
    """
    with clear_errors():
        with progress(f"Reading {file}") as step:
            from promissing.io import description
            from promissing.io.task import nearest

            frame = read_frame(file, **reading)
            if target is not None and target not in frame.columns:
                raise ValueError(f"There is no column {target!r}.{nearest(target, frame.columns)}")
            step(text="Looking at it")
            settled = {*declared_kinds(reading), reading["identifier"]}
            found = description.describe(frame, target=target, settled=settled)
            found["notes"] = list(map(in_shell_words, found["notes"]))
        if as_json:
            show_json(found)
            return
        _show(found, most)


def _show(found: dict[str, Any], most: int) -> None:
    console = terminal()
    console.print(
        f"{found['rows']:,} rows, {found['columns']:,} columns. Missing: {found['missing']:,} of "
        f"{found['cells']:,} cells ({percent(found['share'])}). Complete rows: "
        f"{found['complete_rows']:,}, empty rows: {found['empty_rows']:,}."
    )
    console.print(_columns(found, most))
    if found["missing"]:
        console.print(_rows(found, most))
        console.print(_patterns(found))
    if found["blocks"]:
        console.print(_blocks(found, most))
    suspects = _suspects(found)
    if suspects is not None:
        console.print(suspects)
        every = [str(one["value"]) for line in found["by_column"] for one in line["suspects"]]
        said = joined(dict.fromkeys(every))
        say(f"If these stand for missing, say so: --missing-values {shlex.quote(said)}")
    for note in found["notes"]:
        say(note)


def _columns(found: dict[str, Any], most: int) -> Any:
    lines = found["by_column"]
    if len(lines) > most:
        lines = sorted(lines, key=lambda line: -line["missing"])[:most]
    title = "By column" + _of(len(lines), found["columns"])
    table = new_table(title, "column", "kind", "distinct>", "missing>", "share>", "")
    for line in lines:
        star = " *" if line["name"] == found["target"] else ""
        table.add_row(
            shown(line["name"]) + star,
            line["kind"],
            f"{line['distinct']:,}",
            f"{line['missing']:,}",
            percent(line["share"]),
            bar(line["share"]),
        )
    return table


def _rows(found: dict[str, Any], most: int) -> Any:
    lines = found["by_row"]
    size = -(-len(lines) // most)  # Neighbours share a line if there are too many.
    table = new_table("By row", "gaps>", "rows>", "share>", "")
    for start in range(0, len(lines), size):
        some = lines[start : start + size]
        first, last = some[0]["gaps"], some[-1]["gaps"]
        rows = sum(line["rows"] for line in some)
        share = rows / found["rows"]
        gaps = str(first) if first == last else f"{first} to {last}"
        table.add_row(gaps, f"{rows:,}", percent(share), bar(share))
    return table


def _patterns(found: dict[str, Any]) -> Any:
    lines = found["patterns"]
    title = "Patterns" + _of(len(lines), found["n_patterns"])
    table = new_table(title, "missing together in a row", "rows>", "share>")
    for line in lines:
        what = _listed(line["missing"]) or "(nothing)"
        table.add_row(what, f"{line['rows']:,}", percent(line["share"]))
    return table


def _blocks(found: dict[str, Any], most: int) -> Any:
    lines = found["blocks"][:most]
    title = "Blocks that are missing together" + _of(len(lines), len(found["blocks"]))
    table = new_table(title, "columns", "how many>", "rows>", "share>")
    for line in lines:
        size = str(len(line["columns"]))
        rows = f"{line['rows']:,}"
        table.add_row(_listed(line["columns"]), size, rows, percent(line["share"]))
    return table


def _suspects(found: dict[str, Any]) -> Any:
    table = new_table("Perhaps missing in disguise", "column", "value", "rows>", "why")
    for line in found["by_column"]:
        for one in line["suspects"]:
            value = shown(repr(one["value"]))
            table.add_row(shown(line["name"]), value, f"{one['count']:,}", one["why"])
    return table if table.row_count else None


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return shown(", ".join(names[:_NAMES])) + more


def _of(number: int, total: int) -> str:
    return f" ({number} of {total:,})" if number < total else ""
