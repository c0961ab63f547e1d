"""How tables and bars look in a terminal."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["bar", "new_table", "percent", "two_sided"]

_WIDTH = 20


def new_table(title: str, *columns: str) -> Any:
    """A table with these columns; those whose names end in > are of numbers, to the right."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    for name in columns:
        right = name.endswith(">")
        table.add_column(
            name.removesuffix(">"), justify="right" if right else "left", no_wrap=right or not name
        )
    return table


def bar(share: float, width: int = _WIDTH) -> str:
    """A bar as long as a share of the width; what is not nothing has at least a mark."""
    length = max(round(share * width), int(share > 0))
    return _block() * min(length, width)


def two_sided(effect: float, largest: float, width: int = _WIDTH // 2) -> str:
    """A bar to the left of the middle for what is below zero, to the right for what is above."""
    drawn = bar(abs(effect) / largest if largest else 0.0, width)
    left, right = (drawn, "") if effect < 0 else ("", drawn)
    return f"{left:>{width}}|{right:<{width}}"


def percent(share: float) -> str:
    """A share as a percentage; what is not nothing does not read as 0."""
    return "<0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


def _block() -> str:
    """A full block, where the terminal has one."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return "█" if encoding.lower().replace("-", "").startswith("utf") else "#"
