"""The batches of the benchmark: which tables, mechanisms and strategies, and what each costs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from promissing import datasets
from promissing.compare import strategies
from promissing.datasets.loading import OPENML, VARIABLE
from studies._openml_costs import by_kind
from studies._openml_tasks import (
    COMPLETE,
    FOREST,
    GRID,
    MECHANISMS,
    is_tree,
    own_gaps,
    score,
)
from studies.runner import Batch
from studies.simulation import check_losses

__all__ = ["RATIOS", "STRATEGIES", "Plan", "make_plan", "spent"]

RATIOS = (0.1, 0.25, 0.5, 0.9)
FEATURE_RATIOS = (0.1, 0.25, 0.5, 0.75, 1.0)
STRATEGIES = tuple(
    name for name in strategies.NAMES if name not in ("lightgbm", "xgboost", "catboost")
)
# As in the paper, and two more that cost little.
IN_GRID = (
    *("zero", "mean", "knn", "iterative", "hgb", "promissing", "mpromissing"),
    *("mean+indicator", "fpromissing"),
)
TOGETHER = 4  # Repetitions in a batch.
MOST_GRID = 10  # Repetitions of the grid, as in the paper.


class Shape(NamedTuple):
    """The size of a table, for what its batches cost."""

    rows: int
    columns: int
    task: str


class Plan(NamedTuple):
    """All batches of a study, and what they follow from."""

    batches: list[Batch]
    shapes: dict[str, Shape]
    absent: dict[str, str]
    settings: dict[str, Any]


def make_plan(
    tables: Sequence[str] | None,
    names: Sequence[str],
    mechanisms: Sequence[str],
    ratios: Sequence[float],
    repetitions: int,
    grid: bool,
    grid_repetitions: int | None,
    max_rows: int | None,
    epochs: int,
    data: Path | None,
    seed: int,
) -> Plan:
    """All batches of a study with these parameters of `openml.run_study`, if they make sense."""
    names = strategies.check(names)
    mechanisms, ratios = check_losses(mechanisms, ratios, MECHANISMS)
    if grid_repetitions is None:
        grid_repetitions = min(repetitions, MOST_GRID)
    for what, value, least in (
        ("repetitions", repetitions, 1),
        ("grid_repetitions", grid_repetitions, 1),
        ("epochs", epochs, 1),
        ("max_rows", max_rows, 20),
    ):
        if value is not None and value < least:
            raise ValueError(f"`{what}` must be at least {least}. Received: {value}")
    slugs, shapes, absent = _tables(tables, data)
    baseline = ["full", FOREST, *dict.fromkeys(["hgb", *(n for n in names if is_tree(n))])]
    rivals = [name for name in names if name != "full"]
    in_grid = [name for name in rivals if name in IN_GRID]
    parts = [(COMPLETE, [0.0], baseline, repetitions)]
    if rivals:
        parts += [(mechanism, list(ratios), rivals, repetitions) for mechanism in mechanisms]
    if grid and in_grid:
        parts += [
            (f"{GRID}{share:g}", list(ratios), in_grid, grid_repetitions)
            for share in FEATURE_RATIOS
        ]
    settings = {
        "tables": slugs,
        "strategies": list(names),
        "mechanisms": list(mechanisms),
        "ratios": list(ratios),
        "repetitions": repetitions,
        "grid_repetitions": grid_repetitions if grid else 0,
        "max_rows": max_rows,
        "epochs": epochs,
        "seed": seed,
    }
    batches = []
    for slug in slugs:
        for mechanism, shares, members, count in parts:
            for start in range(0, count, TOGETHER):
                arguments = {
                    "table": slug,
                    "mechanism": mechanism,
                    "ratios": shares,
                    "repetitions": list(range(start, min(start + TOGETHER, count))),
                    "names": members,
                    "max_rows": max_rows,
                    "epochs": epochs,
                    "seed": seed,
                }
                batch = Batch(f"{slug}/{mechanism}/{start:03d}", score, arguments)
                cost = sum(spent(batch, shapes, settings).values())
                batches.append(batch._replace(cost=cost or 1e-3))
    return Plan(batches, shapes, absent, settings)


def spent(
    batch: Batch,
    shapes: Mapping[str, Shape],
    settings: Mapping[str, Any],
    jobs: int = 2,
    speeds: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """The seconds of a batch by kind of work; none for a table that is not there."""
    asked = batch.arguments
    shape = shapes.get(asked["table"])
    if shape is None:
        return {}
    many = {COMPLETE: 1, "grid": len(FEATURE_RATIOS)}
    kind = asked["mechanism"].partition("-")[0]
    of_a_kind = many.get(kind, len(settings["mechanisms"]))
    count = settings["grid_repetitions" if kind == "grid" else "repetitions"]
    of_a_kind *= max(1, count // TOGETHER)  # The last block may be shorter, and compiles anew.
    anew = min(1.0, jobs / of_a_kind)
    if kind == "grid" and settings["mechanisms"]:
        anew = 0.0  # The mechanisms went before.
    return by_kind(
        min(shape.rows, asked["max_rows"] or shape.rows),
        shape.columns,
        shape.task,
        asked["mechanism"],
        asked["ratios"],
        len(asked["repetitions"]),
        asked["names"],
        asked["epochs"],
        anew,
        speeds or {},
    )


def _tables(
    wanted: Sequence[str] | None, data: Path | None
) -> tuple[list[str], dict[str, Shape], dict[str, str]]:
    """The slugs of the tables, the sizes of those that can be used, and why others cannot.

    What is in the directory and cannot be read is in neither: its batches fail by themselves.
    """
    if wanted is None:
        left_out = {table.slug for table in datasets.tables() if table.excluded}
        wanted = [slug for slug in datasets.available(data) if slug not in left_out]
    if not wanted:
        raise ValueError("Name at least one table.")
    loaded = datasets.load_many(wanted, data=data)
    gaps = {d.slug: int(d.X.isna().to_numpy().sum()) for d in loaded.datasets}
    shapes = {
        d.slug: Shape(len(d.X), d.X.shape[1], d.task) for d in loaded.datasets if not gaps[d.slug]
    }
    place = data if data is not None else os.environ.get(VARIABLE) or OPENML
    held = set() if place == OPENML else set(datasets.available(data))
    absent = {slug: why for slug, why in loaded.skipped.items() if slug not in held}
    absent |= {slug: own_gaps(slug, count) for slug, count in gaps.items() if count}
    if not shapes:
        why = next(iter((absent | dict(loaded.skipped)).values()))
        raise ValueError(f"Not one table can be used. {why}")
    order = {slug: i for i, slug in enumerate(datasets.available(data))}
    slugs = sorted({*gaps, *loaded.skipped}, key=lambda slug: (order.get(slug, len(order)), slug))
    return slugs, shapes, absent
