"""`python -m studies NAME`: run a study of the paper, or the comparison of defaults."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run a study and write its tables and figures.

    Every study can be interrupted or killed. The same command with --resume continues it.
    """


class Listed(click.ParamType):
    """Values separated by commas."""

    def __init__(self, kind: Callable[[str], Any], name: str) -> None:
        self.kind = kind
        self.name = f"{name},..."

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Split the text and convert its parts."""
        if not isinstance(value, str):
            return value
        try:
            return tuple(self.kind(part.strip()) for part in value.split(",") if part.strip())
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers separated by commas.", param, ctx)


NAMES, NUMBERS = Listed(str, "name"), Listed(float, "number")
COUNT = click.IntRange(min=1)
DIRECTORY = click.Path(path_type=Path)


def option(*names: str, **settings: Any) -> Any:
    """A click option that shows its default."""
    return click.option(*names, show_default=settings.get("default") is not None, **settings)


def run_options(jobs: int | None = None) -> Any:
    """The options that every study has."""

    def add(command: Any) -> Any:
        text = "Directory for results, tables and figures."
        for one in (
            option("--jobs", type=COUNT, default=jobs, help="Worker processes [all cores]."),
            option("--resume", is_flag=True, help="Continue the results in --out."),
            option("--out", type=DIRECTORY, required=True, help=text),
        ):
            command = one(command)
        return command

    return add


seed_option = option("--seed", type=int, default=0, help="Random seed.")
data_help = "Directory with an index.json [the variable PROMISSING_DATA, or OpenML]."
data_option = option("--data", type=DIRECTORY, help=data_help)


@main.command()
@option("--repetitions", type=COUNT, default=100)
@option("--mechanisms", type=NAMES, help="mcar,mar,mnar by default.")
@option("--ratios", type=NUMBERS, help="Missing shares of one column; 0.3,0.5 by default.")
@option("--strategies", "names", type=NAMES, help="All except the other boosters by default.")
@option("--epochs", type=COUNT, default=400)
@seed_option
@run_options()
def simulation(out: Path, **settings: Any) -> None:
    """XOR with missing values: learning curves, biases and neutralizers."""
    with clear_errors():
        from studies import simulation as study

        conclude(study.run_study(out, **_given(settings)), lambda: study.report(out))


@main.command()
@option("--tables", type=NAMES, help="cohort (generated), and tables of --data [cohort].")
@option("--strategies", "names", type=NAMES, help="All strategies of the study by default.")
@option("--folds", type=click.IntRange(min=2), default=10)
@option("--repetitions", type=COUNT, default=10)
@option("--orders", type=COUNT, default=100, help="Random orders in which modalities are removed.")
@option("--epochs", type=COUNT, default=200)
@option(
    "--fresh",
    type=click.IntRange(min=100),
    default=20_000,
    help="Newly generated patients to measure calibration.",
)
@data_option
@seed_option
@run_options()
def clinical(out: Path, **settings: Any) -> None:
    """Many modalities: scores, loss of information, calibration and explanations."""
    with clear_errors():
        from studies import clinical as study

        conclude(study.run_study(out, **_given(settings)), lambda: study.report(out))


@main.command()
@option("--tables", type=NAMES, help="All tables of --data except the paper's exclusions.")
@option("--strategies", "names", type=NAMES, help="All except the other boosters by default.")
@option("--mechanisms", type=NAMES, help="mcar,mar,mnar by default.")
@option("--ratios", type=NUMBERS, help="Missing shares; 0.1,0.25,0.5,0.9 by default.")
@option("--repetitions", type=COUNT, default=20)
@option("--grid/--no-grid", default=True, help="Several incomplete columns as well (MCAR).")
@option("--grid-repetitions", type=COUNT, help="Of the grid [as --repetitions, at most 10].")
@option("--max-rows", type=click.IntRange(min=20), help="Maximum rows of a table [all].")
@option("--epochs", type=COUNT, default=100)
@option("--estimate", is_flag=True, help="Only show how long the study will take.")
@data_option
@seed_option
@run_options()
def openml(out: Path, estimate: bool, resume: bool, **settings: Any) -> None:
    """The paper's benchmark on real tables: the loss of accuracy of every strategy."""
    with clear_errors():
        from studies import openml as study
        from studies.openml_report import report

        settings = _given(settings)
        if estimate:
            click.echo(str(study.estimate(**settings)))
            return
        conclude(study.run_study(out, resume=resume, **settings), lambda: report(out))


