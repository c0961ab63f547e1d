"""promissing explain: which features or modalities a prediction depends on."""

from __future__ import annotations

from typing import Any

import click

from promissing.cli import _options, _terminal
from promissing.cli._terminal import bar, percent, printable, signed_bar

__all__ = ["explain"]

KINDS = ("what-if", "smallest", "shapley", "importance")
_FIRST_ROWS = 3  # Rows shown in a terminal if --rows is not given.
_MOST_BARS = 12  # Bars of a row in a terminal.
_MOST_ROWS = 12  # Rows in a terminal or a picture.
_MEANINGS = {
    "flips": "is decisive",
    "supports": "supports the decision",
    "opposes": "opposes the decision",
    "none": "has no effect",
}


@click.command(cls=_options.Command)
@click.argument("model", type=click.Path())
@_options.FILE_ARGUMENT
@click.option("--rows", type=_options.ROWS, help="Row positions, starting at 0. Default: all.")
@click.option(
    "--groups",
    type=click.Choice(["features", "modalities"]),
    help="What is removed at a time. Default: modalities if the model has them.",
)
@click.option("--kind", type=click.Choice(KINDS), default="what-if", help="See above.")
@click.option(
    "--positive",
    metavar="CLASS",
    help="Class whose probability is explained. Default: as fitted, else the second of two.",
)
@click.option("--out", type=_options.FILE, help="Table or .json file with all rows.")
@click.option("--plot", type=click.Path(), help="Picture of what-if: .png, .svg or .pdf.")
@_options.strict
@_options.seed
@_options.table_options
@_options.as_json
def explain(
    model: str,
    file: str,
    rows: tuple[int, ...] | None,
    groups: str | None,
    kind: str,
    positive: str | None,
    out: str | None,
    plot: str | None,
    strict: bool,
    seed: int,
    as_json: bool,
    **reading: Any,
) -> None:
    """Explain the predictions of MODEL for rows of FILE.

    what-if shows how the prediction changes if a column or modality is made missing. smallest finds
    the smallest set whose removal changes the decision. shapley distributes the prediction over
    columns or modalities. importance is the mean absolute effect over all rows.

    The terminal shows a few rows; --out and --json contain all of them.
    """
    with _terminal.progress(f"Reading {model}") as step:
        _check_outputs(out, plot, kind)
        fitted = _options.read_model(model)
        by = _groups(fitted, groups)
        label = _positive(fitted, positive or (fitted.reading_ or {}).get("positive"))
        frame, X, identifier = _options.read_rows(fitted, file, strict=strict, **reading)
        only_first = kind != "importance" and out is None and not as_json
        X = _options.select_rows(X, rows, _FIRST_ROWS if only_first else None)
        step("Explaining")
        result = _explain(kind, fitted, X, by, label, seed)
        table = _table(kind, result)
        if identifier is not None and "row" in table and identifier not in table:
            table.insert(0, identifier, frame[identifier].to_numpy()[table["row"]])
        if out is not None:
            _write(table, kind, out)
        if plot is not None:
            _draw(result, plot)
    if as_json:
        _terminal.print_json(_document(table, kind))
    elif out != "-":
        _show(kind, result, fitted, X)


def _check_outputs(out: str | None, plot: str | None, kind: str) -> None:
    """Reject files that cannot be written."""
    from promissing.io.files import check_target

    if out is not None:
        check_target(out, (".json",) if out.lower().endswith(".json") else None)
    if plot is not None:
        if kind != "what-if":
            raise ValueError(f"--plot draws what-if, not {kind}. Leave out --kind or --plot.")
        check_target(plot, (".png", ".svg", ".pdf"))


def _groups(model: Any, groups: str | None) -> str | None:
    """Return the value of `groups` for the library."""
    has_modalities = hasattr(model, "modalities_")
    if groups == "modalities" and not has_modalities:
        raise ValueError(
            f"The model, a {type(model).__name__}, has no modalities. Fit with --modalities, or "
            "use --groups features."
        )
    return "modalities" if has_modalities and groups != "features" else None


def _positive(model: Any, text: str | None) -> Any:
    """Return the class label that is written as this text."""
    from promissing.io.task import nearest

    if text is None:
        return None
    classes = getattr(model, "classes_", None)
    if classes is None or len(classes) != 2:
        what = "predicts a number" if classes is None else f"has {len(classes)} classes"
        raise ValueError(f"--positive needs a model of two classes, but the model {what}.")
    labels = {str(label): label for label in classes.tolist()}
    if text not in labels:
        raise ValueError(f"--positive: there is no class {text!r}.{nearest(text, labels)}")
    return labels[text]


