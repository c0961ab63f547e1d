"""promissing describe."""

from __future__ import annotations

import click

__all__ = ["describe"]


@click.command()
def describe() -> None:
    """Not here yet."""
