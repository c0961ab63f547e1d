"""promissing explain: why a model predicts what it predicts."""

from __future__ import annotations

from typing import Any

import click

from promissing.cli._common import (
    Listed,
    clear_errors,
    json_option,
    progress,
    say,
    seed_option,
    show_json,
    shown,
    table_options,
    terminal,
)
from promissing.cli._drawing import bar, new_table, percent, two_sided
from promissing.cli._models import read_model, read_rows

__all__ = ["explain"]

KINDS = ("what-if", "smallest", "shapley", "importance")
_FIRST = 3  # Rows shown in a terminal if none are named.
_BARS = 12  # Bars of a row in a terminal.
_PANELS = 12  # Rows in a picture.
_PICTURES = (".png", ".svg", ".pdf")
_MEANS = {
    "flips": "is decisive",
    "supports": "speaks for the decision",
    "opposes": "speaks against it",
    "none": "does not matter",
}


@click.command()
@click.argument("model", type=click.Path())
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--rows", type=Listed(int, "row"), help="Rows by position, from 0 [all].")
@click.option(
    "--groups",
    type=click.Choice(["features", "modalities"]),
    help="What is made unknown at a time [modalities if the model has them].",
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="what-if",
    show_default=True,
    help="What is asked; see above.",
)
@click.option(
    "--positive",
    metavar="CLASS",
    help="Explain the probability of this one of two classes [as fitted, else the second].",
)
@click.option("--out", type=click.Path(allow_dash=True), help="A table, or .json, of all of it.")
@click.option("--plot", type=click.Path(), help="A picture of what-if: .png, .svg or .pdf.")
@click.option("--strict", is_flag=True, help="Refuse a table that lacks a column.")
@seed_option
@table_options
@json_option
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
    """Ask MODEL what it would say about rows of FILE if something were unknown.

    what-if makes each column or modality unknown and tells how the prediction changes; smallest
    finds the fewest without which the decision changes; shapley shares the prediction out among
    them; importance is the mean size of the effects over all rows.

    The terminal shows a few rows; --out and --json hold all of them.
    """
    with clear_errors():
        with progress(f"Reading {model}") as step:
            from promissing.io.files import check_target

            _check_outputs(out, plot, kind, check_target)
            fitted = read_model(model)
            by = _groups(fitted, groups)
            label = _positive(fitted, positive or (fitted.reading_ or {}).get("positive"))
            named = reading["identifier"] or (fitted.reading_ or {}).get("id")
            frame, X = read_rows(fitted, file, strict=strict, **reading)
            few = kind != "importance" and out is None and not as_json
            X = _chosen(X, rows, few)
            step(text="Asking the model")
            result = _ask(kind, fitted, X, by, label, seed)
            table = _table(kind, result)
            if named in frame.columns and "row" in table and named not in table:
                table.insert(0, named, frame[named].to_numpy()[table["row"]])
            if out is not None:
                _write(table, kind, out)
            if plot is not None:
                _draw(result, plot)
        if as_json:
            show_json(_document(table, kind))
        elif out != "-":
            _show(kind, result, fitted, X)


def _check_outputs(out: str | None, plot: str | None, kind: str, check: Any) -> None:
    if out is not None:
        check(out, (".json",)) if out.lower().endswith(".json") else check(out)
    if plot is not None:
        if kind != "what-if":
            raise ValueError(f"--plot draws what-if, not {kind}. Leave out --kind or --plot.")
        check(plot, _PICTURES)


def _groups(model: Any, groups: str | None) -> str | None:
    has = hasattr(model, "modalities_")
    if groups == "modalities" and not has:
        raise ValueError(
            f"The model, a {type(model).__name__}, has no modalities. Fit with --modalities, or "
            "use --groups features."
        )
    return "modalities" if has and groups != "features" else None


def _positive(model: Any, text: str | None) -> Any:
    """The class that is called so."""
    from promissing.io.task import nearest

    if text is None:
        return None
    classes = getattr(model, "classes_", None)
    if classes is None or len(classes) != 2:
        what = "predicts a number" if classes is None else f"has {len(classes)} classes"
        raise ValueError(f"--positive names one of two classes, and the model {what}.")
    labels = {str(label): label for label in classes.tolist()}
    if text not in labels:
        raise ValueError(f"--positive: there is no class {text!r}.{nearest(text, labels)}")
    return labels[text]


def _chosen(X: Any, rows: tuple[int, ...] | None, few: bool) -> Any:
    """The rows that are asked for, called by their positions."""
    if rows is None:
        rows = tuple(range(min(_FIRST, len(X)) if few else len(X)))
        if few and len(X) > _FIRST:
            say(f"The first {_FIRST} of {len(X):,} rows; choose with --rows, or --out for all.")
    bad = [row for row in rows if not 0 <= row < len(X)]
    if bad or not rows:
        which = f"there is no row {bad[0]}" if bad else "no row is named"
        raise ValueError(f"--rows: {which}. The table has {len(X)} rows, from 0 to {len(X) - 1}.")
    return X.iloc[list(rows)] if hasattr(X, "iloc") else X[list(rows)]


