"""The paper's clinical study: many modalities, some missing, and a model that may not know.

Four parts, on the generated cohort and, the first two, on real tables of a directory:

- *scores*: repeated cross-validation of every strategy with the paper's fusion network;
- *fading*: trained on the patients with gaps, applied to the complete ones as modalities vanish
  in random order;
- *knowing*: trained without balancing, judged on freshly generated patients by how many of their
  modalities are missing;
- *why*: what would change if a modality were unknown, and which modalities matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from promissing import datasets
from promissing.compare import strategies
from studies._clinical_tasks import COHORT, fade, know, score, why
from studies.runner import Batch, Summary, run

__all__ = ["COHORT", "FADING", "STRATEGIES", "run_study"]

STRATEGIES = (
    "drop-features",
    "knn",
    "mean+indicator",
    "hgb",
    "promissing",
    "mpromissing",
    "fpromissing",
)
FADING = ("knn", "hgb", "promissing", "mpromissing", "fpromissing")


def run_study(
    out: Path,
    *,
    tables: Sequence[str] = (COHORT,),
    names: Sequence[str] = STRATEGIES,
    folds: int = 10,
    repetitions: int = 10,
    orders: int = 100,
    epochs: int = 200,
    fresh: int = 20_000,
    data: Path | None = None,
    seed: int = 0,
    resume: bool = False,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Summary:
    """Run the study, or what is left of it; results go to `out`/results.sqlite as they finish.

    Parameters
    ----------
    out : path
        A directory; it is made.
    tables : sequence of str
        "cohort", which is generated, and tables of `data` that have modalities.
    names : sequence of str
        Strategies, of `STRATEGIES`.
    folds, repetitions : int, default=10
        Of the cross-validation.
    orders : int, default=100
        In which modalities vanish.
    epochs : int, default=200
    fresh : int, default=20,000
        Freshly generated patients to judge by.
    data : path, optional
        Where the tables are: see `promissing.datasets.load`.
    seed : int, default=0
    resume, jobs, progress
        As in the other studies.
    """
    names = strategies.check(names)
    for name in names:
        if name not in STRATEGIES:
            raise ValueError(
                f"The strategy {name!r} is not part of this study: {', '.join(STRATEGIES)}."
            )
    for what, value, least in (
        ("folds", folds, 2),
        ("repetitions", repetitions, 1),
        ("orders", orders, 1),
        ("epochs", epochs, 1),
        ("fresh", fresh, 100),
    ):
        if value < least:
            raise ValueError(f"`{what}` must be at least {least}. Received: {value}")
    tables = [_slug(table, data) for table in dict.fromkeys(tables)]
    if not tables:
        raise ValueError('Name at least one table, such as "cohort".')
    batches = [
        Batch(
            f"scores/{table}/{name}/{repetition:02d}",
            score,
            {"table": table, "name": name, "repetition": repetition, "folds": folds}
            | {"epochs": epochs, "seed": seed},
        )
        for table in tables
        for name in names
        for repetition in range(repetitions)
    ]
    fading = [name for name in FADING if name in names]
    batches += [
        Batch(
            f"fading/{table}/{name}",
            fade,
            {"table": table, "name": name, "orders": orders, "epochs": epochs, "seed": seed},
            cost=2.0,
        )
        for table in tables
        for name in fading
    ]
    if COHORT in tables:
        batches += [
            Batch(
                f"knowing/{COHORT}/{name}",
                know,
                {"name": name, "fresh": fresh, "epochs": epochs, "seed": seed},
                cost=8.0,
            )
            for name in fading
        ]
        batches += [
            Batch(f"why/{COHORT}/{name}", why, {"name": name, "epochs": epochs, "seed": seed}, 3.0)
            for name in ("mpromissing",)
            if name in fading
        ]
    settings = {
        "tables": tables,
        "strategies": list(names),
        "folds": folds,
        "repetitions": repetitions,
        "orders": orders,
        "epochs": epochs,
        "fresh": fresh,
        "seed": seed,
    }
    context = {"data": None if data is None else str(data)}
    return run(
        "clinical",
        batches,
        out,
        settings=settings,
        context=context,
        resume=resume,
        jobs=jobs,
        progress=progress,
    )


def _slug(table: str, data: Path | None) -> str:
    """What the table is called, if it can be had and has modalities."""
    if table == COHORT:
        return COHORT
    found = datasets.load(table, data=data)
    if not found.modalities:
        raise ValueError(f"Table {table!r} has no modalities, which this study is about.")
    return found.slug
