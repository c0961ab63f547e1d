"""promissing fit: a model from a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from promissing.cli._common import (
    clear_errors,
    json_option,
    on_terminal,
    problem_options,
    read_problem,
    say,
    seed_option,
    show_json,
    shown,
    table_options,
    terminal,
)
from promissing.cli._drawing import new_table, percent

if TYPE_CHECKING:
    from promissing.io.task import Problem

__all__ = ["fit"]

_FEWEST = 50  # With fewer rows all are needed to learn from.


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--out", required=True, type=click.Path(), help="The model: a .safetensors file.")
@problem_options
@click.option(
    "--compensation",
    type=click.Choice(["none", "shared", "feature"]),
    default="feature",
    show_default=True,
    help="What a neuron adds for what is missing: none is PROMISSING, shared mPROMISSING.",
)
@click.option(
    "--epochs",
    type=click.IntRange(min=1),
    help="The most epochs; by default the estimator's, by the number of rows.",
)
@click.option(
    "--members",
    type=click.IntRange(min=1),
    help="Networks in the ensemble.  [default: 12, above 5,000 rows 8, with modalities 4]",
)
@click.option(
    "--augment/--no-augment",
    default=True,
    show_default=True,
    help="Make more gaps while training, so that the model knows what it does not know.",
)
@click.option(
    "--hold-out",
    type=click.FloatRange(0, 0.5),
    default=0.2,
    show_default=True,
    help="The share of rows to choose the epoch by and to score on; 0 learns from all.",
)
@seed_option
@table_options
@json_option
def fit(
    file: str,
    out: str,
    compensation: str,
    epochs: int | None,
    members: int | None,
    augment: bool,
    hold_out: float,
    seed: int,
    as_json: bool,
    **given: Any,
) -> None:
    """Learn to predict a column of FILE from all others, and write the model to OUT.

    Gaps, categories, text and dates go in as they are. Ctrl-C ends training and keeps the best
    model so far.
    """
    with clear_errors():
        from promissing.estimators.fusion import build
        from promissing.io.files import FileError, check_target

        if out == "-":
            raise FileError("A model is a file: give --out a name that ends in .safetensors.")
        check_target(out, (".safetensors",), special=False)
        problem = read_problem(file, **given)
        train, held = _split(problem, hold_out, seed)
        asked = {"max_iter": epochs, "n_members": members, "augment": None if augment else False}
        model = build(
            problem,
            random_state=seed,
            compensation=compensation,
            **{name: value for name, value in asked.items() if value is not None},
            early_stopping=False,  # The rows held out do that.
            verbose=on_terminal(),
        )
        X, y = problem.X, problem.y
        more = {"X_val": X.iloc[held], "y_val": y.iloc[held]} if len(held) else {}
        model.fit(X.iloc[train], y.iloc[train], **more)
        model.set_params(verbose=False)
        model.missing_values_ = given["missing_values"]
        model.target_name_ = problem.target
        model.reading_ = _reading(given)
        told = _tell(problem, model, train, held)
        model.save(out)
        if as_json:
            show_json({**told, "model": out})
            return
        _show(told)
        say(f"Written to {out}.")


def _reading(given: dict[str, Any]) -> dict[str, Any]:
    """The options that hold for tables to predict and explain too."""
    remembered = ("decimal", "dates", "kinds", "positive")
    told = {name: given[name] for name in remembered if given[name]}
    return told | ({"id": given["identifier"]} if given["identifier"] else {})


def _split(problem: Problem, share: float, seed: int) -> tuple[Any, Any]:
    """The rows to learn from and those held out, every class in its share."""
    import numpy as np
    import pandas as pd

    n = len(problem.y)
    if n < _FEWEST and share:
        say(f"{n} rows are too few to hold some out: there is no score, and all epochs are run.")
        share = 0.0
    order = np.random.default_rng(seed).permutation(n)
    classes = problem.y.to_numpy() if problem.task == "classification" else np.zeros(n)
    drawn = pd.Series(classes[order])
    own = drawn.groupby(drawn, sort=False)
    # The place of a row within its class, 0 to 1. A class of one or two rows keeps them all.
    place = (own.cumcount() + 0.5) / own.transform("size")
    held = (place < share).to_numpy()
    return np.sort(order[~held]), np.sort(order[held])


def _tell(problem: Problem, model: Any, train: Any, held: Any) -> dict[str, Any]:
    """What was learnt from what, as a plain dict."""
    missing = problem.X.isna().to_numpy()
    told: dict[str, Any] = {
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
        "modalities": problem.modalities,
        "prior": model.prior_.tolist(),
        "notes": list(problem.notes),
    }
    if problem.task == "classification":
        told["classes"] = model.classes_.tolist()
    told["scores"] = _scores(problem, model, held) if len(held) else {}
    return told


def _scores(problem: Problem, model: Any, held: Any) -> dict[str, float]:
    """How well the rows held out are predicted."""
    import numpy as np
    from sklearn import metrics

    from promissing import metrics as knowing

    X, y = problem.X.iloc[held], problem.y.iloc[held].to_numpy()
    if problem.task == "regression":
        guess = model.predict(X)
        found = {"mean_absolute_error": metrics.mean_absolute_error(y, guess)}
        if len(np.unique(y)) > 1:
            found["r2"] = metrics.r2_score(y, guess)
        return {name: float(value) for name, value in found.items()}
    proba, classes = model.predict_proba(X), model.classes_
    found = {
        "accuracy": knowing.accuracy(y, proba, classes=classes),
        "accuracy_of_the_largest_class": float((y == classes[model.prior_.argmax()]).mean()),
        "brier_score": knowing.brier_score(y, proba, classes=classes),
    }
    if set(y) == set(classes):
        if len(classes) == 2:
            found["auc"] = float(metrics.roc_auc_score(y == classes[1], proba[:, 1]))
        else:
            found["auc"] = float(metrics.roc_auc_score(y, proba, multi_class="ovr", labels=classes))
    return found


def _show(told: dict[str, Any]) -> None:
    console = terminal()
    table = new_table("What was learnt from what", "what", "which")
    table.show_header = False
    table.add_row("target", f"{shown(told['target'])} ({told['task']})")
    table.add_row("table", f"{told['rows']:,} rows, {told['columns']:,} columns")
    table.add_row("missing", f"{told['missing']:,} cells ({percent(told['share'])})")
    if told["modalities"]:
        table.add_row("modalities", shown(", ".join(told["modalities"])))
    members = f"{told['members']} member{'s' * (told['members'] > 1)}"
    table.add_row("model", f"{told['estimator']}, {members}, {told['epochs']} epochs")
    if "classes" in told:
        pairs = zip(told["classes"], told["prior"], strict=True)
        few = [f"{shown(name)} {percent(share)}" for name, share in pairs][:10]
        table.add_row("classes", ", ".join(few) + (", ..." if len(told["classes"]) > 10 else ""))
    else:
        table.add_row("mean", f"{told['prior'][0]:.4g}")
    console.print(table)
    if told["scores"]:
        console.print(
            f"On {told['held_out']:,} rows held out, which chose the epoch and so flatter a little:"
        )
        for name, value in told["scores"].items():
            console.print(f"  {name.replace('_', ' ')}: {value:.3f}")
