"""promissing predict: predict new rows, and mark uncertain ones."""

from __future__ import annotations

from typing import Any

import click

from promissing.cli import _options, _terminal

__all__ = ["predict"]

_LEVEL = 0.9  # The confidence level of intervals for --max-width alone.


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
    "--coverage",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="LEVEL",
    help="Add prediction sets or intervals that hold the truth with this probability. The model "
    "must be calibrated: fit --calibrate.",
)
@click.option(
    "--abstain-accuracy",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="ACCURACY",
    help="Classification: abstain from rows that are not certain enough, so that the decided ones "
    "reach this accuracy. The model must be calibrated.",
)
@click.option(
    "--max-width",
    type=click.FloatRange(0, min_open=True),
    metavar="WIDTH",
    help="Regression: abstain from rows whose prediction interval is wider. The model must be "
    "calibrated.",
)
@click.option(
    "--max-spread",
    type=click.FloatRange(0),
    metavar="AMOUNT",
    help="Deprecated: use --max-width. Regression: a row is unsure if the standard deviation "
    "between the ensemble members is larger.",
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
    coverage: float | None,
    abstain_accuracy: float | None,
    max_width: float | None,
    max_spread: float | None,
    keep: tuple[str, ...],
    strict: bool,
    **reading: Any,
) -> None:
    """Predict the rows of FILE with MODEL.

    The output has the prediction of each row, the probability of each class, the share of known
    values and whether the row is unsure by the given thresholds. A row without any known value is
    always unsure. A prediction from which the model abstains is blank, and the reason is given.
    """
    with _terminal.progress(f"Reading {model}") as step:
        import pandas as pd

        from promissing.io.files import check_target, write_table

        check_target(out)
        fitted = _options.read_model(model)
        _check_thresholds(fitted, unsure_below, max_spread, abstain_accuracy, max_width)
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
        if coverage is not None or max_width is not None:
            _add_sets(made, fitted, X, coverage or _LEVEL, shown=coverage is not None)
        if abstain_accuracy is not None:
            _abstain_by_accuracy(made, fitted, X, abstain_accuracy)
        if max_width is not None:
            _abstain_by_width(made, max_width, shown=coverage is not None)
        for name in keep:
            if name in made:
                raise ValueError(
                    f"--keep: the predictions have a column {name!r} too. Rename it in the table."
                )
        write_table(pd.DataFrame({**{name: frame[name].array for name in keep}, **made}), out)
    unsure = made["unsure"]
    _terminal.note(
        f"{len(unsure):,} rows predicted, {int(unsure.sum()):,} of them unsure"
        f" ({100 * unsure.mean():.1f} %)."
    )


def _check_thresholds(
    model: Any,
    unsure_below: float | None,
    max_spread: float | None,
    abstain_accuracy: float | None,
    max_width: float | None,
) -> None:
    """Reject thresholds that do not apply to the model."""
    classifies = hasattr(model, "classes_")
    for_classes = {"--unsure-below": unsure_below, "--abstain-accuracy": abstain_accuracy}
    for_numbers = {"--max-spread": max_spread, "--max-width": max_width}
    for option, value in (for_numbers if classifies else for_classes).items():
        if value is not None and classifies:
            raise ValueError(
                f"{option} is for regression, but the model is a classifier. Use --unsure-below, "
                "--abstain-accuracy or --min-known."
            )
        if value is not None:
            raise ValueError(
                f"{option} is for classes, but the model predicts a number. Use --max-width or "
                "--min-known."
            )
    if max_spread is not None:
        _terminal.note(
            "--max-spread is deprecated: the spread of ensemble members is not the uncertainty of "
            "a prediction. Use --max-width with a calibrated model."
        )
        if model.n_members_ < 2:
            raise ValueError("--max-spread needs a model of several members: fit with --members 4.")


def _add_sets(made: dict[str, Any], model: Any, X: Any, level: float, *, shown: bool) -> None:
    """Add the prediction set or interval of every row."""
    from promissing.uncertainty import ConformalClassifier, ConformalRegressor

    _require_calibration(model, "--coverage" if shown else "--max-width")
    if hasattr(model, "classes_"):
        sets = ConformalClassifier.from_model(model).predict_set(X, confidence_level=level)
        made["set"] = sets.to_frame()["set"].to_numpy()
        return
    ends = ConformalRegressor.from_model(model).predict_interval(X, confidence_level=level)
    made["lower"], made["upper"] = ends[:, 0], ends[:, 1]


def _abstain_by_accuracy(made: dict[str, Any], model: Any, X: Any, accuracy: float) -> None:
    """Leave the predictions blank that are not certain enough."""
    from promissing.uncertainty import SelectiveClassifier

    _require_calibration(model, "--abstain-accuracy", "selective")
    result = SelectiveClassifier.from_model(model, accuracy=accuracy).predict_selective(X)
    made["prediction"], made["reason"] = result.prediction, result.reason
    made["unsure"] = made["unsure"] | result.abstained


def _abstain_by_width(made: dict[str, Any], max_width: float, *, shown: bool) -> None:
    """Leave the predictions blank whose interval is too wide."""
    import numpy as np

    width = made["upper"] - made["lower"]
    empty = made["known"] == 0
    wide = (width > max_width) | empty
    made["prediction"] = np.where(wide, np.nan, made["prediction"])
    texts = [f"interval width {w:.4g} is above {max_width:g}" for w in width]
    made["reason"] = np.where(wide, np.where(empty, "no value is known", texts), "")
    made["unsure"] = made["unsure"] | wide
    if not shown:
        del made["lower"], made["upper"]


def _require_calibration(model: Any, option: str, section: str = "conformal") -> None:
    if section not in model.calibration_:
        raise ValueError(f"{option} needs a calibrated model: fit it with --calibrate 0.2.")


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
