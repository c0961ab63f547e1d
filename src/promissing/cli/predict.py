"""promissing predict."""

from __future__ import annotations

import click

__all__ = ["predict"]


@click.command()
def predict() -> None:
    """Not here yet."""
