"""promissing fit: train a model on a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from promissing.cli import _options, _terminal
from promissing.cli._terminal import percent

if TYPE_CHECKING:
    from promissing.io import PredictionTask

__all__ = ["fit"]

_MIN_ROWS = 50  # With fewer rows, none are held out.
_FEWEST_CALIBRATED = 9  # For prediction sets and intervals with a confidence of 0.9.
_MOST_CLASSES = 10  # Classes shown in the terminal.


@click.command(cls=_options.Command)
@_options.FILE_ARGUMENT
@click.option("--out", required=True, type=click.Path(), help="Model file (.safetensors).")
@_options.problem_options
@click.option(
    "--compensation",
    type=click.Choice(["none", "shared", "feature"]),
    default="feature",
    help="Weights for missing inputs: none (PROMISSING), one per neuron (shared, mPROMISSING) or "
    "one per neuron and feature.",
)
@_options.epochs
@click.option(
    "--members",
    type=_options.COUNT,
    help="Number of networks in the ensemble. Default: 12, or 8 above 5,000 rows.",
)
@click.option(
    "--augment/--no-augment",
    default=True,
    help="Remove more values during training, so that the model learns from incomplete rows.",
)
@click.option(
    "--hold-out",
    type=click.FloatRange(0, 0.5),
    default=0.2,
    help="Share of the rows that choose the best epoch and give the scores. 0 trains on all rows.",
)
@click.option(
    "--calibrate",
    type=click.FloatRange(0, 0.5),
    default=0.0,
    help="Share of the rows that calibrate prediction sets or intervals, abstention and what to "
    "measure next. They are neither trained on nor held out.",
)
@_options.seed
@_options.table_options
@_options.as_json
def fit(
    file: str,
    out: str,
    compensation: str,
    epochs: int | None,
    members: int | None,
    augment: bool,
    hold_out: float,
    calibrate: float,
    seed: int,
    as_json: bool,
    **given: Any,
) -> None:
    """Train a model that predicts a column of FILE.

    All other columns are features. Missing values, categories, text and dates need no preparation.
    Ctrl-C ends training and keeps the best model so far.
    """
    import numpy as np

    from promissing.estimators.fusion import build
    from promissing.io.files import FileError, check_target

    if hold_out + calibrate >= 1:
        raise ValueError(
            f"--hold-out {hold_out:g} and --calibrate {calibrate:g} leave no rows for training. "
            "Lower one of them."
        )
    if out == "-":
        raise FileError("A model cannot be written to standard output. Give --out a file name.")
    check_target(out, (".safetensors",), special=False)
    _, problem = _options.read_problem(file, **given)
    rows, kept = _split(problem, np.arange(len(problem.y)), calibrate, seed)
    if calibrate and len(kept) < _FEWEST_CALIBRATED:
        raise ValueError(
            f"--calibrate {calibrate:g} sets {len(kept)} of {len(problem.y)} rows aside, and "
            f"calibration needs at least {_FEWEST_CALIBRATED}. Use a larger share or more rows."
        )
    train, held = _split(problem, rows, hold_out / (1 - calibrate), seed)
    if hold_out and not len(held):
        _terminal.note(f"{len(rows)} rows are too few to hold some out, and all epochs run.")
    chosen = {"max_iter": epochs, "n_members": members, "augment": None if augment else False}
    model = build(
        problem,
        random_state=seed,
        compensation=compensation,
        **{name: value for name, value in chosen.items() if value is not None},
        early_stopping=False,  # The held-out rows choose the epoch instead.
        verbose=_terminal.is_interactive(),
    )
    X, y = problem.X, problem.y
    validation = {"X_val": X.iloc[held], "y_val": y.iloc[held]} if len(held) else {}
    model.fit(X.iloc[train], y.iloc[train], **validation)
    model.set_params(verbose=False)
    model.missing_values_ = given["missing_values"]
    model.target_name_ = problem.target
    # These options also hold for tables that are predicted or explained.
    options = {name: given[name] for name in ("decimal", "dates", "kinds", "positive")}
    options["id"] = given["identifier"]
    model.reading_ = {name: value for name, value in options.items() if value}
    summary = _summary(problem, model, train, held)
    if len(kept):
        with _terminal.progress("Calibrating"):
            _calibrate(model, X.iloc[kept], y.iloc[kept].to_numpy(), problem.modalities, seed)
        summary["calibrated_on"] = len(kept)
    model.save(out)
    if as_json:
        _terminal.print_json({**summary, "model": out})
        return
    _show(summary)
    _terminal.note(f"Written to {out}.")


def _split(problem: PredictionTask, rows: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Split rows at random, stratified by class: the larger part, and the given share of them."""
    import numpy as np
    import pandas as pd

    if len(rows) < _MIN_ROWS and share:
        share = 0.0
    order = np.random.default_rng(seed).permutation(rows)
    classes = problem.y.to_numpy() if problem.task == "classification" else np.zeros(max(rows) + 1)
    drawn = pd.Series(classes[order])
    by_class = drawn.groupby(drawn, sort=False)
    # The position of a row within its class, from 0 to 1. Classes of one or two rows are kept.
    position = (by_class.cumcount() + 0.5) / by_class.transform("size")
    held = (position < share).to_numpy()
    return np.sort(order[~held]), np.sort(order[held])


