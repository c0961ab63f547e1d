"""The command line, a file for every command.

Commands import what they need when they run, so that help and completion are instant.
"""

from __future__ import annotations

from importlib import import_module

import click

from promissing import __version__

__all__ = ["main"]

COMMANDS = (
    *("describe", "simulate", "fit", "predict", "explain", "compare", "report"),
    *("experiment", "demo"),
)


class Lazy(click.Group):
    """Commands by the name of their file."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, if there is one."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"promissing.cli.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="promissing")
def main() -> None:
    """Neural networks that learn from tables with holes."""