def _ask(kind: str, model: Any, X: Any, groups: str | None, positive: Any, seed: int) -> Any:
    from promissing import inspection as why

    if kind == "smallest":
        return why.smallest_change(model, X, groups=groups, positive=positive)
    if kind == "shapley":
        return why.shapley(model, X, groups=groups, positive=positive, random_state=seed)
    effects = why.what_if(model, X, groups=groups, positive=positive)
    return why.importance(effects) if kind == "importance" else effects


def _table(kind: str, result: Any) -> Any:
    """The result as a table, all of it."""
    if kind == "importance":
        return result.reset_index()
    table = result.to_frame()
    if kind == "smallest":
        table = table.rename_axis("row").reset_index()
    return table


def _document(table: Any, kind: str) -> dict[str, Any]:
    """The table as JSON has it: a list of records, what is not a number as null."""
    import pandas as pd

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return list(value)
        if value is None or pd.isna(value):
            return None
        return value.item() if hasattr(value, "item") else value

    lines = table.to_dict("records")
    return {
        "kind": kind,
        "records": [{key: plain(value) for key, value in line.items()} for line in lines],
    }


def _write(table: Any, kind: str, out: str) -> None:
    import json

    from promissing.io.files import write_table, write_text

    if out.lower().endswith(".json"):
        write_text(out, json.dumps(_document(table, kind), indent=1, ensure_ascii=False) + "\n")
        return
    if kind == "smallest":
        sets = [None if one is None else "; ".join(map(str, one)) for one in table["set"]]
        table = table.assign(set=sets)
    write_table(table, out)


def _draw(result: Any, plot: str) -> None:
    import io
    from pathlib import Path

    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    from promissing.inspection.displays import CounterfactualDisplay
    from promissing.io.files import write_bytes

    number = min(len(result.prediction), _PANELS)
    display = CounterfactualDisplay(result).plot(rows=range(number))
    drawn = io.BytesIO()
    display.figure_.savefig(drawn, format=Path(plot).suffix[1:].lower(), dpi=150)
    plt.close(display.figure_)
    write_bytes(plot, drawn.getvalue())


def _show(kind: str, result: Any, model: Any, X: Any) -> None:
    console = terminal()
    if kind == "importance":
        table = new_table("Importance: the mean change if unknown", "", "importance>", "")
        largest = float(result["importance"].max()) or 1.0
        for name, line in result.head(_BARS).iterrows():
            size = float(line["importance"])
            said = f"{size:.4f} ± {line['standard_error']:.4f}"
            table.add_row(shown(name), said, bar(size / largest))
        console.print(table)
        return
    known = model.known_share(X)
    shown_rows = range(min(len(result.index), _PANELS))
    for i in shown_rows:
        row = f"Row {result.index[i]}, {percent(float(known[i]))} known"
        if kind == "smallest":
            console.print(f"{row}: {_smallest(result, i)}")
        else:
            console.print(_bars(kind, result, i, f"{row}: {_said(result, i)}"))


def _said(result: Any, i: int) -> str:
    """What is predicted for a row."""
    value = f"{result.prediction[i]:.3f}"
    if result.explained is None:
        return value
    return f"the probability of {shown(result.explained[i])} is {value}"


def _bars(kind: str, result: Any, i: int, title: str) -> Any:
    import numpy as np

    values = result.effects[i] if kind == "what-if" else result.values[i]
    what = "change if unknown>" if kind == "what-if" else "adds>"
    judged = kind == "what-if" and result.kinds is not None
    table = new_table(title, "", what, "", *(["so it"] if judged else []))
    order = np.argsort(-np.abs(values), kind="stable")[:_BARS]
    largest = float(np.abs(values).max())
    for g in order:
        if not result.known[i, g]:
            continue
        value = float(values[g])
        cells = [shown(result.groups[g]), f"{value:+.4f}", two_sided(value, largest)]
        table.add_row(*cells, *([_MEANS[str(result.kinds[i, g])]] if judged else []))
    return table


def _smallest(result: Any, i: int) -> str:
    decision = f"{shown(result.decision[i])} ({_said(result, i)})"
    if result.sets[i] is None:
        sure = "nothing" if result.exact[i] else "nothing that was tried"
        return f"{decision}; {sure} changes that."
    names = shown(", ".join(map(str, result.sets[i])))
    other = shown(result.decision_without[i])
    least = "" if result.exact[i] else ", perhaps less"
    return f"{decision}; without {names}{least} it would be {other}."
