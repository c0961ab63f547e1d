"""promissing drift: missing values of new rows beside those in training."""

from __future__ import annotations

from typing import Any

import click

from promissing.cli import _options, _terminal
from promissing.cli._terminal import percent

__all__ = ["drift"]

_MOST_LINES = 20


@click.command(cls=_options.Command)
@click.argument("model", type=click.Path())
@_options.FILE_ARGUMENT
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    help="Rate of false discoveries among the columns that are reported as changed.",
)
@click.option("--out", type=_options.FILE, help="Table with all columns.")
@click.option("--plot", type=click.Path(), help="Picture: .png, .svg or .pdf.")
@_options.strict
@_options.seed
@_options.table_options
@_options.as_json
def drift(
    model: str,
    file: str,
    level: float,
    out: str | None,
    plot: str | None,
    strict: bool,
    seed: int,
    as_json: bool,
    **reading: Any,
) -> None:
    """Compare missing values in FILE with those in training.

    A column has changed if it is missing more or less often than in training. The cost is the
    expected loss of accuracy (or of explained variance) if the column is missing in every row.
    """
    with _terminal.progress(f"Reading {model}") as step:
        from promissing.io.files import check_target, write_table
        from promissing.uncertainty import missingness_drift

        if out is not None:
            check_target(out)
        if plot is not None:
            check_target(plot, (".png", ".svg", ".pdf"))
        fitted = _options.read_model(model)
        _, X, _ = _options.read_rows(fitted, file, strict=strict, **reading)
        step("Comparing")
        found = missingness_drift(fitted, X, level=level, random_state=seed)
        table = found.to_frame()
        if out is not None:
            write_table(table, out)
        if plot is not None:
            import matplotlib

            matplotlib.use("agg")
            _options.draw(found.plot().figure, plot)
    unseen = None if found.unseen is None else int(found.unseen.sum())
    if as_json:
        records = table.astype(object).where(table.notna(), None).to_dict("records")
        document = {
            "rows": found.n_rows,
            "joint_p_value": found.joint_p_value,
            "rows_with_unseen_patterns": unseen,
            "columns": records,
        }
        _terminal.print_json(document)
    elif out != "-":
        _show(found, table, unseen)


def _show(found: Any, table: Any, unseen: int | None) -> None:
    """Print the columns with the largest changes."""
    out = _terminal.console()
    n, changed = len(table), int(found.drifted.sum())
    out.print(
        f"{found.n_rows:,} rows. {changed} of {n} columns are missing more or less often than in "
        f"training. All columns together: p = {found.joint_p_value:.3g}. Rows with a pattern of "
        f"missing values that was never seen: {'unknown' if unseen is None else f'{unseen:,}'}."
    )
    rows = (
        (
            str(line.feature),
            percent(line.before),
            percent(line.after),
            f"{line.p_value:.2g}",
            "changed" if line.drifted else "",
            "" if line.accuracy != line.accuracy else f"{line.accuracy:.3f}",
        )
        for line in table.head(_MOST_LINES).itertuples()
    )
    columns = ("column", "missing in training>", "now>", "p>", "", "cost if missing>")
    title = "Missing values in training and now"
    if n > _MOST_LINES:
        title += f" ({_MOST_LINES} of {n:,} columns)"
    out.print(_terminal.table(title, columns, rows))
