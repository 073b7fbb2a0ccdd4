"""Which column is the axis, and what to do if it restarts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from memdiag.values.measurements import Axis, AxisKind

if TYPE_CHECKING:
    from memdiag.values.measurements import Floats, Ints

# A step axis with fewer distinct steps than this, on many more samples, is worse than a clock.
_FEW_STEPS = 8
_MANY_SAMPLES_PER_STEP = 4
# Steps that end so much earlier than the readings, of the time since they began, are those of a
# part of the run only: what comes later may grow as well. Heuristic.
_WITHOUT_STEPS = 1 / 3
# A clock may be set back, or several threads may write a log: at most this share of the rows, or of
# the time.
_BACKWARDS = 0.05
# A position does not move in either direction more often than this, nor time as far. Heuristic.
_BOTH_WAYS = 0.2
# Start-up: the counter has its first value for this many rows, and this many times longer than a
# later value on average.
_START_UP_ROWS = 8
_START_UP_STAYS = 10
# Steps are known now and then if most are held for this part of the time until the next, which is
# this much later, and if this part of the moves are multiples of the usual one: a log prints every
# so many steps, while those that a sampler meets are irregular.
_HELD = 0.5
_REGULAR = 0.8
_FEWEST_BETWEEN = 2
_TOLD_AT_LEAST = 3
# With fewer rows between two resets on average the rows are just unsorted.
_ROWS_PER_BLOCK = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A column that may be the axis: its values over all rows, in seconds for a clock.

    is_assumed: its name does not show what it counts.
    is_asked_for: the user chose it.
    """

    axis: Axis
    values: Floats
    rank: int
    is_assumed: bool = False
    is_asked_for: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """How an axis that restarts is read: new positions, or restarts of the process, and a note."""

    x: Floats
    generation: Ints | None
    note: str


def choose(candidates: list[Candidate], notes: list[str]) -> Candidate | None:
    """The best axis: the lowest rank, or a clock if steps or epochs are too few, with a note. None
    if none of them ever changes.
    """
    moving = [c for c in candidates if np.nanmin(c.values) < np.nanmax(c.values)]
    ranked = sorted(moving, key=lambda c: c.rank)
    if not ranked:
        return None
    best = ranked[0]
    clock = next((c for c in ranked if c.axis.kind is AxisKind.SECONDS), None)
    if clock is None or best.axis.kind not in {AxisKind.STEP, AxisKind.EPOCH}:
        return best
    few = _distinct(best.values)
    many = _distinct(clock.values)
    if few >= _FEW_STEPS or many < _MANY_SAMPLES_PER_STEP * few:
        return best
    kind = best.axis.kind.value
    notes.append(
        f"{few} different {kind}s are too few to judge by (at least {_FEW_STEPS}): "
        f"{clock.axis.name} is the axis"
    )
    return clock


def end_early(x: Floats, at_s: Floats) -> bool:
    """Return True if the steps `x` end long before the readings at times `at_s`."""
    order = np.argsort(at_s, kind="stable")[: np.isfinite(at_s).sum()]  # NaN comes last
    x, at_s = x[order], at_s[order]
    known = np.flatnonzero(np.isfinite(x))
    moves = known[1:][np.diff(x[known]) != 0]
    if not len(moves):
        return False
    began_s, last_s, ended_s = at_s[known[0]], at_s[moves[-1]], at_s[-1]
    return bool(ended_s - last_s > _WITHOUT_STEPS * (ended_s - began_s))


def contradicts(x: Floats, at_s: Floats, generation: Ints | None) -> bool:
    """Return True if time goes back where the positions `x` go on, except at a restart."""
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(at_s))
    lives = np.zeros(known.size) if generation is None else generation[known]
    order = np.lexsort((at_s[known], x[known], lives))
    moves = np.diff(at_s[known][order])[np.diff(lives[order]) == 0]
    back_s, on_s = -moves[moves < 0].sum(), moves[moves > 0].sum()
    return bool(back_s > _BACKWARDS * on_s)


