"""promissing predict: what a model says about new rows, and where it does not know."""

from __future__ import annotations

from typing import Any

import click

from promissing.cli._common import NAMED, clear_errors, progress, say, table_options
from promissing.cli._models import read_model, read_rows

__all__ = ["predict"]


@click.command()
@click.argument("model", type=click.Path())
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--out",
    type=click.Path(allow_dash=True),
    default="-",
    show_default=True,
    help="The predictions; - is CSV on standard output.",
)
@click.option(
    "--unsure-below",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="Unsure if no class is as probable as this.",
)
@click.option(
    "--min-known",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="Unsure if less than this share of the row is known.",
)
@click.option(
    "--max-spread",
    type=click.FloatRange(min=0),
    metavar="AMOUNT",
    help="Of a number: unsure if the ensemble members disagree more (standard deviation). Rows "
    "with missing values are unsure too, unless --min-known says how much must be known.",
)
@click.option("--keep", type=NAMED, default=(), help="Columns to carry along, such as an id.")
@click.option("--strict", is_flag=True, help="Refuse a table that lacks a column.")
@table_options
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

    For every row: the prediction, the probability of each class, how much of the row was known, and
    whether the model is unsure ("I do not know") by the thresholds you set. A row of which nothing
    is known is always unsure.
    """
    with clear_errors():
        with progress(f"Reading {model}") as step:
            from promissing.io.files import check_target, write_table

            check_target(out)
            fitted = read_model(model)
            _check_thresholds(fitted, unsure_below, max_spread)
            step(text=f"Reading {file}")
            frame, X = read_rows(fitted, file, strict=strict, keep=keep, **reading)
            known: str = reading["identifier"] or (fitted.reading_ or {}).get("id", "")
            if known in frame.columns and known not in keep:
                keep = (known, *keep)
            step(text="Predicting")
            least = _least_known(fitted.min_known if min_known is None else min_known, max_spread)
            fitted.set_params(min_known=0.0)  # Such rows are marked, not refused.
            made = _predict(fitted, X)
            unsure = made["unsure"] = _unsure(made, unsure_below, least, max_spread)
            made.pop("certainty", None)
            write_table(_joined(frame, keep, made), out)
        say(
            f"{len(unsure):,} rows predicted, {int(unsure.sum()):,} of them unsure"
            f" ({100 * unsure.mean():.1f} %)."
        )


def _check_thresholds(model: Any, unsure_below: float | None, max_spread: float | None) -> None:
    classifies = hasattr(model, "classes_")
    if unsure_below is not None and not classifies:
        raise ValueError(
            "--unsure-below is about the probability of a class, and the model predicts a number. "
            "Use --max-spread or --min-known."
        )
    if max_spread is not None and classifies:
        raise ValueError(
            "--max-spread is for models of a number, and this one tells classes apart. Use "
            "--unsure-below or --min-known."
        )
    if max_spread is not None and model.n_members_ < 2:
        raise ValueError("--max-spread needs a model of several members: fit with --members 4.")


def _least_known(min_known: float, max_spread: float | None) -> float:
    """The share of a row that must be known.

    The ensemble members agree on the prior where nothing is known: the spread falls as values go
    missing. A small spread is thus no reason to accept a row with missing values. Without a share
    set by the user, --max-spread accepts complete rows only.
    """
    if max_spread is None or min_known > 0:
        return min_known
    say("--max-spread alone accepts complete rows only; --min-known sets another share.")
    return 1.0


def _predict(model: Any, X: Any) -> dict[str, Any]:
    """The columns to write by name; and `certainty`, by which rows are judged."""
    made: dict[str, Any] = {}
    if hasattr(model, "classes_"):
        proba = model.predict_proba(X)
        made["prediction"] = model.classes_[proba.argmax(axis=1)]
        made |= {f"p_{label}": proba[:, k] for k, label in enumerate(model.classes_.tolist())}
        made["certainty"] = proba.max(axis=1)
    else:
        made["prediction"] = model.predict(X)
        if model.n_members_ > 1:
            made["spread"] = model.spread(X)
    made["known"] = model.known_share(X)
    return made


def _unsure(
    made: dict[str, Any], below: float | None, min_known: float, max_spread: float | None
) -> Any:
    unsure = (made["known"] < min_known) | (made["known"] == 0)
    if below is not None:
        unsure = unsure | (made["certainty"] < below)
    if max_spread is not None:
        unsure = unsure | (made["spread"] > max_spread)
    return unsure


def _joined(frame: Any, keep: tuple[str, ...], made: dict[str, Any]) -> Any:
    """The columns to carry along, and those of the predictions."""
    import pandas as pd

    from promissing.io.task import nearest

    for name in keep:
        if name not in frame.columns:
            raise ValueError(f"--keep: there is no column {name!r}.{nearest(name, frame.columns)}")
        if name in made:
            raise ValueError(
                f"--keep names {name!r}, and a column of the predictions is called so. Rename it "
                "in the table."
            )
    return pd.DataFrame({**{name: frame[name].array for name in keep}, **made})
