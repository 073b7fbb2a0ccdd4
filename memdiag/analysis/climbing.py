"""Rules for a last regime that grows: warm-up, leak, or not to be told.

The heart is the posterior odds of leak against warm-up (docs/method.md):

    odds = prior * plateau factor * regularity factor * rounds factor / S(length)

with S the survival function of warm-up lengths on this kind of axis (`Policy`), and the length that
of undiminished growth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.prepare import Prepared
from memdiag.analysis.rounds import rounds_odds
from memdiag.analysis.segmentation import Piece, bins
from memdiag.analysis.trend import Trend, line, trend
from memdiag.analysis.view import View, r_squared, rate
from memdiag.model import AxisKind, Role, Unit
from memdiag.policy import EXACT_ROLES, PAGES, Policy

if TYPE_CHECKING:
    from memdiag.model import Floats

GATE_KENDALL = 18
"""Kendall's S of eight blocks from which they rise at p = .016 (Mann 1945, exact)."""

LEAST_OF_HALF = 3
"""Bins that make a slope with an error."""

PLATEAU_RANGES = 1.5
"""Growth that rose by less than so many ranges of the plateau may be its next swing (chosen)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Undiminished growth: the bin it began in, its length, and what went before it.

    plateau_x: length of the plateau before, 0 without one. slowed: it grew much faster before.
    """

    first_bin: int
    length_x: float
    plateau_x: float = 0.0
    slowed: bool = False


def undiminished(view: View, policy: Policy) -> Span:
    """How far back growth went on at about the present rate, jumps between regimes included.

    A short rest at the very start is no plateau: the program had not yet begun. Nor is a rest that
    is no longer than those of the growth after it: it is one of its treads.
    """
    x, slope = view.binned.x, view.trend.slope
    start, plateau, slowed = view.tail, 0.0, False
    for piece in reversed([p for p in view.segmentation.pieces if p.first < view.tail]):
        if _is_plateau(view, piece, start):
            plateau = float(x[start] - x[piece.first])
            idle = piece.first <= 1 and plateau < policy.idle_share * float(x[-1] - x[start])
            plateau = 0.0 if idle or plateau <= _longest_rest(view, start) else plateau
            break
        pace = rate(view, piece)
        if not 0.4 * slope <= pace <= 2.0 * slope:
            slowed = pace > 2.0 * slope and piece.last - piece.first > 1
            break
        start = piece.first
    return Span(first_bin=start, length_x=float(x[-1] - x[start]), plateau_x=plateau, slowed=slowed)


def _longest_rest(view: View, first: int) -> float:
    """Length of the longest flat regime from bin `first` on."""
    x = view.binned.x
    flat = [p for p in view.segmentation.pieces if p.first >= first and p.flat]
    ends = [min(p.last, len(x) - 1) for p in flat]
    return max((float(x[end] - x[p.first]) for p, end in zip(flat, ends, strict=True)), default=0.0)


def _is_plateau(view: View, piece: Piece, start: int) -> bool:
    """A flat regime that growth leaves without a jump: growth that restarts, no staircase."""
    x, y, slope = view.binned.x, view.binned.y, view.trend.slope
    if piece.last - piece.first < 2 or abs(piece.slope) >= 0.25 * slope:
        return False
    expected = slope * float(x[start] - x[piece.last - 1])
    flat = y[piece.first : piece.last]
    if float(y[-1] - flat.max()) < PLATEAU_RANGES * float(np.ptp(flat)):
        return False
    jump = float(y[start] - np.median(flat))
    return jump <= 1.5 * expected + 3 * view.segmentation.noise


def posterior_leak(view: View, policy: Policy, span: Span, regular_odds: float) -> float:
    """Posterior probability that growth of this length and regularity is a leak, 0..1."""
    kind, end = view.prepared.axis.kind, float(view.prepared.x[-1])
    length = policy.warmup_lengths[kind]
    odds = policy.prior_leak_odds * regular_odds / length.survival(span.length_x)
    odds *= rounds_odds(view.prepared.rounds, end - span.length_x, end, kind, policy)
    if span.plateau_x > 0:
        odds *= 1 + policy.plateau_odds * (1 - length.survival(span.plateau_x))
    if span.slowed:
        odds *= policy.slowed_odds
    return odds / (1 + odds)


