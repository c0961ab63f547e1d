"""promissing simulate: gaps on demand, and tables to try things on."""

from __future__ import annotations

import json
from typing import Any

import click

from promissing.cli._common import (
    NAMED,
    clear_errors,
    progress,
    read_frame,
    say,
    table_options,
)

__all__ = ["simulate"]

MECHANISMS = (
    *("mcar", "mcar-cells", "mar", "mnar"),
    *("mar-logistic", "mnar-logistic", "self-masking"),
)


@click.command()
@click.argument("file", type=click.Path(allow_dash=True), required=False)
@click.option("--cohort", type=click.IntRange(min=1), metavar="N", help="Generate N patients.")
@click.option("--xor", type=click.IntRange(min=1), metavar="N", help="Generate N points of XOR.")
@click.option("--mechanism", type=click.Choice(MECHANISMS), help="How values are lost.")
@click.option("--ratio", type=click.FloatRange(0, 1), help="The share of values that is lost.")
@click.option("--columns", type=NAMED, help="Columns that lose values [all but --keep].")
@click.option("--drivers", type=NAMED, help="What decides under mar [random columns].")
@click.option("--keep", type=NAMED, default=(), help="Columns left alone, such as the target.")
@click.option("--seed", type=int, help="Of all chance [0; 74 for the cohort].")
@click.option("--out", required=True, type=click.Path(allow_dash=True), help="The table; - is CSV.")
@click.option("--modalities-out", type=click.Path(), help="TOML with the cohort's modalities.")
@table_options
def simulate(
    file: str | None,
    cohort: int | None,
    xor: int | None,
    mechanism: str | None,
    ratio: float | None,
    columns: tuple[str, ...] | None,
    drivers: tuple[str, ...] | None,
    keep: tuple[str, ...],
    seed: int | None,
    out: str,
    modalities_out: str | None,
    **reading: Any,
) -> None:
    """Make gaps in FILE, or in a generated table, and write it to OUT.

    mcar loses values at random, mar where another column is in some range, mnar where the column
    itself is. Instead of FILE, --cohort N generates patients with 211 measures of 12 modalities and
    the target 'remission', and --xor N points with the target 'label'.
    """
    if (file is not None) + (cohort is not None) + (xor is not None) != 1:
        raise click.UsageError("Give a FILE, or --cohort N, or --xor N: one of them.")
    if (mechanism is None) != (ratio is None):
        raise click.UsageError("--mechanism and --ratio go together: how, and how much.")
    if file is not None and mechanism is None:
        raise click.UsageError("Say how values are lost: --mechanism and --ratio.")
    if modalities_out is not None and cohort is None:
        raise click.UsageError("--modalities-out is for the modalities of --cohort.")
    with clear_errors():
        with progress("Making gaps"):
            from promissing.io.files import check_target, write_table, write_text

            check_target(out)
            if modalities_out is not None:
                check_target(modalities_out, (".toml",))
            frame, target, groups = _table(file, cohort, xor, seed, reading)
            identifier = reading["identifier"]
            keep = (*keep, identifier) if identifier is not None else keep
            keep = (*keep, target) if target is not None else keep
            frame, lost = _lose(frame, mechanism, ratio, columns, drivers, keep, seed or 0)
            write_table(frame, out)
            if modalities_out is not None:
                write_text(modalities_out, _toml(groups))
        share = frame.isna().to_numpy().mean()
        rows, size = frame.shape
        made = f"{lost:,} values lost; " if mechanism is not None else ""
        say(f"{rows:,} rows, {size:,} columns; {made}{100 * share:.1f} % of all cells are missing.")


def _table(
    file: str | None, cohort: int | None, xor: int | None, seed: int | None, reading: Any
) -> tuple[Any, str | None, dict[str, list[str]]]:
    """The table to start from, its target if that is known, and its modalities."""
    import pandas as pd

    from promissing import datasets

    if file is not None:
        return read_frame(file, **reading), None, {}
    if xor is not None:
        X, y = datasets.make_xor(xor, random_state=seed or 0)
        return pd.DataFrame(X, columns=["x1", "x2"]).assign(label=y), "label", {}
    given: Any = {} if seed is None else {"random_state": seed}
    made = datasets.make_cohort(cohort or 1, **given)
    return made.X.assign(remission=made.y), "remission", made.modalities


def _lose(
    frame: Any,
    mechanism: str | None,
    ratio: float | None,
    columns: tuple[str, ...] | None,
    drivers: tuple[str, ...] | None,
    keep: tuple[str, ...],
    seed: int,
) -> tuple[Any, int]:
    """The table without the values it loses, and how many these are."""
    if mechanism is None or ratio is None:
        return frame, 0
    from promissing.io.task import nearest
    from promissing.missingness import MECHANISMS as KNOWN
    from promissing.missingness import remove

    for option, names in (("--columns", columns), ("--drivers", drivers), ("--keep", keep)):
        for name in names or ():
            if name not in frame.columns:
                raise ValueError(
                    f"{option}: there is no column {name!r}.{nearest(name, frame.columns)}"
                )
    # Kept columns are out of sight unless they are named: they neither lose nor decide anything.
    named = {*(columns or ()), *(drivers or ())}
    part = frame[[name for name in frame.columns if name not in keep or name in named]]
    if not part.shape[1]:
        raise ValueError("--keep names every column: nothing is left that could lose values.")
    mask = KNOWN[mechanism].mask(
        part,
        ratio=ratio,
        random_state=seed,
        columns=None if columns is None else list(columns),
        n_columns="all" if columns is None else None,
        drivers=None if drivers is None else list(drivers),
    )
    out = frame.copy()
    without = remove(part, mask)
    for name in part.columns:
        out[name] = without[name]
    return out, int(mask.sum())


def _toml(groups: dict[str, list[str]]) -> str:
    """The modalities as TOML; JSON's text and lists are TOML's too."""
    lines = (
        f"{json.dumps(name)} = {json.dumps(names, ensure_ascii=False)}"
        for name, names in groups.items()
    )
    return "\n".join(["[modalities]", *lines, ""])
