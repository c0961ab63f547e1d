"""Numbers as people read them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["clip", "count", "listed", "number", "p_value", "percent", "plain"]

NOTHING, MINUS = "\u2013", "\u2212"
_GAP = "\u00a0"  # A line must not end between a number and its sign.


def percent(share: float | None, digits: int = 0) -> str:
    """A share as a percentage: "12 %"; less than half a percent is not called 0."""
    if share is None or not math.isfinite(share):
        return NOTHING
    least = 0.5 * 10.0 ** -(digits + 2)
    if 0 < share < least:
        return f"<{_GAP}{100 * 2 * least:g}{_GAP}%"
    if 1 - least < share < 1:
        return f">{_GAP}{100 * (1 - 2 * least):g}{_GAP}%"
    return f"{100 * share:.{digits}f}{_GAP}%"


def number(value: float | None, digits: int = 3) -> str:
    """A number to some significant digits, without an exponent where that can be read."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    after = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{after}f}".replace("-", MINUS)


def p_value(value: float | None) -> str:
    """A p-value: "0.03", and "< 0.001" for all that is less."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.2g}"


def count(value: int, one: str = "", many: str = "") -> str:
    """A number of things: "1,200 rows"."""
    if not one:
        return f"{value:,}"
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def clip(text: Any, most: int = 80) -> str:
    """Some text, at most so long; an ellipsis says that there was more."""
    whole = str(text)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def listed(names: list[str], most: int = 4) -> str:
    """Names in a sentence: "a, b and c", or "a, b and 7 more"."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def plain(value: Any) -> Any:
    """The same as JSON can hold it: no NumPy, no NaN, names as text."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return None if pd.api.types.is_scalar(value) and pd.isna(value) else str(value)
