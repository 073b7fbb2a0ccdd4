"""Memory that a phase holds only while it lasts: an evaluation's batches, a checkpoint's copy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.median import median
from memdiag.analysis.stats.noise import robust_deviation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats, Ints

    Mask = NDArray[np.bool_]

PASSING_SPREAD = (
    1.5  # events that hold transient memory agree within this many noise sds: heuristic
)
LEAST_SAMPLES = 3  # of a phase, for an estimate of its excess
LEAST_PAIRS = 10  # of readings without the phase, for an estimate of their spread: heuristic


@dataclass(frozen=True, slots=True, kw_only=True)
class _Excess:
    """How far a phase lies above the base, and whether all its events agree on it."""

    code: int
    height: float
    even: bool


def without_transient(y: Floats, codes: Ints) -> tuple[Floats, Mask, Mask]:
    """The series without the transient memory of phases: (series, even, plain), shape (n,) each.

    even: samples that are informative once their phase's usual excess is subtracted.
    plain: samples of phases that hold no transient memory.

    The phase that most samples lie in is the base, unless it lies above another by heights of its
    own each time; then that one is. A phase whose events lie above (or below) the base before and
    after them, by more than what changes across them, holds transient memory: its median excess
    is taken off where all its events agree; where they do not, they hide the kept memory, and
    their samples are left out.
    """
    used, counts = np.unique(codes, return_counts=True)
    base = int(used[np.argmax(counts)])
    found = _all(y, codes, used, base)
    deep = [excess for excess in found if excess.height < 0 and not excess.even]
    if deep:
        base = min(deep, key=lambda excess: excess.height).code
        found = _all(y, codes, used, base)
    settled = np.array(y, dtype=np.float64)
    even, plain = np.ones(len(y), dtype=bool), np.ones(len(y), dtype=bool)
    for excess in found:
        own = codes == excess.code
        settled[own] -= excess.height
        plain &= ~own
        if not excess.even:
            even &= ~own
    return settled, even, plain


def _all(y: Floats, codes: Ints, used: Ints, base: int) -> list[_Excess]:
    found = (_excess(y, codes == base, codes == code, int(code)) for code in used if code != base)
    return [excess for excess in found if excess is not None]


def _excess(y: Floats, base: Mask, own: Mask, code: int) -> _Excess | None:
    """None where the phase holds no transient memory, or is seen too rarely."""
    index = np.arange(len(y))
    before = np.maximum.accumulate(np.where(base, index, -1))
    after = np.minimum.accumulate(np.where(base, index, len(y))[::-1])[::-1]
    inner = own & (before >= 0) & (after < len(y))
    if inner.sum() < LEAST_SAMPLES:
        return None
    left, right = before[inner], after[inner]
    excess = y[inner] - (y[left] + y[right]) / 2
    across = y[right] - y[left]
    change = abs(median(across))
    height, spread = median(excess), robust_deviation(excess)
    if abs(height) <= max(0.75 * change, 4 * 1.2533 * spread / math.sqrt(len(excess))):
        return None
    noise = _noise(y, base, max(int(median(right - left)) // 2, 1))
    # Events need not keep alike, and one that keeps something may do so in the middle of it.
    usual = math.hypot(noise, robust_deviation(across) / 2, change / 2)
    return _Excess(code=code, height=height, even=spread <= PASSING_SPREAD * usual)


def _noise(y: Floats, base: Mask, lag: int) -> float:
    """What such an excess spreads by in the base itself, over gaps as wide: noise with a memory
    spreads more over wide ones. Where the base has none as wide, from neighbors in it; else from
    all neighbors."""
    middle = y[lag:-lag] - (y[: -2 * lag] + y[2 * lag :]) / 2
    pure = base[lag:-lag] & base[: -2 * lag] & base[2 * lag :]
    if pure.sum() >= LEAST_PAIRS:
        return robust_deviation(middle[pure])
    neighbors, inside = np.diff(y), base[1:] & base[:-1]
    if inside.sum() >= LEAST_PAIRS:
        neighbors = neighbors[inside]
    return robust_deviation(neighbors) / math.sqrt(2)
