"""promissing explain."""

from __future__ import annotations

import click

__all__ = ["explain"]


@click.command()
def explain() -> None:
    """Not here yet."""
