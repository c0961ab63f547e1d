"""What "auto" means: how long to train, how many rows at a time, and when to set some aside."""

from __future__ import annotations

__all__ = ["batch_size", "epochs", "sets_aside"]

BATCH, LONG = 64, (2**14, 2**16)  # Twice the batch from either number of rows on.
EPOCHS, FEW_EPOCHS, MANY_ROWS = 32, 12, 400_000  # MANY_ROWS: in all epochs together.
FEWEST_STEPS = 300
HELD_OUT_FROM = 100
EMPTY = 16  # One of so many rows to learn from is empty.


def batch_size(asked: int | str, n: int) -> int:
    """How many of n rows make a batch."""
    return int(asked) if asked != "auto" else BATCH << sum(n >= rows for rows in LONG)


def epochs(asked: int | str, n: int, batch: int) -> int:
    """How many epochs to train n rows for, in batches of so many."""
    if asked != "auto":
        return int(asked)
    # Few steps teach nothing, however many epochs they make; many rows need fewer epochs.
    steps = -(-n // batch)
    return max(-(-FEWEST_STEPS // steps), min(max(MANY_ROWS // n, FEW_EPOCHS), EPOCHS))


def sets_aside(asked: bool | str, n: int) -> bool:
    """Whether some of n rows are kept to judge epochs by."""
    return n >= HELD_OUT_FROM if asked == "auto" else bool(asked)