def _explain(kind: str, model: Any, X: Any, groups: str | None, positive: Any, seed: int) -> Any:
    """Compute the explanation."""
    from promissing import inspection

    if kind == "smallest":
        return inspection.smallest_change(model, X, groups=groups, positive=positive)
    if kind == "shapley":
        return inspection.shapley(model, X, groups=groups, positive=positive, random_state=seed)
    effects = inspection.what_if(model, X, groups=groups, positive=positive)
    return inspection.importance(effects) if kind == "importance" else effects


def _table(kind: str, result: Any) -> Any:
    """Return the whole result as a table."""
    if kind == "importance":
        return result.reset_index()
    table = result.to_frame()
    return table.rename_axis("row").reset_index() if kind == "smallest" else table


def _document(table: Any, kind: str) -> dict[str, Any]:
    """Return the table as records for JSON, with null for missing values."""
    import pandas as pd

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return list(value)
        if pd.isna(value):
            return None
        return value.item() if hasattr(value, "item") else value

    lines = table.to_dict("records")
    records = [{key: plain(value) for key, value in line.items()} for line in lines]
    return {"kind": kind, "records": records}


def _write(table: Any, kind: str, out: str) -> None:
    """Write the table as JSON or in a table format."""
    from promissing.io.files import write_table

    if out.lower().endswith(".json"):
        _terminal.write_json(out, _document(table, kind))
        return
    if kind == "smallest":
        sets = [None if one is None else "; ".join(map(str, one)) for one in table["set"]]
        table = table.assign(set=sets)
    write_table(table, out)


def _draw(result: Any, plot: str) -> None:
    """Write the picture of what-if."""
    import matplotlib

    matplotlib.use("agg")
    from promissing.inspection.displays import CounterfactualDisplay

    number = min(len(result.prediction), _MOST_ROWS)
    _options.draw(CounterfactualDisplay(result).plot(rows=range(number)).figure_, plot)


def _show(kind: str, result: Any, model: Any, X: Any) -> None:
    """Print the explanation of a few rows."""
    out = _terminal.console()
    if kind == "importance":
        largest = float(result["importance"].max()) or 1.0
        rows = (
            (
                name,
                f"{line.importance:.4f} ± {line.standard_error:.4f}",
                bar(line.importance / largest),
            )
            for name, line in result.head(_MOST_BARS).iterrows()
        )
        title = "Importance: the mean change if missing"
        out.print(_terminal.table(title, ("", "importance>", ""), rows))
        return
    known = model.known_share(X)
    for i in range(min(len(result.index), _MOST_ROWS)):
        row = f"Row {result.index[i]}, {percent(float(known[i]))} known"
        if kind == "smallest":
            out.print(printable(f"{row}: {_smallest(result, i)}"))
        else:
            out.print(_bars(kind, result, i, f"{row}: {_prediction(result, i)}"))


def _prediction(result: Any, i: int) -> str:
    """Describe the prediction of a row."""
    value = f"{result.prediction[i]:.3f}"
    if result.explained is None:
        return value
    return f"the probability of {result.explained[i]} is {value}"


def _bars(kind: str, result: Any, i: int, title: str) -> Any:
    """Draw the largest effects of a row."""
    import numpy as np

    values = result.effects[i] if kind == "what-if" else result.values[i]
    column = "change if missing>" if kind == "what-if" else "contribution>"
    has_meaning = kind == "what-if" and result.kinds is not None
    largest = float(np.abs(values).max())
    rows = [
        [result.groups[g], f"{values[g]:+.4f}", signed_bar(values[g], largest)]
        + ([_MEANINGS[str(result.kinds[i, g])]] if has_meaning else [])
        for g in np.argsort(-np.abs(values), kind="stable")[:_MOST_BARS]
        if result.known[i, g]
    ]
    return _terminal.table(title, ("", column, "", *(["meaning"] if has_meaning else [])), rows)


def _smallest(result: Any, i: int) -> str:
    """Describe the smallest set of a row whose removal changes the decision."""
    decision = f"{result.decision[i]} ({_prediction(result, i)})"
    if result.sets[i] is None:
        tried = "" if result.exact[i] else " that was tried"
        return f"{decision}; no set{tried} changes the decision."
    names = ", ".join(map(str, result.sets[i]))
    smaller = "" if result.exact[i] else " (a smaller set may exist)"
    return f"{decision}; without {names}{smaller} it would be {result.decision_without[i]}."
