"""promissing experiment: the studies of the paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from promissing.cli._common import NAMED, NUMBERS, clear_errors

__all__ = ["experiment"]


@click.group()
def experiment() -> None:
    """Run a study of the paper, resumably, and write its tables and figures."""


def _run_options(command: Any) -> Any:
    """The options every study has."""
    for option in (
        click.option("--jobs", type=click.IntRange(min=1), help="Worker processes [all cores]."),
        click.option("--resume", is_flag=True, help="Go on with the results in --out."),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            required=True,
            help="Directory for results.sqlite, tables and figures.",
        ),
        click.option("--seed", type=int, default=0, show_default=True),
    ):
        command = option(command)
    return command


@experiment.command()
@click.option("--repetitions", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--mechanisms", type=NAMED, help="mcar,mar,mnar by default.")
@click.option("--ratios", type=NUMBERS, help="Shares of one column; 0.3,0.5 by default.")
@click.option("--strategies", type=NAMED, help="All but the other boosters by default.")
@click.option("--epochs", type=click.IntRange(min=1), default=400, show_default=True)
@_run_options
def simulation(out: Path, mechanisms: Any, ratios: Any, strategies: Any, **settings: Any) -> None:
    """XOR with gaps: learning curves, biases, and what a gap is taken for."""
    with clear_errors():
        from studies import simulation as study
        from studies.simulation_report import report

        summary = study.run_study(
            out,
            mechanisms=study.MECHANISMS if mechanisms is None else mechanisms,
            ratios=study.RATIOS if ratios is None else ratios,
            names=study.STRATEGIES if strategies is None else strategies,
            **settings,
        )
        _conclude(summary, out, report)


@experiment.command()
@click.option("--tables", type=NAMED, help="cohort (generated), and tables of --data [cohort].")
@click.option("--strategies", type=NAMED, help="All of the study by default.")
@click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True)
@click.option("--repetitions", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--orders", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--epochs", type=click.IntRange(min=1), default=200, show_default=True)
@click.option(
    "--fresh",
    type=click.IntRange(min=100),
    default=20_000,
    show_default=True,
    help="Freshly generated patients to judge calibration by.",
)
@click.option("--data", type=click.Path(path_type=Path), help="Directory with an index.json.")
@_run_options
def clinical(out: Path, tables: Any, strategies: Any, **settings: Any) -> None:
    """Many modalities: scores, fading predictions, calibration, and why."""
    with clear_errors():
        from studies import clinical as study
        from studies.clinical_report import report

        summary = study.run_study(
            out,
            tables=(study.COHORT,) if tables is None else tables,
            names=study.STRATEGIES if strategies is None else strategies,
            **settings,
        )
        _conclude(summary, out, report)


@experiment.command()
@click.option("--tables", type=NAMED, help="All that --data has, but the paper's exclusions.")
@click.option("--strategies", type=NAMED, help="All but the other boosters by default.")
@click.option("--mechanisms", type=NAMED, help="mcar,mar,mnar by default.")
@click.option("--ratios", type=NUMBERS, help="Shares of values; 0.1,0.25,0.5,0.9 by default.")
@click.option("--repetitions", type=click.IntRange(min=1), default=20, show_default=True)
@click.option(
    "--grid/--no-grid", default=True, show_default=True, help="Gaps in several columns too (MCAR)."
)
@click.option(
    "--grid-repetitions", type=click.IntRange(min=1), help="Of the grid [as the rest, at most 10]."
)
@click.option("--max-rows", type=click.IntRange(min=20), help="Rows of a table [all].")
@click.option("--epochs", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--data", type=click.Path(path_type=Path), help="Directory with an index.json.")
@click.option("--estimate", is_flag=True, help="Only say how long it will take.")
@_run_options
def openml(
    out: Path,
    mechanisms: Any,
    ratios: Any,
    strategies: Any,
    estimate: bool,
    resume: bool,
    **settings: Any,
) -> None:
    """The paper's benchmark on real tables: what gaps cost, for every strategy."""
    with clear_errors():
        from studies import openml as study
        from studies.openml_report import report

        settings |= {
            "mechanisms": study.MECHANISMS if mechanisms is None else mechanisms,
            "ratios": study.RATIOS if ratios is None else ratios,
            "names": study.STRATEGIES if strategies is None else strategies,
        }
        if estimate:
            click.echo(str(study.estimate(**settings)))
            return
        _conclude(study.run_study(out, resume=resume, **settings), out, report)


def _command() -> str:
    """The command that is running, as it was typed but for --resume and where data lie."""
    context = click.get_current_context()
    words = [context.command_path]
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


def _conclude(summary: Any, out: Path, report: Callable[[Path], None]) -> None:
    """Say how a run ended, and write its report if all of it is there."""
    for name, reason in summary.skipped.items():
        click.echo(f"skipped {name}: {reason}", err=True)
    for name, reason in summary.failed.items():
        click.echo(f"failed {name}: {reason}", err=True)
    if summary.interrupted:
        raise click.ClickException(
            "Interrupted. What was finished is kept; go on with the same command and --resume."
        )
    if summary.failed:
        raise click.ClickException(
            f"{len(summary.failed)} of {summary.n_batches} batches failed; the others are kept. "
            "Try them again with the same command and --resume."
        )
    from studies.tables import describe

    report(out)
    describe(out, _command())
    batches = f"{summary.n_done_now} batch{'es' * (summary.n_done_now != 1)}"
    click.echo(f"{batches} in {summary.seconds:.0f} s; see {out}")