def regular_odds(view: View, policy: Policy) -> float:
    """Factor on the odds for growth by equal increments, none of them late or small."""
    length = policy.warmup_lengths[view.prepared.axis.kind]
    first = view.first_sample
    x, y = view.prepared.x[first:], view.prepared.y[first:]
    if len(x) < 2 * policy.tail_samples:
        return 1.0
    odds = _in_use_odds(view.prepared, policy)
    if is_exact(view, policy):
        return length.exact_odds * odds
    half = len(x) // 2
    early = (y[half] - y[0]) / (x[half] - x[0])
    late = (y[-1] - y[half]) / (x[-1] - x[half])
    r2 = r_squared(x, y) if late > 0.8 * early else 0.0
    if r2 >= policy.regular_r2:
        return length.regular_odds * odds
    return math.sqrt(length.regular_odds) if r2 >= policy.even_r2 else 1.0


def _in_use_odds(prepared: Prepared, policy: Policy) -> float:
    """Of bytes that malloc has handed out, and of Python's blocks, each of which is memory."""
    is_in_use = prepared.role in (Role.IN_USE, Role.OBJECTS)
    return policy.in_use_odds if is_in_use and prepared.axis.kind is AxisKind.STEP else 1.0


def is_exact(view: View, policy: Policy) -> bool:
    """An exact meter that grew by the very same amount in every increment of the last regime."""
    first = view.first_sample
    x, y = view.prepared.x[first:], view.prepared.y[first:]
    if view.prepared.role not in EXACT_ROLES or len(x) <= policy.exact_increments:
        return False
    rates = np.diff(y) / np.diff(x)
    return bool(np.ptp(rates) <= policy.exact_spread * abs(float(rates.mean())))


def is_collected(view: View, policy: Policy) -> bool:
    """A collected heap's growth means something: it was collected, or should have been."""
    y = view.prepared.all_y
    enough = view.prepared.falls >= policy.collections
    outgrown = float(y[-1]) >= policy.collected_growth * float(np.abs(y).min())
    return enough or outgrown or is_exact(view, policy)


def is_one_line(view: View, policy: Policy) -> bool:
    """What was cut into several climbing regimes is a straight line after all."""
    x, y = view.binned.x[view.tail :], view.binned.y[view.tail :]
    return len(x) >= policy.tail_samples and r_squared(x, y) >= policy.regular_r2


def is_negligible(
    prepared: Prepared, slope: float, policy: Policy, planned_x: float | None
) -> bool:
    """The growth comes to nothing over the plan, or over the default horizon."""
    horizon = max(policy.horizons[prepared.axis.kind], policy.horizon_runs * prepared.run)
    if planned_x is not None and len(prepared.x) and planned_x > prepared.x[-1]:
        horizon = float(planned_x - prepared.x[-1])
    grown = max(slope * horizon, float(prepared.y[-1] - prepared.y[0]))
    least = policy.negligible_share * prepared.level
    if prepared.unit is Unit.BYTES:
        least = max(least, min(policy.negligible_bytes, policy.negligible_times * prepared.level))
    if prepared.axis.kind is AxisKind.STEP:
        least = max(least, policy.background_per_step.get(prepared.role, 0.0) * horizon)
    return grown < least


def negligible_lately(
    prepared: Prepared, policy: Policy, planned_x: float | None
) -> tuple[int, Trend] | None:
    """Where the last half of the run begins, and its trend, if that surely comes to nothing.

    A test of equivalence (Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657-680) on its upper
    side: the upper end of the slope's interval is negligible. A step, a ramp or a leak that began
    within the half makes that end large, so that doubt about them is kept.
    """
    x = prepared.x
    first = int(np.searchsorted(x, 0.5 * (x[0] + x[-1])))
    if len(x) - first < policy.window_samples:
        return None
    binned = bins(x[first:], prepared.y[first:], policy.resolution)
    fitted = trend(binned.x, binned.y, binned.floor(prepared.noise))
    most = fitted.slope + fitted.half_width(1 - policy.alpha)
    half = replace(prepared, x=x[first:], y=prepared.y[first:])
    return (first, fitted) if is_negligible(half, most, policy, planned_x) else None


def few_pages(prepared: Prepared, rise: float, policy: Policy) -> float:
    """Bytes by which pages must still rise to be more than what is touched for the first time.

    Heaps, libraries and a parent's memory after a fork are there before they are in RAM: going
    through them raises the pages of a process along a line as straight as any leak's.
    """
    if prepared.role not in PAGES or prepared.unit is not Unit.BYTES or rise <= 0:
        return 0.0
    share = max(policy.touched_share * prepared.level, policy.touched_least_bytes)
    return min(policy.touched_bytes, share) - rise


