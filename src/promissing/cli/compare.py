"""promissing compare: compare strategies for missing values on a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from promissing.cli import _options, _terminal
from promissing.cli._terminal import printable

if TYPE_CHECKING:
    from promissing.compare import Comparison

__all__ = ["compare", "comparison_table"]


@click.command(cls=_options.Command)
@_options.FILE_ARGUMENT
@_options.problem_options
@click.option("--strategies", type=_options.NAMES, help="Default: all that are installed.")
@_options.folds
@click.option("--repetitions", type=_options.COUNT, default=1, help="Repetitions of the folds.")
@click.option(
    "--extra",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    help="Share of the known values to remove from training and test rows.",
)
@click.option("--mechanism", default="mcar", help="Mechanism of --extra: mcar, mar, mnar, ...")
@_options.epochs
@_options.table_options
@_options.seed
@_options.as_json
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
    **given: Any,
) -> None:
    """Compare strategies for missing values on FILE.

    All strategies are cross-validated on the same folds and train the same network, except for
    tree-based ones. Each is tested against the best by a corrected resampled t-test, and scored
    again on test rows from which half of the columns are removed. "full" is left out, because it
    needs a table without missing values.
    """
    from promissing.compare import compare as run
    from promissing.io.files import FileError, check_target

    path = None if out is None else Path(out)
    if path is not None and path.suffix:
        check_target(path, (".json", ".csv"))
    elif path is not None and path.exists() and not path.is_dir():
        raise FileError(f"{path} is a file. Give a directory or a .json or .csv file.")
    _, problem = _options.read_problem(file, **given)
    with _terminal.progress("Comparing", 1) as step:
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
            progress=lambda done, total, text: step(f"Comparing: {text}", done, total),
        )
    if path is not None:
        _write(found, path)
    for note in found.notes:
        if not re.search(_options.CATEGORY_WARNING, note):
            _terminal.note(_options.with_option_names(note))
    if as_json:
        _terminal.print_json(found.to_dict())
    else:
        _show(found)


def _show(found: Comparison) -> None:
    """Print the scores and the advice."""
    about = found.about
    title = f"{found.metric} of {about['folds']}-fold cross-validation"
    title += f", {about['repetitions']} times" if about["repetitions"] > 1 else ""
    title += f"; {about['rows']:,} rows, {about['missing']:.0%} of the cells missing"
    title += f", {about['extra']:.0%} removed" if about["extra"] else ""
    out = _terminal.console()
    out.print(comparison_table(found.to_dict()["table"], found.metric, title))
    out.print("calibr.: calibration error. half: half of the inputs were removed from test rows.")
    for name, reason in found.skipped.items():
        reason = _options.with_option_names(reason).rstrip(".")
        out.print(printable(f"{name} was left out: {reason}."))
    out.print(found.recommendation)


def comparison_table(lines: list[dict[str, Any]], metric: str, title: str) -> Any:
    """Return the scores of the strategies as a table; the best one has no p-value."""
    heads = {"log_loss": "log loss", "calibration_error": "calibr.", "mean_missing": metric}
    heads |= {"log_loss_missing": "log loss", "calibration_error_missing": "calibr."}
    heads = {k: f"{v}\nhalf" if k.endswith("missing") else v for k, v in heads.items()}
    shown = [name for name in heads if name in lines[0]]
    columns = ["strategy", f"{metric}>", "spread>", "difference>", "p>"]
    columns += [f"{heads[name]}>" for name in shown] + ["seconds>"]
    rows = []
    for line in lines:
        p, difference = "", ""
        if line["p"] is not None:
            p = f"{line['p']:.2g}" if line["p"] >= 0.001 else "< 0.001"
            difference = f"{line['difference']:.3f}"
        more = ["" if line[name] is None else f"{line[name]:.3f}" for name in shown]
        mean, spread = f"{line['mean']:.3f}", f"{line['spread']:.3f}"
        rows.append((line["title"], mean, spread, difference, p, *more, f"{line['seconds']:.1f}"))
    return _terminal.table(title, columns, rows)


def _write(found: Comparison, out: Path) -> None:
    """Write one file, or a directory with all tables."""
    from promissing.io.files import write_table

    if out.suffix.lower() == ".json":
        _terminal.write_json(out, found.to_dict())
    elif out.suffix.lower() == ".csv":
        write_table(found.table, out)
    else:
        out.mkdir(parents=True, exist_ok=True)
        _terminal.write_json(out / "comparison.json", found.to_dict())
        write_table(found.table, out / "table.csv")
        write_table(found.scores, out / "scores.csv")
    _terminal.note(f"Written to {out}.")