def _calibrate(model: Any, X: Any, y: Any, modalities: Any, seed: int) -> None:
    """Store prediction sets or intervals, abstention and the order of measurements in the model."""
    import warnings

    from promissing.uncertainty import (
        AcquisitionPlan,
        ConformalClassifier,
        ConformalRegressor,
        SelectiveClassifier,
    )

    if hasattr(model, "classes_"):
        ConformalClassifier(model, prefit=True, random_state=seed).conformalize(X, y).store()
        with warnings.catch_warnings():
            # The accuracy is chosen in prediction, and the warning is given there.
            warnings.filterwarnings("ignore", "No threshold reaches")
            SelectiveClassifier(model, prefit=True).calibrate(X, y).store()
    else:
        ConformalRegressor(model, prefit=True, random_state=seed).conformalize(X, y).store()
    groups = "modalities" if modalities else None
    AcquisitionPlan(model, X, groups=groups, random_state=seed).store()


def _summary(problem: PredictionTask, model: Any, train: Any, held: Any) -> dict[str, Any]:
    """Return the data, the model and the scores as a plain dict."""
    missing = problem.X.isna().to_numpy()
    found: dict[str, Any] = {
        "target": problem.target,
        "task": problem.task,
        "rows": len(problem.y),
        "columns": problem.X.shape[1],
        "missing": int(missing.sum()),
        "share": float(missing.mean()),
        "estimator": type(model).__name__,
        "members": model.n_members_,
        "epochs": model.n_iter_,
        "trained_on": len(train),
        "held_out": len(held),
        "calibrated_on": 0,
        "modalities": problem.modalities,
        "prior": model.prior_.tolist(),
        "notes": list(problem.notes),
    }
    if problem.task == "classification":
        found["classes"] = model.classes_.tolist()
    found["scores"] = _scores(problem, model, held) if len(held) else {}
    return found


def _scores(problem: PredictionTask, model: Any, held: Any) -> dict[str, float]:
    """Compute the scores on the held-out rows."""
    import numpy as np
    from sklearn.metrics import mean_absolute_error, r2_score, roc_auc_score

    from promissing import metrics

    X, y = problem.X.iloc[held], problem.y.iloc[held].to_numpy()
    if problem.task == "regression":
        predicted = model.predict(X)
        found = {"mean_absolute_error": float(mean_absolute_error(y, predicted))}
        if len(np.unique(y)) > 1:
            found["r2"] = float(r2_score(y, predicted))
        return found
    proba, classes = model.predict_proba(X), model.classes_
    found = {
        "accuracy": metrics.accuracy(y, proba, classes=classes),
        "accuracy_of_the_largest_class": float((y == classes[model.prior_.argmax()]).mean()),
        "brier_score": metrics.brier_score(y, proba, classes=classes),
    }
    if set(y) == set(classes):
        truth, scores = (y == classes[1], proba[:, 1]) if len(classes) == 2 else (y, proba)
        found["auc"] = float(roc_auc_score(truth, scores, multi_class="ovr", labels=classes))
    return found


def _show(summary: dict[str, Any]) -> None:
    """Print the summary."""
    out = _terminal.console()
    members = f"{summary['members']} member{'s' * (summary['members'] > 1)}"
    rows = {
        "target": f"{summary['target']} ({summary['task']})",
        "table": f"{summary['rows']:,} rows, {summary['columns']:,} columns",
        "missing": f"{summary['missing']:,} cells ({percent(summary['share'])})",
        "modalities": ", ".join(summary["modalities"] or ()),
        "model": f"{summary['estimator']}, {members}, {summary['epochs']} epochs",
    }
    if "classes" in summary:
        pairs = list(zip(summary["classes"], summary["prior"], strict=True))
        shares = [f"{name} {percent(share)}" for name, share in pairs[:_MOST_CLASSES]]
        rows["classes"] = ", ".join(shares) + ", ..." * (len(pairs) > _MOST_CLASSES)
    else:
        rows["mean"] = f"{summary['prior'][0]:.4g}"
    if summary["calibrated_on"]:
        rows["calibrated"] = f"on {summary['calibrated_on']:,} rows"
    title = "Data and model"
    out.print(_terminal.table(title, ("", ""), (pair for pair in rows.items() if pair[1])))
    if summary["scores"]:
        out.print(
            f"Scores on {summary['held_out']:,} held-out rows. They are slightly optimistic, "
            "because these rows also chose the epoch."
        )
        for name, value in summary["scores"].items():
            out.print(f"  {name.replace('_', ' ')}: {value:.3f}")
