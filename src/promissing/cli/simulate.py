"""promissing simulate."""

from __future__ import annotations

import click

__all__ = ["simulate"]


@click.command()
def simulate() -> None:
    """Not here yet."""
