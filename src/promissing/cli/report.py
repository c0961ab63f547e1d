"""promissing report: one HTML page about a table and a model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from promissing.cli import _options, _terminal

__all__ = ["report"]

_QUICK = {"folds": 3, "members": 3, "rows": 50, "max_rows": 2000}


@click.command(cls=_options.Command)
@_options.FILE_ARGUMENT
@click.option("--out", required=True, type=click.Path(), help="HTML file; - is stdout.")
@_options.problem_options
@click.option("--model", type=click.Path(), help="Model to explain. Default: models are trained.")
@click.option("--held-out", is_flag=True, help="FILE is new to --model: score the model itself.")
@click.option("--json-out", type=click.Path(), help="JSON file with the content of the page.")
@click.option("--compare", type=_options.NAMES, help="Strategies to compare. Default: fast ones.")
@click.option("--no-compare", is_flag=True, help="Leave out the comparison of strategies.")
@click.option("--rows", type=click.IntRange(0, 2000), default=200, help="Rows shown one by one.")
@click.option(
    "--quick",
    is_flag=True,
    help="A third of the time: 3 folds, 3 networks each, 2,000 rows, and 50 rows one by one.",
)
@_options.folds
@click.option(
    "--max-rows",
    type=click.IntRange(50),
    default=10_000,
    help="Maximum number of rows for training and scoring, sampled at random.",
)
@_options.epochs
@_options.seed
@_options.table_options
def report(
    file: str,
    out: str,
    model: str | None,
    held_out: bool,
    json_out: str | None,
    compare: tuple[str, ...] | None,
    no_compare: bool,
    rows: int,
    folds: int,
    max_rows: int,
    epochs: int | None,
    seed: int,
    **given: Any,
) -> None:
    """Write an HTML report on FILE and a model.

    The report shows missing values, accuracy and calibration on rows not used for training,
    predictions with increasing information loss, important features, individual rows, and a
    comparison with other strategies. The page is a single file and works offline.
    """
    if held_out and model is None:
        raise click.UsageError("--held-out requires --model.")
    if no_compare and compare:
        raise click.UsageError("Give --compare or --no-compare, not both.")
    from promissing.io.files import check_target, write_text

    check_target(out, (".html", ".htm"))
    if json_out is not None:
        check_target(json_out, (".json",))
    if compare:
        from promissing.compare.strategies import known

        known(compare)  # Unknown names are an error; a strategy that is not installed is skipped.
    settings: dict[str, Any] = {} if epochs is None else {"max_iter": epochs}
    if given.pop("quick"):
        settings["n_members"] = _QUICK["members"]
        folds, rows, max_rows = (
            value if _is_given(name) else _QUICK[name]
            for name, value in (("folds", folds), ("rows", rows), ("max_rows", max_rows))
        )
    fitted = None
    if model is not None:
        fitted = _options.read_model(model)
        given = _options.as_fitted(fitted, given)
        given["positive"] = given["positive"] or (fitted.reading_ or {}).get("positive")
    frame, problem = _options.read_problem(file, **given)
    with _terminal.progress("Report", 1) as step:
        from promissing.report import STRATEGIES, gather, render

        found = gather(
            problem,
            frame=frame,
            source="standard input" if file == "-" else Path(file).name,
            model=fitted,
            strategies=None if no_compare else compare or STRATEGIES,
            folds=0 if held_out else folds,
            rows=rows,
            max_rows=max_rows,
            settings=settings,
            random_state=seed,
            command=_command(),
            progress=lambda done, total, text: step(f"Report: {text}", done, total),
        )
        page = render(found)
    if json_out is not None:
        _terminal.write_json(json_out, found)
    write_text(out, page)
    if out != "-":
        _terminal.note(f"Written to {out}, {len(page.encode()) / 1e6:.1f} MB.")


def _is_given(name: str) -> bool:
    """Return whether an option was given on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source == ParameterSource.COMMANDLINE


def _command() -> str:
    """Return the running command as it was typed, without the directories of files."""
    context = click.get_current_context()
    words = [context.command_path]
    for parameter in context.command.params:
        name = parameter.name or ""
        if not _is_given(name):
            continue
        value = context.params[name]
        if isinstance(parameter.type, click.Path) and value != "-":
            value = Path(value).name
        if isinstance(parameter, click.Argument):
            words.insert(1, shlex.quote(value))
        elif isinstance(value, bool):
            words.append(parameter.opts[0])
        else:
            words += [parameter.opts[0], shlex.quote(_options.join(value))]
    return " ".join(words)
