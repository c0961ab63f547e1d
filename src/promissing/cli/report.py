"""promissing report: one page about a table and a model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from promissing.cli._common import (
    NAMED,
    clear_errors,
    problem_options,
    progress,
    read_whole,
    say,
    seed_option,
    table_options,
)

__all__ = ["report"]


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--out", required=True, type=click.Path(), help="The page: a .html file, or '-'.")
@problem_options
@click.option("--model", type=click.Path(), help="A .safetensors file to explain [none: trained].")
@click.option("--held-out", is_flag=True, help="FILE is new to the model: score it as it is.")
@click.option("--json-out", type=click.Path(), help="What the page says, as a .json file.")
@click.option("--compare", type=NAMED, help="Strategies to compare [quick ones of every family].")
@click.option("--no-compare", is_flag=True, help="Leave the comparison of strategies out.")
@click.option(
    "--rows", type=click.IntRange(1, 2000), default=200, show_default=True, help="To browse."
)
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True)
@click.option(
    "--max-rows",
    type=click.IntRange(min=50),
    default=10_000,
    show_default=True,
    help="To train and judge by, drawn at random.",
)
@click.option(
    "--epochs", type=click.IntRange(min=1), help="Of the networks; by default the estimator's."
)
@seed_option
@table_options
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
    """Write one HTML page about FILE and a model that predicts a column of it.

    What is missing; how well and how surely the column is predicted, in rows the networks have not
    seen; how predictions fade as information is lost; what drives them; single rows to browse; and
    other ways to cope with the gaps. The page needs no network and nothing beside it.
    """
    with clear_errors():
        if held_out and model is None:
            raise click.UsageError("--held-out is about a --model. Give both, or neither.")
        if no_compare and compare:
            raise click.UsageError("Give --compare or --no-compare, not both.")
        from promissing.io.files import check_target, write_text

        check_target(out, (".html", ".htm"))
        if json_out is not None:
            check_target(json_out, (".json",))
        if compare:
            from promissing.compare.strategies import known

            known(compare)  # One that is not installed is left out, as by `promissing compare`.
        fitted = None
        if model is not None:
            from promissing.cli._models import as_when_fitted, read_model

            fitted = read_model(model)
            given = as_when_fitted(fitted, given)
            given["positive"] = given["positive"] or (fitted.reading_ or {}).get("positive")
        frame, problem = read_whole(file, **given)
        with progress("Report", 1) as step:
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
                settings={} if epochs is None else {"max_iter": epochs},
                random_state=seed,
                command=_command(),
                progress=lambda done, total, what: step(done, total, text=f"Report: {what}"),
            )
            page = render(found)
        if json_out is not None:
            import json

            text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)
            write_text(json_out, text + "\n")
        write_text(out, page)
        if out != "-":
            say(f"Written to {out}, {len(page.encode()) / 1e6:.1f} MB.")


def _command() -> str:
    """The command that is running, as it was typed, but for the directories of files."""
    context = click.get_current_context()
    words = [context.command_path]
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) != ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        if isinstance(parameter.type, click.Path):
            value = value if value == "-" else Path(value).name
        if isinstance(parameter, click.Argument):
            words.insert(1, shlex.quote(value))
        elif isinstance(value, bool):
            words.append(parameter.opts[0])
        else:
            if isinstance(value, dict):
                value = tuple(k if v is None else f"{k}={v}" for k, v in value.items())
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += [parameter.opts[0], shlex.quote(text)]
    return " ".join(words)
