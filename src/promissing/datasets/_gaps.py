"""Which values of a cohort are missing: whole modalities of few patients, single ones of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rng: TypeAlias = np.random.Generator
Mask: TypeAlias = NDArray[np.bool_]


class Loss(NamedTuple):
    """How much of a modality of `size` measures is missing.

    Of all patients the share `rows` lack some of it and `whole` all of it, so that the share
    `cells` is missing. The first `core` measures are there whenever the modality is.
    """

    size: int
    core: int
    cells: float
    rows: float
    whole: float


def draw_gaps(n: int, losses: Sequence[Loss], complete: float, lacking: float, rng: Rng) -> Mask:
    """Where n patients have gaps, (n, all measures), by chance alone.

    The share `complete` of the patients lack nothing, the share `lacking` lack whole modalities.
    Shares of patients are met to the patient as long as they can be met together.
    """
    order, bounds = rng.permutation(n), np.cumsum([round(n * complete), round(n * lacking)])
    may_lose = _mask(n, order[bounds[0] :])
    lacks = _mask(n, order[bounds[0] : bounds[1]])
    whole = [_some(lacks, round(n * loss.whole), rng) for loss in losses]
    whole[int(np.argmax([loss.whole for loss in losses]))] |= lacks & ~np.any(whole, axis=0)
    # The modality with most gaps comes last, and they begin with those who have none so far: else
    # more would be complete, by accident.
    blocks: dict[int, Mask] = {}
    spared = may_lose & ~lacks
    for m in sorted(range(len(losses)), key=lambda m: losses[m].rows):
        loss, free = losses[m], may_lose & ~whole[m]
        count = round(n * loss.rows) - round(n * loss.whole)
        first = spared if len(blocks) == len(losses) - 1 else np.zeros(n, bool)
        partly = first | _some(free & ~first, max(count - int(first.sum()), 0), rng)
        blocks[m] = whole[m][:, None] | _deal(partly, lacks, loss, rng)
        spared &= ~partly
    return np.column_stack([blocks[m] for m in range(len(losses))])


def _deal(partly: Mask, last: Mask, loss: Loss, rng: Rng) -> Mask:
    """Which measures these patients lack, those in `last` being served last.

    Measures are dealt like cards, from one shuffled deck after the other, so that even the gaps of
    a few patients soon have hit every measure outside the core.
    """
    out = np.zeros((len(partly), loss.size), bool)
    rows = np.flatnonzero(partly)
    if not len(rows):
        return out
    rows = rows[np.argsort(last[rows], kind="stable")]
    cards = loss.size - loss.core
    mean = loss.size * (loss.cells - loss.whole) / (loss.rows - loss.whole)
    counts = 1 + rng.binomial(cards - 1, (mean - 1) / (cards - 1), len(rows))
    decks = rng.permuted(np.tile(np.arange(cards), (counts.sum() // cards + 1, 1)), axis=1)
    out[np.repeat(rows, counts), loss.core + decks.ravel()[: counts.sum()]] = True
    return out


def _mask(n: int, rows: NDArray[np.int64]) -> Mask:
    out = np.zeros(n, bool)
    out[rows] = True
    return out


def _some(among: Mask, count: int, rng: Rng) -> Mask:
    """Random ones of those, as many as asked for or as there are."""
    return _mask(len(among), rng.permutation(np.flatnonzero(among))[:count])