def without_durations(
    candidates: Sequence[Candidate], groups: Sequence[Ints | slice]
) -> list[Candidate]:
    """Leave out time columns that often decrease: the duration of a step is not a clock. Beside a
    clock, leave out counts that go up and down: requests in each interval are no position.

    groups: the rows of each process. A time that is the only axis stays in any order if it is
    spaced as samples are, or increases by much more in total than it decreases.
    """
    if all(_is_newest_first(c, groups) for c in candidates):
        return list(candidates)
    clocks = [c for c in candidates if c.axis.kind is AxisKind.SECONDS]
    running = [c for c in clocks if _increases(c.values, groups)]
    others = [c for c in candidates if c.axis.kind is not AxisKind.SECONDS]
    if running:
        others = [c for c in others if not _goes_both_ways(c.values, groups)]
    if others or running:
        return others + running
    return [c for c in clocks if _is_even(c.values, groups) or _goes_on(c.values, groups)]


def _is_newest_first(candidate: Candidate, groups: Sequence[Ints | slice]) -> bool:
    """Return True if its values fall, and those of a clock evenly: durations fall as well, where
    the first steps are the slowest.
    """
    is_clock = candidate.axis.kind is AxisKind.SECONDS
    return _increases(-candidate.values, groups) and (
        not is_clock or _is_even(candidate.values, groups)
    )


def _is_even(values: Floats, groups: Sequence[Ints | slice]) -> bool:
    """Return True if the values of most processes are evenly spaced once they are sorted."""
    spaces = [np.diff(np.sort(values[rows][np.isfinite(values[rows])])) for rows in groups]
    usual = [float(np.median(one)) if one.size else 0.0 for one in spaces]
    near = sum(
        int(((one > each / 2) & (one < each * 2)).sum())
        for one, each in zip(spaces, usual, strict=True)
    )
    return near >= _REGULAR * sum(one.size for one in spaces)


def _goes_on(values: Floats, groups: Sequence[Ints | slice]) -> bool:
    """Return True if the decreases add up to much less than the increases, however often."""
    steps = np.concatenate([np.diff(values[rows][np.isfinite(values[rows])]) for rows in groups])
    return bool(-steps[steps < 0].sum() <= _BOTH_WAYS * steps[steps > 0].sum())


def _goes_both_ways(values: Floats, groups: Sequence[Ints | slice]) -> bool:
    up = down = moves = 0
    for rows in groups:
        steps = np.diff(values[rows][np.isfinite(values[rows])])
        up, down = up + int((steps > 0).sum()), down + int((steps < 0).sum())
        moves += steps.size
    return min(up, down) > _BOTH_WAYS * moves


def _increases(values: Floats, groups: Sequence[Ints | slice]) -> bool:
    back = moves = 0
    for rows in groups:
        steps = np.diff(values[rows][np.isfinite(values[rows])])
        back += int((steps < 0).sum())
        moves += steps.size
    return back <= _BACKWARDS * moves


def rises_strictly(values: Floats) -> bool:
    """Return True if no value is missing and each is larger than the one before."""
    return values.size > 1 and bool(np.all(values[1:] > values[:-1]))


def counts_evenly(values: Floats) -> bool:
    """Return True for whole numbers of which most are as far from the one before: a count or a
    clock, and no amount that grows.
    """
    _, often = np.unique(np.diff(values), return_counts=True)
    return bool(2 * often.max() >= often.sum() and np.all(values == np.floor(values)))


