"""What "auto" means: how many networks to train, how long, with which gaps besides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "augment",
    "augment_others",
    "batch_size",
    "compensation_rates",
    "epochs",
    "members",
    "sets_aside",
]

SMALL = 5_000  # Up to so many rows there is time for more members and epochs.
MORE_MEMBERS, MEMBERS = 12, 8
BATCH, LONG = 64, (2**14, 2**16)  # Twice the batch from either number of rows on.
MORE_EPOCHS, EPOCHS, FEW_EPOCHS = 64, 24, 12
MANY_ROWS = 350_000  # In all epochs together.
FEWEST_STEPS = 300
TOO_FEW_STEPS = 100  # Training that ends after fewer has not converged.
HELD_OUT_FROM = 100
EMPTY = 16  # One of so many rows to learn from is empty.
AUGMENT, AUGMENT_SQUARED, AUGMENT_IF_TRUE = 0.1, 0.02, 0.5
FEW_GAPS, MANY_GAPS = 1 / 8, 1 / 4  # Of all cells: between them more and more are made besides.
RAREST = 0.05  # The least deviation of an absence by which its compensation learns faster.
OTHERS = 0.5  # The largest probability with which the other rows lose a feature.


def members(asked: int | str, n: int) -> int:
    """How many networks to train on n rows: with more rows they differ less, and take longer."""
    return int(asked) if asked != "auto" else MORE_MEMBERS if n <= SMALL else MEMBERS


def batch_size(asked: int | str, n: int) -> int:
    """How many of n rows make a batch."""
    return int(asked) if asked != "auto" else BATCH << sum(n >= rows for rows in LONG)


def epochs(asked: int | str, n: int, longest: int, batch: int) -> int:
    """How many epochs to train for, given n rows, on so many at most, in batches."""
    if asked != "auto":
        return int(asked)
    # Few steps teach nothing, however many epochs they make; many rows need fewer epochs.
    steps = -(-longest // batch)
    most = MORE_EPOCHS if n <= SMALL else EPOCHS
    return max(-(-FEWEST_STEPS // steps), min(max(MANY_ROWS // longest, FEW_EPOCHS), most))


def sets_aside(asked: bool | str, n: int) -> bool:
    """Whether some of n rows are kept to judge epochs by."""
    return n >= HELD_OUT_FROM if asked == "auto" else bool(asked)


def augment(asked: bool | float | str, *, squared: bool) -> float:
    """The share of rows that may lose any feature while training.

    Fewer where errors are squared: those of rows that lack much would outweigh all others.
    """
    if isinstance(asked, bool | np.bool_):
        return AUGMENT_IF_TRUE if asked else 0.0
    if asked == "auto":
        return AUGMENT_SQUARED if squared else AUGMENT
    return float(asked)


def augment_others(asked: bool | float | str, gaps: NDArray[Any]) -> NDArray[Any] | None:
    """How readily the other rows lose each feature, given the shares of gaps in them.

    A table with many gaps is given more where they are: the network then never sees the same row
    twice, and what it learns of one feature does not lean on another that may be missing. Where
    gaps are few, or all in a feature or two, they may well tell something, which those by chance
    would drown: no feature counts for more than a quarter. One of which the share is NaN has
    nothing to lose.
    """
    if asked != "auto" or np.isnan(gaps).all():
        return None
    spread = np.nanmean(np.minimum(gaps, MANY_GAPS))
    share = OTHERS * np.clip((spread - FEW_GAPS) / (MANY_GAPS - FEW_GAPS), 0.0, 1.0)
    return np.where(gaps > 0, share, 0.0) if share > 0 else None


def compensation_rates(asked: float, gaps: NDArray[Any]) -> NDArray[np.float64]:
    """How many times as fast the compensation of each feature learns, given its share of gaps.

    What a gap tells is a 0/1 column, and a rare one is seldom met: as if it were standardised, the
    weights learn in proportion to 1 / its deviation. A feature without gaps, or without values, has
    nothing to tell.
    """
    deviation = np.sqrt(np.nan_to_num(gaps * (1 - gaps)))
    told = deviation > 0
    return np.where(told & (asked > 0), asked / np.maximum(deviation, RAREST), 1.0)
