"""promissing compare."""

from __future__ import annotations

import click

__all__ = ["compare"]


@click.command()
def compare() -> None:
    """Not here yet."""
