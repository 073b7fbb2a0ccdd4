"""The curves that growth may follow: events of a phase begun, partly over, over; time spent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.stats.median import median

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats, Ints

    Mask = NDArray[np.bool_]

PARTS = (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)  # of an event, where it grows
MOST_FOR_MOMENTS = (
    0.6  # a moment in a phase that fills more of the time is not counted as a phase: heuristic
)


def starts(member: Mask) -> Ints:
    """The samples that events begin with."""
    return np.flatnonzero(member & ~np.r_[False, member[:-1]])


def begun(member: Mask, keep: Mask) -> Ints:
    """The kept samples by which a further event has begun."""
    events = np.cumsum(member & ~np.r_[False, member[:-1]])[keep]
    return 1 + np.flatnonzero(np.diff(events) > 0)


def counters(x: Floats, member: Mask) -> Iterator[tuple[bool, Floats]]:
    """Events begun, partly over, at their last sample and ended, and time spent in them as tags
    name the end, both ends or the beginning of an interval (in mean events): (inside, shape (n,)).
    """
    before = np.r_[False, member[:-1]]
    first, ends = starts(member), starts(~member)
    if len(first) == 0:
        return
    last = np.r_[ends[ends > first[0]], len(member)][: len(first)] - 1
    for part in PARTS if member.mean() <= MOST_FOR_MOMENTS else ():
        rises = np.zeros(len(member))
        rises[np.round(first + part * (last - first)).astype(int)] = 1.0
        yield True, np.cumsum(rises)
    if member.mean() <= MOST_FOR_MOMENTS:
        yield False, np.cumsum(~member & before).astype(np.float64)
    width = np.diff(x, prepend=x[0])
    for inside, share in ((True, member), (True, (0.5 * member + 0.5 * before)), (False, before)):
        spent = np.cumsum(width * share)
        yield inside, spent / max(float(spent[-1]), 1e-300) * len(first)
    yield True, _passed(first, last, len(member))


def _passed(first: Ints, last: Ints, count: int) -> Floats:
    """Events passed, each bit by bit from the sample before it to its last, however long."""
    turns = np.column_stack([first - 1, last]).ravel()
    steps = np.repeat(np.arange(len(first)), 2) + np.tile([0.0, 1.0], len(first))
    passed: Floats = np.interp(np.arange(count), turns, steps)
    return passed


def ramps(member: Mask) -> Iterator[Floats]:
    """Progress, 0..1, from each event's beginning (end) to the next one's, shape (n,) each."""
    before = np.r_[False, member[:-1]]
    yield _progress(np.flatnonzero(member & ~before), len(member))
    yield _progress(np.flatnonzero(~member & before), len(member))


def _progress(turns: Ints, count: int) -> Floats:
    if len(turns) < 2:
        return np.zeros(count)
    usual = median(np.diff(turns))
    edges = np.r_[turns[0] - usual, turns, turns[-1] + usual]
    cycle = np.interp(np.arange(count), edges, np.arange(len(edges)))
    whole = np.minimum(np.floor(cycle), len(edges) - 2)
    progress: Floats = cycle - whole
    return progress


def creeps(member: Mask) -> tuple[Floats, Floats]:
    """How a mark of noise creeps up after each event's beginning and end, shape (n,) each."""
    before = np.r_[False, member[:-1]]
    return _creep(member & ~before), _creep(~member & before)


def _creep(turns: Mask) -> Floats:
    index = np.arange(len(turns))
    since = index - np.maximum.accumulate(np.where(turns, index, 0))
    creep: Floats = np.sqrt(2 * np.log1p(since))
    return creep


def hats(x: Floats, knots: int) -> Floats:
    """Piecewise linear basis over the axis; it sums to 1, shape (n, knots)."""
    at = (x - x[0]) / max(float(x[-1] - x[0]), 1e-300) * (knots - 1)
    hats: Floats = np.maximum(0.0, 1.0 - np.abs(at[:, None] - np.arange(knots)[None, :]))
    return hats
