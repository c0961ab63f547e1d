"""promissing compare: which way to cope with gaps is best for this table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from promissing.cli._common import (
    NAMED,
    TAKEN_FOR_CATEGORY,
    clear_errors,
    json_option,
    problem_options,
    progress,
    read_problem,
    say,
    seed_option,
    show_json,
    shown,
    table_options,
    terminal,
)
from promissing.cli._words import in_shell_words

if TYPE_CHECKING:
    from promissing.compare.comparison import Comparison

__all__ = ["compare", "table_of"]

_FILES = (".json", ".csv")


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@problem_options
@click.option("--strategies", type=NAMED, help="Their names [all that are installed].")
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True)
@click.option("--repetitions", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--extra",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    help="A share of the known cells to take away, in training and test rows.",
)
@click.option("--mechanism", default="mcar", show_default=True, help="How: mcar, mar, mnar, ...")
@click.option(
    "--epochs", type=click.IntRange(min=1), help="Of the networks; by default the estimator's."
)
@table_options
@seed_option
@json_option
@click.option("--out", type=click.Path(), help="A .json or .csv file, or a directory for both.")
def compare(
    file: str,
    strategies: Any,
    folds: int,
    repetitions: int,
    extra: float,
    mechanism: str,
    epochs: int | None,
    seed: int,
    as_json: bool,
    out: str | None,
    **source: Any,
) -> None:
    """Compare every way to cope with gaps on the table FILE, by cross-validation.

    All strategies see the same folds and, but for the trees, train the same network. Each is tested
    against the best by a corrected resampled t-test. "full" is left out: it needs a table without
    gaps.
    """
    with clear_errors():
        from promissing.compare.comparison import compare as run

        if out is not None:
            _check(Path(out))
        problem = read_problem(file, **source)
        with progress("Comparing", 1) as step:
            found = run(
                problem.X,
                problem.y,
                task=problem.task,
                strategies=strategies,
                modalities=problem.modalities,
                folds=folds,
                repetitions=repetitions,
                extra_missing=(mechanism, extra),
                settings=None if epochs is None else {"max_iter": epochs},
                random_state=seed,
                progress=lambda done, total, text: step(done, total, text=f"Comparing: {text}"),
            )
        if out is not None:
            _write(found, Path(out))
        for note in found.notes:
            if not re.search(TAKEN_FOR_CATEGORY, note):  # Said when the table was read.
                say(in_shell_words(note))
        if as_json:
            show_json(found.to_dict())
        else:
            _show(found)


def _show(found: Comparison) -> None:
    """Print the table and what to make of it."""
    about = found.about
    title = f"{found.metric} of {about['folds']}-fold cross-validation"
    title += f", {about['repetitions']} times" if about["repetitions"] > 1 else ""
    title += f"; {about['rows']:,} rows, {about['missing']:.0%} of the cells missing"
    title += f", {about['extra']:.0%} taken away" if about["extra"] else ""
    console = terminal()
    console.print(table_of(found.to_dict()["table"], found.metric, title))
    for name, reason in found.skipped.items():
        reason = in_shell_words(reason).rstrip(".")
        console.print(shown(f"{name} was left out: {reason}."))
    console.print(found.recommendation)


def table_of(lines: list[dict[str, Any]], metric: str, title: str) -> Any:
    """The lines of a comparison as a table for the terminal; the best has no p."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("strategy", metric, "spread", "difference", "p", "seconds"):
        table.add_column(name, justify="left" if name == "strategy" else "right")
    for line in lines:
        p = line["p"]
        table.add_row(
            line["title"],
            f"{line['mean']:.3f}",
            f"{line['spread']:.3f}",
            "" if p is None else f"{line['difference']:.3f}",
            "" if p is None else f"{p:.2g}" if p >= 0.001 else "< 0.001",
            f"{line['seconds']:.1f}",
        )
    return table


def _check(out: Path) -> None:
    """Refuse what cannot be written, before anything is computed."""
    from promissing.io.files import FileError, check_target

    if out.suffix:
        check_target(out, _FILES)
    elif out.exists() and not out.is_dir():
        raise FileError(f"{out} is a file. Give a directory, or the name of a .json or .csv file.")


def _write(found: Comparison, out: Path) -> None:
    import json

    from promissing.io.files import write_table, write_text

    document = json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if out.suffix.lower() == ".json":
        write_text(out, document)
    elif out.suffix.lower() == ".csv":
        write_table(found.table, out)
    else:
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / "comparison.json", document)
        write_table(found.table, out / "table.csv")
        write_table(found.scores, out / "scores.csv")
    say(f"Written to {out}.")
