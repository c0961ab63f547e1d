"""The command line, with one file per command.

Commands import what they need when they run, so that help and completion are fast.
"""

from __future__ import annotations

from importlib import import_module

import click

from promissing import __version__

__all__ = ["main"]

COMMANDS = (
    *("describe", "simulate", "fit", "predict", "explain", "next", "drift", "compare", "report"),
    *("experiment", "demo"),
)


class LazyGroup(click.Group):
    """A group that imports a command when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands in the order of a typical workflow."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"promissing.cli.{cmd_name}")
        # "next" has the name of a built-in function, so its function is called "next_".
        command: click.Command = getattr(module, "next_" if cmd_name == "next" else cmd_name)
        return command


@click.group(
    cls=LazyGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.version_option(__version__, prog_name="promissing")
def main() -> None:
    """Neural networks for tables with missing values."""
