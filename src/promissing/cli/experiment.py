"""promissing experiment: moved to the folder `studies` of the source repository."""

from __future__ import annotations

import click

__all__ = ["experiment"]


@click.command(
    hidden=True,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def experiment(arguments: tuple[str, ...]) -> None:
    """Print the command that replaces `promissing experiment`."""
    name = arguments[0] if arguments and not arguments[0].startswith("-") else "NAME"
    raise click.UsageError(
        "The studies are no longer part of the package. In a checkout of the source repository, "
        f"run `python -m studies {name}` with the same options."
    )