def resolve_resets(x: Floats, y: Floats, epoch: Floats | None, name: str) -> Reset | None:
    """Read an axis that goes back.

    Where it goes back to its start: with an epoch column, or with several blocks, the axis counts
    within something, and its blocks are put end to end; one or two returns at which the memory
    returns too are restarts of the process. So is any number of returns to a later position, such
    as the step of a checkpoint. Anything else is sorted later: None.
    """
    known = np.flatnonzero(np.isfinite(x))  # a start-up has no steps
    at, y = x[known], y[known]
    falls = np.flatnonzero(at[1:] < at[:-1])  # (no array of differences: a column may be large)
    if falls.size == 0 or at.size < _ROWS_PER_BLOCK * (falls.size + 1):
        return None
    starts = np.concatenate(([0], falls + 1))
    block = np.searchsorted(known[falls], np.arange(x.size), side="left")
    stride = float(np.median(np.abs(np.diff(at))))
    resumes = bool(np.any(at[starts] > at[0] + 2 * stride))
    if (resumes or (epoch is None and falls.size <= 2)) and _falls_back(y, falls):
        goes = "goes back" if resumes else "restarts"
        note = f"{name} {goes} {_times(falls.size)} and the memory drops: read as process restarts"
        return Reset(x=x, generation=block.astype(np.int64), note=note)
    if resumes:
        return None
    onwards = at[falls] + stride - at[starts[1:]]  # each block begins after the one before
    offsets = np.concatenate(([0.0], np.cumsum(onwards)))
    note = f"{name} restarts {_times(falls.size)}: counted on from block to block"
    return Reset(x=x + offsets[block], generation=None, note=note)


def length_of_epoch(epoch: Floats, x: Floats) -> float | None:
    """The length of an epoch on the axis: the median from the start of one to the start of the
    next, per epoch (some logs have fractions). None if fewer than two are known.
    """
    known = np.isfinite(epoch) & np.isfinite(x)
    numbers, first = np.unique(epoch[known], return_index=True)
    if numbers.size < 2:
        return None
    length = float(np.median(np.diff(x[known][first]) / np.diff(numbers)))
    return length if length > 0 else None


def before_first_step_unknown(x: Floats) -> Floats:
    """NaN for the samples of a start-up, during which a step counter has its first value.

    A program that samples itself by the clock logs step 0 while it imports and loads.
    """
    known = x[np.isfinite(x)]
    if known.size == 0 or known[0] > 1:
        return x
    moved = np.flatnonzero(known != known[0])
    standing = int(moved[0]) if moved.size else 0
    stays = (known.size - standing) / max(1, _distinct(known) - 1)
    if standing < _START_UP_ROWS or standing < _START_UP_STAYS * stays:
        return x
    return np.where(x == known[0], np.nan, x)


def between_known_steps(x: Floats, at_s: Floats) -> Floats | None:
    """Positions in proportion to the time where steps are known only now and then, as a log that
    prints every hundredth tells them; None where they are known all the time.

    x, at_s: of one process, shape (n,), with each step held until the next is known. After the last
    one they go on at its pace, for at most one more interval.
    """
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(at_s))
    steps, times = x[known], at_s[known]
    moves = np.diff(steps)
    told = np.concatenate(([0], np.flatnonzero(moves) + 1)) if known.size else known
    if told.size < _TOLD_AT_LEAST:
        return None
    if moves.min() < 0 or np.diff(times).min() < 0:
        return None
    if (usual := np.median(moves[moves > 0])) < _FEWEST_BETWEEN:
        return None
    if np.mean(moves[moves > 0] % usual == 0) < _REGULAR:
        return None
    held_s, until_next_s = times[told[1:] - 1] - times[told[:-1]], np.diff(times[told])
    if np.median(held_s) < _HELD * np.median(until_next_s):
        return None
    strides = np.diff(steps[told])[-1], until_next_s[-1]
    told_steps = np.append(steps[told], steps[-1] + strides[0])
    told_times = np.append(times[told], times[told[-1]] + strides[1])
    positions: Floats = x.copy()
    positions[known] = np.floor(np.interp(times, told_times, told_steps))
    return positions


def _falls_back(y: Floats, falls: Ints) -> bool:
    """Return True if the memory loses most of each block's growth when the axis returns."""
    blocks = [block[np.isfinite(block)] for block in np.split(y, falls + 1)]
    if not all(block.size for block in blocks):
        return False
    for block, following in pairwise(blocks):
        first = np.median(block[:2])
        risen, kept = np.median(block[-3:]) - first, np.median(following[:2]) - first
        if not (risen > 0 and kept < 0.5 * risen):
            return False
    return True


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _distinct(values: Floats) -> int:
    known = values[np.isfinite(values)]
    if known.size and bool((known[1:] >= known[:-1]).all()):  # no need to sort
        return 1 + int(np.count_nonzero(known[1:] > known[:-1]))
    return int(np.unique(known).size)
