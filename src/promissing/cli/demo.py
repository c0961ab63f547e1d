"""promissing demo."""

from __future__ import annotations

import click

__all__ = ["demo"]


@click.command()
def demo() -> None:
    """Not here yet."""