def is_reclaimed(view: View, policy: Policy) -> bool:
    """As much as the present growth was given back before."""
    x, y = view.binned.x, view.binned.y
    before = y[: view.tail + 1]
    if len(before) < 2:
        return False
    drawdown = float(np.max(np.maximum.accumulate(before) - before))
    grown = view.trend.slope * float(x[-1] - x[view.tail])
    return drawdown > 10 * view.prepared.noise and grown < policy.reclaimed_factor * drawdown


def is_faint(view: View, policy: Policy) -> bool:
    """A slight rise behind a great climb, not far beyond its noise: as likely the climb's end."""
    x, y, fitted = view.binned.x, view.binned.y, view.trend
    if view.tail == 0 or fitted.t >= policy.faint_errors:
        return False
    climb = float(y[view.tail] - y[: view.tail].min())
    return fitted.slope * float(x[-1] - x[view.tail]) < policy.faint_share * climb


def is_one_jump(view: View) -> bool:
    """One step up, with what scatters before and after it, fits the last regime better than a line
    does: by BIC (n ln RSS, and ln n more for the step's place), with positive evidence (2; Kass and
    Raftery 1995).
    """
    x, y = view.binned.x[view.tail :], view.binned.y[view.tail :]
    y, n = y - y.mean(), len(y)
    if n < LEAST_TO_STEP:
        return False
    level, slope = line(x, y)
    of_line = float(np.square(y - level - slope * (x - x.mean())).sum())
    before, left = np.cumsum(y)[:-1], np.arange(1, n)
    explained = before**2 / left + before**2 / (n - left)
    of_step = float(np.square(y).sum() - explained.max())
    return 0 < of_step < of_line * math.exp(-(math.log(n) + POSITIVE) / n)


POSITIVE = 2.0
LEAST_TO_STEP = 12
"""Bins from which on a step is told from a line (chosen)."""


def speeds_up(view: View) -> bool:
    """The last regimes all climb, each at least as fast as the one before it."""
    slopes = [p.slope for p in view.segmentation.pieces if p.first >= view.tail and not p.flat]
    cut = sum(p.first >= view.tail for p in view.segmentation.pieces)
    return cut == len(slopes) > 1 and slopes[0] > 0 and slopes == sorted(slopes)


def is_return(view: View, policy: Policy) -> bool:
    """Half of the growth or more only comes back to where the level had been before."""
    x, y = view.binned.x, view.binned.y
    if view.tail < policy.tail_samples - 1:
        return False
    rise = view.trend.slope * float(x[-1] - x[view.tail])
    end = float(y[view.tail :].mean()) + rise / 2
    return end - float(np.quantile(y[: view.tail], 0.9)) < 0.5 * rise


def is_slowing(view: View, policy: Policy) -> bool:
    """The second half of the last regime grows clearly slower than the first: half of its way where
    a quarter of the readings or fewer are there."""
    x, y = view.binned.x[view.tail :], view.binned.y[view.tail :]
    if len(x) < 10:
        return _falls_steadily(np.diff(y) / np.diff(x), policy)
    half, by_way = len(x) // 2, int(np.searchsorted(x, 0.5 * (x[0] + x[-1])))
    if len(x) - by_way <= len(x) // 4:
        half = min(by_way, len(x) - LEAST_OF_HALF)
    early, late = trend(x[:half], y[:half], view.floor), trend(x[half:], y[half:], view.floor)
    gap = early.slope - late.slope
    unsure = 2 * math.hypot(early.error, late.error)
    return late.slope < policy.slowing * early.slope and gap > unsure


def _falls_steadily(rates: Floats, policy: Policy) -> bool:
    """Each of a few rates is lower than the one before."""
    falling = len(rates) >= policy.tail_samples and bool((np.diff(rates) < 0).all())
    return falling and bool(rates[-1] < policy.slowing * rates[0])


def is_steady(view: View, policy: Policy) -> bool:
    """Eight block means of the growing regime lie on a line, nearly all pairs in rising order."""
    x, y = view.prepared.x[view.first_sample :], view.prepared.y[view.first_sample :]
    if len(y) < 16:
        return True
    blocks = bins(x, y, 8)
    rising = np.sign(blocks.y[None, :] - blocks.y[:, None])[np.triu_indices(len(blocks.y), 1)]
    return bool(r_squared(blocks.x, blocks.y) >= policy.gate_r2 and rising.sum() >= GATE_KENDALL)
