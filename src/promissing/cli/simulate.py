"""promissing simulate: remove values from a table, or generate a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from promissing.cli import _options, _terminal
from promissing.cli._options import COLUMNS

__all__ = ["modalities_toml", "simulate"]

MECHANISMS = (
    *("mcar", "mcar-cells", "mar", "mnar"),
    *("mar-logistic", "mnar-logistic", "self-masking"),
)


@click.command(cls=_options.Command)
@click.argument("file", type=_options.FILE, required=False)
@click.option("--cohort", type=_options.COUNT, metavar="N", help="Generate N patients.")
@click.option("--xor", type=_options.COUNT, metavar="N", help="Generate N points of XOR.")
@click.option("--mechanism", type=click.Choice(MECHANISMS), help="Missing-value mechanism.")
@click.option("--ratio", type=click.FloatRange(0, 1), help="Share of the values to remove.")
@click.option("--columns", type=COLUMNS, help="Columns that lose values. Default: all but --keep.")
@click.option(
    "--drivers",
    type=COLUMNS,
    help="Columns that decide under mar and mar-logistic. Default: random.",
)
@click.option("--keep", type=COLUMNS, default=(), help="Columns to leave intact.")
@click.option("--seed", type=int, help="Random seed. Default: 0, or 74 for --cohort.")
@click.option("--out", required=True, type=_options.FILE, help="Table; - is CSV on stdout.")
@click.option("--modalities-out", type=click.Path(), help="TOML file with the cohort's modalities.")
@_options.table_options
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
    """Remove values from FILE or from a generated table.

    With mcar, values are missing completely at random. With mar, missingness depends on another
    column; with mnar, on the removed value itself. Instead of reading FILE, --cohort N generates
    patients with 211 measurements in 12 modalities and the target 'remission', and --xor N
    generates points with the target 'label'.
    """
    if (file is not None) + (cohort is not None) + (xor is not None) != 1:
        raise click.UsageError("Give exactly one of FILE, --cohort N and --xor N.")
    if (mechanism is None) != (ratio is None):
        raise click.UsageError("--mechanism and --ratio must be given together.")
    if file is not None and mechanism is None:
        raise click.UsageError("FILE needs --mechanism and --ratio.")
    if modalities_out is not None and cohort is None:
        raise click.UsageError("--modalities-out requires --cohort.")
    with _terminal.progress("Removing values"):
        from promissing.io.files import check_target, write_table, write_text

        check_target(out)
        if modalities_out is not None:
            check_target(modalities_out, (".toml",))
        frame, target, modalities = _table(file, cohort, xor, seed, reading)
        keep = (*keep, *(name for name in (reading["identifier"], target) if name is not None))
        removed = 0
        if mechanism is not None and ratio is not None:
            frame, removed = _remove(frame, mechanism, ratio, columns, drivers, keep, seed or 0)
        write_table(frame, out)
        if modalities_out is not None:
            write_text(modalities_out, modalities_toml(modalities))
    share = frame.isna().to_numpy().mean()
    rows, width = frame.shape
    number = f"{removed:,} values removed; " if mechanism is not None else ""
    _terminal.note(
        f"{rows:,} rows, {width:,} columns; {number}{100 * share:.1f} % of all cells are missing."
    )


def _table(
    file: str | None, cohort: int | None, xor: int | None, seed: int | None, reading: Any
) -> tuple[Any, str | None, dict[str, list[str]]]:
    """Return the table to start from, its target if known, and its modalities."""
    import pandas as pd

    from promissing import datasets

    if file is not None:
        return _options.read_frame(file, **reading), None, {}
    if xor is not None:
        X, y = datasets.make_xor(xor, random_state=seed or 0)
        return pd.DataFrame(X, columns=["x1", "x2"]).assign(label=y), "label", {}
    seeded: Any = {} if seed is None else {"random_state": seed}
    made = datasets.make_cohort(cohort or 1, **seeded)
    return made.X.assign(remission=made.y), "remission", made.modalities


def _remove(
    frame: Any,
    mechanism: str,
    ratio: float,
    columns: tuple[str, ...] | None,
    drivers: tuple[str, ...] | None,
    keep: tuple[str, ...],
    seed: int,
) -> tuple[Any, int]:
    """Return the table without the removed values, and their number."""
    from promissing.missingness import MECHANISMS as KNOWN
    from promissing.missingness import remove

    for option, names in (("--columns", columns), ("--drivers", drivers), ("--keep", keep)):
        _options.require_columns(option, names or (), frame)
    # A kept column takes part only if --columns or --drivers names it.
    named = {*(columns or ()), *(drivers or ())}
    part = frame[[name for name in frame.columns if name not in keep or name in named]]
    if not part.shape[1]:
        raise ValueError("--keep names every column: no column is left that could lose values.")
    mask = KNOWN[mechanism].mask(
        part,
        ratio=ratio,
        random_state=seed,
        columns=None if columns is None else list(columns),
        n_columns="all" if columns is None else None,
        drivers=None if drivers is None else list(drivers),
    )
    out, without = frame.copy(), remove(part, mask)
    for name in part.columns:
        out[name] = without[name]
    return out, int(mask.sum())


def modalities_toml(modalities: Mapping[str, list[str]]) -> str:
    """Write modalities as TOML, whose strings and lists are those of JSON."""
    lines = (
        f"{json.dumps(name)} = {json.dumps(columns, ensure_ascii=False)}"
        for name, columns in modalities.items()
    )
    return "\n".join(["[modalities]", *lines, ""])
