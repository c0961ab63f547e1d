"""promissing demo: fit, compare and report on generated patients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from promissing.cli import _options, _terminal
from promissing.cli.compare import comparison_table
from promissing.cli.simulate import modalities_toml

if TYPE_CHECKING:
    from promissing.io import PredictionTask

__all__ = ["demo"]

STRATEGIES = ("knn", "mean", "mean+indicator", "fpromissing", "hgb")


@click.command(cls=_options.Command)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default="promissing-demo",
    help="Directory for the table, the model and the report.",
)
@click.option("--epochs", type=_options.COUNT, default=60, help="Maximum number of epochs.")
def demo(out: Path, epochs: int) -> None:
    """Fit, compare and report on generated patients.

    The table has 376 patients with 211 measurements in 12 modalities; only 17 patients are
    complete. The model predicts remission.
    """
    from promissing.datasets import make_cohort
    from promissing.io import define_task
    from promissing.io.files import write_table, write_text
    from promissing.report import gather, render

    terminal, cohort = _terminal.console(), make_cohort()
    frame = cohort.X.assign(remission=cohort.y.map({0: "no", 1: "yes"}))
    problem = define_task(frame, "remission", modalities=cohort.modalities)
    out.mkdir(parents=True, exist_ok=True)
    write_table(frame, out / "cohort.csv")
    write_text(out / "modalities.toml", modalities_toml(cohort.modalities))
    with _terminal.progress("Training an ensemble"):
        table = _information_loss(problem, out, epochs)
    terminal.print(table)
    with _terminal.progress("Cross-validating", 1) as step:
        report = gather(
            problem,
            frame=frame,
            source="generated patients",
            strategies=STRATEGIES,
            settings={"max_iter": epochs, "n_members": 4},
            command=f"promissing demo --out {out}",
            progress=lambda done, total, text: step(f"Report: {text}", done, total),
        )
    found = report["comparison"]
    title = f"{found['metric']} of {found['folds']}-fold cross-validation"
    terminal.print(comparison_table(found["items"], found["metric"], title))
    terminal.print(found["recommendation"])
    _terminal.write_json(out / "report.json", report)
    write_text(out / "report.html", render(report))
    terminal.print(f"\nThe report is {out / 'report.html'}: open it in a browser. Next steps:\n")
    for words in (
        f"describe {out / 'cohort.csv'}",
        f"compare {out / 'cohort.csv'} --target remission",
        f"explain {out / 'model.safetensors'} {out / 'cohort.csv'} --rows 0",
    ):
        terminal.print(f"    promissing {words}", soft_wrap=True)


def _information_loss(problem: PredictionTask, out: Path, epochs: int) -> Any:
    """Train on the incomplete patients, and remove the modalities of a complete one in turn."""
    import numpy as np

    from promissing.estimators.fusion import build

    complete = problem.X.notna().all(axis=1)
    model = build(problem, max_iter=epochs, n_members=4).fit(
        problem.X[~complete], problem.y[~complete]
    )
    model.save(out / "model.safetensors")
    yes = list(model.classes_).index("yes")
    prior = model.prior_[yes]
    patients = problem.X[complete]
    most_certain = np.abs(model.predict_proba(patients)[:, yes] - prior).argmax()
    row = patients.iloc[[most_certain]].copy()
    title = f"One patient, with modalities removed in turn ({prior:.0%} of all patients remit)"
    rows = []
    for removed, columns in {"nothing": [], **(problem.modalities or {})}.items():
        row = row.mask(np.isin(row.columns, columns)[None, :])
        known, proba = model.known_share(row)[0], model.predict_proba(row)[0, yes]
        name, spread = f"+ {removed}" if columns else removed, model.spread(row)[0, yes]
        rows.append((name, f"{known:.0%}", f"{proba:.2f}", f"{spread:.2f}"))
    return _terminal.table(title, ("removed", "known>", "P(remission)>", "spread>"), rows)
