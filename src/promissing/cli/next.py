"""promissing next: what to measure next in every row."""

from __future__ import annotations

from typing import Any

import click

from promissing.cli import _options, _terminal
from promissing.cli._terminal import bar, percent

__all__ = ["next_"]

_FIRST_ROWS = 3  # Rows shown in a terminal if --rows is not given.
_MOST_LINES = 8  # Values of a row in a terminal.


def _costs(ctx: Any, param: Any, parts: Any) -> dict[str, float]:
    """Read NAME=COST."""
    found = {}
    for part in parts:
        name, sign, cost = part.rpartition("=")
        try:
            found[name] = float(cost)
        except ValueError:
            sign = ""
        if not sign:
            raise click.BadParameter(f"{part!r} is not NAME=COST with a number.")
    return found


@click.command("next", cls=_options.Command)
@click.argument("model", type=click.Path())
@_options.FILE_ARGUMENT
@click.option(
    "--background",
    type=_options.FILE,
    help="Table of rows like those of FILE. Default: the order that fit --calibrate stored.",
)
@click.option(
    "--costs",
    type=_options.ListOf(str, "name=cost"),
    callback=_costs,
    default=(),
    help="Costs of columns or modalities; 1 by default.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="A row needs no further measurement if its decision stays, with this probability.",
)
@click.option("--rows", type=_options.ROWS, help="Row positions, starting at 0. Default: all.")
@click.option("--out", type=_options.FILE, help="Table with all rows.")
@_options.strict
@_options.seed
@_options.table_options
@_options.as_json
def next_(
    model: str,
    file: str,
    background: str | None,
    costs: dict[str, float],
    confidence: float,
    rows: tuple[int, ...] | None,
    out: str | None,
    strict: bool,
    seed: int,
    as_json: bool,
    **reading: Any,
) -> None:
    """List what to measure next in the rows of FILE.

    The gain of a value is the expected fall of the loss of MODEL when it becomes known after the
    values before it. The order minimizes the loss per cost over all values; with --costs and no
    --background, it is by the gain per cost of each value alone.
    """
    with _terminal.progress(f"Reading {model}") as step:
        from promissing.io.files import check_target, write_table
        from promissing.uncertainty import AcquisitionPlan

        if out is not None:
            check_target(out)
        fitted = _options.read_model(model)
        if background is None and "acquisition" not in fitted.calibration_:
            raise ValueError(
                "The model holds no order of measurements. Give --background a table of rows like "
                "those of FILE, or fit the model with --calibrate 0.2."
            )
        fitted.set_params(min_known=0.0)
        frame, X, identifier = _options.read_rows(fitted, file, strict=strict, **reading)
        X = _options.select_rows(X, rows, _FIRST_ROWS if out is None and not as_json else None)
        step("Ordering")
        if background is None:
            plan = AcquisitionPlan.from_model(fitted, costs=costs)
        else:
            _, others, _ = _options.read_rows(fitted, background, strict=strict, **reading)
            groups = "modalities" if hasattr(fitted, "modalities_") else None
            plan = AcquisitionPlan(fitted, others, groups=groups, costs=costs, random_state=seed)
        result = plan.next(X, confidence=confidence)
        table = result.to_frame()
        if identifier is not None and identifier not in table:
            table.insert(0, identifier, frame[identifier].to_numpy()[table["row"]])
        if out is not None:
            write_table(table, out)
    if as_json:
        _terminal.print_json({"records": _records(table)})
    elif out != "-":
        _show(result, fitted, X)


def _records(table: Any) -> list[dict[str, Any]]:
    """Return the lines of a table for JSON."""
    lines = table.astype(object).where(table.notna(), None).to_dict("records")
    return [
        {key: value.item() if hasattr(value, "item") else value for key, value in line.items()}
        for line in lines
    ]


def _show(result: Any, model: Any, X: Any) -> None:
    """Print what to measure next in a few rows."""
    out = _terminal.console()
    lines = result.to_frame()
    known = model.known_share(X)
    for i, row in enumerate(result.index):
        title = f"Row {row}, {percent(float(known[i]))} known"
        mine = lines[lines["row"] == row]
        if mine.empty:
            out.print(f"{title}: nothing is missing.")
            continue
        change = percent(float(result.change[i]))
        if result.stop[i]:
            title += f": more values would hardly change the decision (probability {change})"
        else:
            title += f": the decision would change with a probability of {change}"
        largest = float(mine["gain"].max()) or 1.0
        out.print(
            _terminal.table(
                title,
                ("measure next", "gain>", ""),
                (
                    (str(line.group), f"{line.gain:.4f}", bar(line.gain / largest))
                    for line in mine.head(_MOST_LINES).itertuples()
                ),
            )
        )
