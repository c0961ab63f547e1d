"""promissing fit."""

from __future__ import annotations

import click

__all__ = ["fit"]


@click.command()
def fit() -> None:
    """Not here yet."""
