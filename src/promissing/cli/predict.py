"""promissing predict: predict new rows, and mark uncertain ones."""

from __future__ import annotations

from typing import Any

import click

from promissing.cli import _options, _terminal

__all__ = ["predict"]


@click.command(cls=_options.Command)
@click.argument("model", type=click.Path())
@_options.FILE_ARGUMENT
@click.option("--out", type=_options.FILE, default="-", help="Predictions; - is CSV on stdout.")
@click.option(
    "--unsure-below",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="A row is unsure if its highest class probability is below P.",
)
@click.option(
    "--min-known",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="A row is unsure if less than this share of its values is known.",
)
@click.option(
    "--max-spread",
    type=click.FloatRange(0),
    metavar="AMOUNT",
    help="Regression: a row is unsure if the standard deviation between the ensemble members is "
    "larger. Rows with missing values are unsure too, unless --min-known is given.",
)
@click.option("--keep", type=_options.COLUMNS, default=(), help="Columns to copy to the output.")
@_options.strict
@_options.table_options
def predict(
    model: str,
    file: str,
    out: str,
    unsure_below: float | None,
    min_known: float | None,
    max_spread: float | None,
    keep: tuple[str, ...],
    strict: bool,
    **reading: Any,
) -> None:
    """Predict the rows of FILE with MODEL.

    The output has the prediction of each row, the probability of each class, the share of known
    values and whether the row is unsure by the given thresholds. A row without any known value is
    always unsure.
    """
    with _terminal.progress(f"Reading {model}") as step:
        import pandas as pd

        from promissing.io.files import check_target, write_table

        check_target(out)
        fitted = _options.read_model(model)
        _check_thresholds(fitted, unsure_below, max_spread)
        step(f"Reading {file}")
        frame, X, identifier = _options.read_rows(fitted, file, strict=strict, keep=keep, **reading)
        _options.require_columns("--keep", keep, frame)
        if identifier is not None and identifier not in keep:
            keep = (identifier, *keep)
        step("Predicting")
        least = _least_known(fitted.min_known if min_known is None else min_known, max_spread)
        fitted.set_params(min_known=0.0)  # Rows with few known values are marked, not rejected.
        made, certainty = _predict(fitted, X)
        unsure = (made["known"] < least) | (made["known"] == 0)
        if unsure_below is not None:
            unsure = unsure | (certainty < unsure_below)
        if max_spread is not None:
            unsure = unsure | (made["spread"] > max_spread)
        made["unsure"] = unsure
        for name in keep:
            if name in made:
                raise ValueError(
                    f"--keep: the predictions have a column {name!r} too. Rename it in the table."
                )
        write_table(pd.DataFrame({**{name: frame[name].array for name in keep}, **made}), out)
    _terminal.note(
        f"{len(unsure):,} rows predicted, {int(unsure.sum()):,} of them unsure"
        f" ({100 * unsure.mean():.1f} %)."
    )


def _check_thresholds(model: Any, unsure_below: float | None, max_spread: float | None) -> None:
    """Reject thresholds that do not apply to the model."""
    classifies = hasattr(model, "classes_")
    if unsure_below is not None and not classifies:
        raise ValueError(
            "--unsure-below is a class probability, but the model predicts a number. Use "
            "--max-spread or --min-known."
        )
    if max_spread is not None and classifies:
        raise ValueError(
            "--max-spread is for regression, but the model is a classifier. Use --unsure-below or "
            "--min-known."
        )
    if max_spread is not None and model.n_members_ < 2:
        raise ValueError("--max-spread needs a model of several members: fit with --members 4.")


def _least_known(min_known: float, max_spread: float | None) -> float:
    """Return the share of known values that a row needs.

    The spread becomes smaller as values go missing, because the ensemble members agree on the prior
    for an empty row. A small spread is thus no reason to accept a row with missing values.
    """
    if max_spread is None or min_known > 0:
        return min_known
    _terminal.note("--max-spread alone accepts complete rows only; --min-known sets another share.")
    return 1.0


def _predict(model: Any, X: Any) -> tuple[dict[str, Any], Any]:
    """Return the columns to write, and the highest class probability of each row."""
    full = model.predict_full(X)
    made: dict[str, Any] = {}
    certainty = None
    if hasattr(model, "classes_"):
        made["prediction"] = model.classes_[full.mean.argmax(axis=1)]
        made |= {f"p_{label}": full.mean[:, k] for k, label in enumerate(model.classes_.tolist())}
        certainty = full.mean.max(axis=1)
    else:
        made["prediction"] = full.mean
        if model.n_members_ > 1:
            made["spread"] = full.spread
    made["known"] = full.known_share
    return made, certainty
