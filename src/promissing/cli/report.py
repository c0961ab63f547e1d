"""promissing report."""

from __future__ import annotations

import click

__all__ = ["report"]


@click.command()
def report() -> None:
    """Not here yet."""
