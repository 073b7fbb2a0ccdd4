"""The period of events that are known only to lie between two samples each.

Event k lies at phase + period * k, in (before_k, seen_k]. Every pair of events bounds the period:

    (before_j - seen_i) / (j - i) < period < (seen_j - before_i) / (j - i),    i < j

(digital straight lines: Melter and Rosenfeld 1989; here the exact set of a line between posts).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats


def regular_starts(before: Floats, seen: Floats, most: int) -> tuple[Floats, float] | None:
    """Where events of a fixed period lie, shape (n,), and by how much the last may be off
    against the first; None where no period fits them all.

    before, seen: ascending, shape (n,). most: of more events only this many, evenly spread, bound
    the period, because all their pairs are looked at.
    """
    number = np.arange(len(seen), dtype=float)
    pick = np.unique(np.linspace(0, len(seen) - 1, most).round().astype(int))
    low, high = _bounds(number[pick], before[pick], seen[pick])
    if not low < high:
        return None
    period = (low + high) / 2
    earliest, latest = np.max(before - period * number), np.min(seen - period * number)
    if not earliest <= latest:
        return None
    starts = float(earliest + latest) / 2 + period * number
    return starts, (high - low) / 2 * float(number[-1])


def _bounds(number: Floats, before: Floats, seen: Floats) -> tuple[float, float]:
    """Least and largest period that every pair of events allows."""
    i, j = np.triu_indices(len(number), 1)
    apart = number[j] - number[i]
    low = float(((before[j] - seen[i]) / apart).max(initial=0.0))
    return low, float(((seen[j] - before[i]) / apart).min(initial=np.inf))