@main.command()
@option("--methods", type=NAMES, help="ours, boosters and networks on imputed means by default.")
@option("--settings", type=NAMES, help="complete,cells-0.25,...,mnar-0.9 by default.")
@option("--tables", type=NAMES, help="All with at least 500 rows by default.")
@option("--half", type=click.Choice(["choose", "report"]), help="Only one half of the tables.")
@option("--max-rows", type=COUNT, default=10_000)
@option("--repetitions", type=COUNT, default=1)
@option("--folds", type=click.IntRange(1, 2), default=2, help="Folds to score.")
@option("--quick", is_flag=True, help="A few tables with at most 4,000 rows.")
@option("--large", is_flag=True, help="Seconds on large tables with all rows.")
@option("--beside", type=DIRECTORY, help="An earlier record, for methods that are not run now.")
@option("--data", default="openml", help="Directory with an index.json, or openml to fetch tables.")
@run_options(jobs=1)
def accuracy(
    out: Path, data: str, quick: bool, large: bool, beside: Path | None, **settings: Any
) -> None:
    """Our defaults against the defaults of others, on tables with missing values."""
    with clear_errors():
        from studies import accuracy as study

        settings = _given(settings)
        if large:
            settings |= study.LARGE
        if quick:
            known = study.halves(data)
            settings |= {"tables": [name for name in study.QUICK if name in known]}
            settings["max_rows"] = 4000
        summary = study.run_study(out, data=data, **settings)
        report = partial(study.report, out, data=data, earlier=beside)
        conclude(summary, report, partly=True)


@main.command()
@option("--parts", type=NAMES, help="synthetic,coverage,decisions,acquisition by default.")
@option("--models", type=NAMES, help="ours,hgb,catboost by default.")
@option("--tables", type=NAMES, help="All tables of the half by default.")
@option("--half", type=click.Choice(["choose", "report"]), default="report")
@option("--seeds", type=COUNT, default=3, help="Seeds of every table.")
@option("--repetitions", type=COUNT, default=100, help="Repetitions of the synthetic part.")
@option("--data", default="openml", help="Directory with an index.json, or openml to fetch tables.")
@run_options()
def uncertainty(out: Path, data: str, **settings: Any) -> None:
    """Coverage, abstention and acquisition as values go missing."""
    with clear_errors():
        from studies import uncertainty as study

        summary = study.run_study(out, data=data, **_given(settings))
        conclude(summary, lambda: study.report(out), partly=True)


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without those that were not given, which then have the study's default."""
    return {name: value for name, value in settings.items() if value is not None}


class BadInput(click.ClickException):
    """Invalid input: one line, exit code 2."""

    exit_code = 2


@contextmanager
def clear_errors() -> Iterator[None]:
    """Show errors and warnings in one line: exit code 2 for invalid input, 1 for a failed run."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: click.echo(str(message), err=True)
        try:
            yield
        except (ValueError, ImportError, FileNotFoundError, FileExistsError) as error:
            raise BadInput(" ".join(str(error).split())) from error
        except (RuntimeError, OSError, MemoryError) as error:
            raise click.ClickException(" ".join(str(error).split())) from error


def conclude(summary: Any, report: Callable[[], None], *, partly: bool = False) -> None:
    """Show how a run ended, and write its report. `partly` allows failed batches in a report."""
    for name, reason in summary.skipped.items():
        click.echo(f"skipped {name}: {reason}", err=True)
    for name, reason in summary.failed.items():
        click.echo(f"failed {name}: {reason}", err=True)
    if summary.interrupted:
        raise click.ClickException(
            "Interrupted. Finished batches are kept: continue with the same command and --resume."
        )
    if partly or not summary.failed:
        from studies.reporting import describe

        report()
        describe(summary.out, _command())
    if summary.failed:
        raise click.ClickException(
            f"{len(summary.failed)} of {summary.n_batches} batches failed; the others are kept. "
            "Try again with the same command and --resume."
        )
    batches = f"{summary.n_done_now} batch{'es' * (summary.n_done_now != 1)}"
    click.echo(f"{batches} in {summary.seconds:.0f} s; see {summary.out}")


def _command() -> str:
    """The command as typed, without --resume and the directory of the data."""
    context = click.get_current_context()
    words = ["python -m studies", str(context.info_name)]
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) != ParameterSource.COMMANDLINE or name == "resume":
            continue
        value = context.params[name]
        if isinstance(value, bool):
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
            continue
        if isinstance(value, tuple):
            value = ",".join(f"{one:g}" if isinstance(one, float) else one for one in value)
        words += [parameter.opts[0], "DIR" if name == "data" else str(value)]
    return " ".join(words)


if __name__ == "__main__":
    main(prog_name="python -m studies")
