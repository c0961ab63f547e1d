"""promissing demo: the main job on generated patients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from promissing.cli._common import clear_errors, progress, terminal
from promissing.cli.compare import table_of

if TYPE_CHECKING:
    import pandas as pd

    from promissing.io.task import Problem

__all__ = ["demo"]

STRATEGIES = ("knn", "mean", "mean+indicator", "fpromissing", "hgb")
EPOCHS = 60


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default="promissing-demo",
    show_default=True,
    help="Directory for table, model and report.",
)
@click.option("--epochs", type=click.IntRange(min=1), default=EPOCHS, show_default=True)
def demo(out: Path, epochs: int) -> None:
    """Fit, compare and report on generated patients.

    376 patients with twelve kinds of measurements, 211 in all, of which some lack some and many
    lack a few; 17 are complete. Who remits?
    """
    with clear_errors():
        from promissing.datasets import make_cohort
        from promissing.io.files import write_text
        from promissing.io.task import pose
        from promissing.report import gather, render

        console, cohort = terminal(), make_cohort()
        frame = cohort.X.assign(remission=cohort.y.map({0: "no", 1: "yes"}))
        problem = pose(frame, "remission", modalities=cohort.modalities)
        _keep(out, frame, cohort.modalities)
        with progress("Training an ensemble that learns to do without"):
            fading = _fading(problem, out, epochs)
        console.print(fading)
        with progress("Cross-validating", 1) as step:
            report = gather(
                problem,
                frame=frame,
                source="generated patients",
                strategies=STRATEGIES,
                settings={"max_iter": epochs},
                command=f"promissing demo --out {out}",
                progress=lambda done, total, text: step(done, total, text=f"Report: {text}"),
            )
        found = report["comparison"]
        title = f"{found['metric']} of {found['folds']}-fold cross-validation"
        console.print(table_of(found["items"], found["metric"], title))
        console.print(found["recommendation"])
        write_text(out / "report.json", json.dumps(report, allow_nan=False))
        write_text(out / "report.html", render(report))
        console.print(f"\nThe report is {out / 'report.html'}: open it in a browser. Go on with:\n")
        for words in (
            f"describe {out / 'cohort.csv'}",
            f"compare {out / 'cohort.csv'} --target remission",
            f"explain {out / 'model.safetensors'} {out / 'cohort.csv'} --rows 0",
        ):
            console.print(f"    promissing {words}", soft_wrap=True)


def _keep(out: Path, frame: pd.DataFrame, modalities: dict[str, list[str]]) -> None:
    """Leave the table and its modalities for the other commands to be tried on."""
    from promissing.io.files import write_table, write_text

    out.mkdir(parents=True, exist_ok=True)
    write_table(frame, out / "cohort.csv")
    lines = [f"{name} = {json.dumps(columns)}" for name, columns in modalities.items()]
    write_text(out / "modalities.toml", "\n".join(["[modalities]", *lines]) + "\n")


def _fading(problem: Problem, out: Path, epochs: int) -> Any:
    """Train on the patients with gaps; a complete one loses a modality at a time."""
    import numpy as np
    from rich import box
    from rich.table import Table

    from promissing.estimators.fusion import build

    whole = problem.X.notna().all(axis=1)
    model = build(problem, max_iter=epochs).fit(problem.X[~whole], problem.y[~whole])
    model.save(out / "model.safetensors")
    remits = list(model.classes_).index("yes")
    prior = model.prior_[remits]
    complete = problem.X[whole]
    sure = np.abs(model.predict_proba(complete)[:, remits] - prior).argmax()
    row = complete.iloc[[sure]].copy()
    title = f"One patient, less and less known (of all {prior:.0%} remit)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("lost", "known", "remits", "members differ by"):
        table.add_column(name, justify="left" if name == "lost" else "right")
    for lost, columns in {"nothing": [], **(problem.modalities or {})}.items():
        row = row.mask(np.isin(row.columns, columns)[None, :])
        table.add_row(
            f"+ {lost}" if columns else lost,
            f"{model.known_share(row)[0]:.0%}",
            f"{model.predict_proba(row)[0, remits]:.2f}",
            f"{model.spread(row)[0, remits]:.2f}",
        )
    return table
