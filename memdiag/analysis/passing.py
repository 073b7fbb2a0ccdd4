"""Memory that a phase holds only while it lasts: an evaluation's batches, a checkpoint's copy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.model import Floats, Ints

    Mask = NDArray[np.bool_]

PASSING_SPREAD = 1.5  # events that hold memory in passing agree within so many noise sds: chosen
LEAST_SAMPLES = 3  # of a phase, to speak of its excess


def without_passing(y: Floats, codes: Ints) -> tuple[Floats, Mask, Mask]:
    """The series without what phases hold in passing: (series, even, plain), shape (n,) each.

    even: samples that say something once their phase's usual excess is taken off.
    plain: samples of phases that hold nothing in passing.

    The phase that most samples lie in is the base. A phase whose events lie above (or below) the
    base before and after them, by more than what changes across them, holds memory in passing: its
    median excess is taken off where all its events agree; where they do not, they hide the
    kept memory, and their samples are left out.
    """
    settled = np.array(y, dtype=np.float64)
    even, plain = np.ones(len(y), dtype=bool), np.ones(len(y), dtype=bool)
    used, counts = np.unique(codes, return_counts=True)
    base = codes == used[np.argmax(counts)]
    before = np.maximum.accumulate(np.where(base, np.arange(len(y)), -1))
    after = np.minimum.accumulate(np.where(base, np.arange(len(y)), len(y))[::-1])[::-1]
    inner = (before >= 0) & (after < len(y))
    noise = 1.4826 * float(np.median(np.abs(np.diff(y) - np.median(np.diff(y))))) / math.sqrt(2)
    for code in used:
        own = (codes == code) & ~base & inner
        if own.sum() < LEAST_SAMPLES:
            continue
        left, right = y[before[own]], y[after[own]]
        excess = y[own] - (left + right) / 2
        change = abs(float(np.median(right - left)))
        centre = float(np.median(excess))
        spread = 1.4826 * float(np.median(np.abs(excess - centre)))
        error = 1.2533 * spread / math.sqrt(own.sum())
        if abs(centre) <= max(0.75 * change, 4 * error):
            continue
        settled[codes == code] -= centre
        plain &= codes != code
        if spread > PASSING_SPREAD * noise:
            even &= codes != code
    return settled, even, plain
