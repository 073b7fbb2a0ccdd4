"""Growth that slows down: the end of a warm-up looks like this."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision.case import Case, Rule, Window
from memdiag.analysis.decision.prior import undiminished
from memdiag.analysis.decision.regimes import RegimeFit
from memdiag.analysis.stats.noise import UNIFORM
from memdiag.analysis.stats.saturating_exponential import Saturation, endless, saturation
from memdiag.analysis.stats.slope_test import Trend, trend
from memdiag.values.verdict import Argument, Reason, Verdict

if TYPE_CHECKING:
    from memdiag.analysis.policy import Policy


@Rule
def saturating(case: Case, window: Window) -> Argument | None:
    """The climb that ends now bends into a ceiling that it has nearly reached.

    A saturating exponential against a straight line, by BIC, with the slope that remains beside the
    curve. Looks at the whole climb where the curve fits it, else at the last regime alone. A climb
    longer than warm-ups last must have come nearer to its ceiling. As elsewhere, a climb of at most
    a fiftieth of the level is no warm-up that a user would see.
    """
    fit, policy = window.fit, case.policy
    for first in dict.fromkeys((_climb(fit), fit.tail)):
        found = _saturation(fit, first, policy, near=True)
        if found is None:
            continue
        short = window.posterior < policy.prior.leak_posterior
        share = policy.common.slight if short else policy.common.stable_growth
        if not _nearly_there(found, fit, policy, first, share):
            return None
        risen = float(fit.binned.y[-1] - fit.binned.y[first])
        warm = risen > policy.common.stable_growth * fit.prepared.level
        return Argument(
            text="it is leveling off, with only {left_y} of growth left",
            numbers={"left_y": found.left, "evidence": found.evidence},
            reason=Reason.PLATEAU if warm else Reason.FLAT,
            verdict=Verdict.WARMUP if warm else Verdict.STABLE,
        )
    return None


@Rule
def bending(case: Case, window: Window) -> Argument | None:
    """The whole climb that ends now bends toward a ceiling, however far away that still is, or has
    none but slows down for ever, as the logarithm or the square root does.

    Not a warm-up beside a leak: a saturating exponential and a line describe that better.
    """
    fit, common, first = window.fit, case.policy.common, _climb(window.fit)
    found = _saturation(fit, first, case.policy, near=False)
    if found is not None and _bends(found, fit, case.policy, first):
        slowed, evidence = found.slowed, found.evidence
    else:
        x, y = fit.binned.x[first:], fit.binned.y[first:]
        noise = max(fit.segmentation.noise, fit.floor)
        evidence = endless(x, y, noise, common.blocks)
        if evidence < common.positive_bic:
            return None
        early, late = _halves(fit, first, case.policy)
        if early.slope - late.slope <= _unsure(early.error, late.error):
            return None
        slowed = late.slope / early.slope if early.slope > 0 else 1.0
    if slowed >= common.slowing:
        return None
    return Argument(
        text="its growth slows down throughout, at the end to {slowed_share} of the rate at the "
        "start",
        numbers={"slowed_share": slowed, "evidence": evidence},
        reason=Reason.SLOWING,
    )


def _climb(fit: RegimeFit) -> int:
    """First bin of the unbroken climb that ends now, without a lone reading before it."""
    y, first = fit.binned.y, fit.tail
    for piece in fit.before:
        if piece.slope < 0 or y[piece.first] > y[first] or piece.last - piece.first < 2:
            break
        first = piece.first
    return first


def _saturation(fit: RegimeFit, first: int, policy: Policy, *, near: bool) -> Saturation | None:
    """The curve through the bins from `first` on; None where it does not fit them.

    near: what fills by chance scatters, and may fit less closely if the curve leaves no more than a
    small part of what a line does.
    """
    found, common = _curve(fit, first, policy), policy.common
    if found is None:
        return None
    bins = len(fit.binned.x) - first
    clear = near and found.evidence >= -bins * math.log(common.little)
    return None if found.misfit > (common.clear_noises if clear else common.noises) else found


def _curve(fit: RegimeFit, first: int, policy: Policy) -> Saturation | None:
    """The best curve through the bins from `first` on, however far they are from it."""
    noise = max(fit.segmentation.noise, fit.floor)
    return saturation(fit.binned.x[first:], fit.binned.y[first:], noise, policy.common.cycles)


def _is_unfinished(fit: RegimeFit, first: int, policy: Policy) -> bool:
    """Return True if the rate of the best curve has not come to a small part of the first one."""
    found = _curve(fit, first, policy)
    return found is not None and found.slowed >= policy.common.little


def _bends(found: Saturation, fit: RegimeFit, policy: Policy, first: int) -> bool:
    """Return True if it is not a line, and nothing that matters keeps growing beside the curve."""
    crept = found.creep * float(fit.binned.x[-1] - fit.binned.x[first])
    creeps = found.creep > 2 * found.creep_error
    matters = crept > policy.common.immaterial_share * fit.prepared.level
    return found.evidence >= policy.common.evidence_bic and not (creeps and matters)


def _nearly_there(
    found: Saturation, fit: RegimeFit, policy: Policy, first: int, share: float
) -> bool:
    x, y, level = fit.binned.x, fit.binned.y, fit.prepared.level
    if not _bends(found, fit, policy, first):
        return False
    if found.left > float(y[-1] - y[first]):
        return False  # most of the way is still to come: a line with a jump in it looks like that
    creeping = (found.creep + found.creep_error) * float(x[-1] - x[first])
    return 0 <= found.left < share * level and creeping < share * level


@Rule
def slowing(case: Case, window: Window) -> Argument | None:
    """Of a few readings each rate is lower than the one before, as at the end of a warm-up, and the
    last one clearly lower than the first.
    """
    fit, common = window.fit, case.policy.common
    x, y = fit.binned.x[fit.tail :], fit.binned.y[fit.tail :]
    if not common.fewest < len(x) < common.blocks:
        return None
    rates = np.diff(y) / np.diff(x)
    if not (np.diff(rates) < 0).all() or rates[-1] >= common.slowing * rates[0]:
        return None
    return Argument(
        text="its growth slows down with each reading: {early_rate} at first, {late_rate} now",
        numbers={"early_rate": float(rates[0]), "late_rate": float(rates[-1])},
        reason=Reason.SLOWING,
    )


def _halves(fit: RegimeFit, first: int, policy: Policy) -> tuple[Trend, Trend]:
    """The trends of both halves of the bins from `first` on."""
    x, y, common = fit.binned.x[first:], fit.binned.y[first:], policy.common
    least = fit.prepared.quantum * UNIFORM
    half, by_way = len(x) // 2, int(np.searchsorted(x, (x[0] + x[-1]) / 2))
    if len(x) - by_way <= common.short_share * len(x):
        half = min(by_way, len(x) - common.fewest)
    return trend(x[:half], y[:half], least), trend(x[half:], y[half:], least)


def _unsure(first: float, second: float) -> float:
    """Least difference of two slopes with these standard errors that is not chance."""
    return 2 * math.hypot(first, second)


@Rule
def slower_lately(case: Case, window: Window) -> Argument | None:
    """A last regime of more than a fifth of the run is clearly less steep than the coarse line, and
    may not climb at all.
    """
    fit, line, common = case.fit, window.fit, case.policy.common
    if case.last_share <= common.short_share or fit.tail_samples < common.fewest:
        return None
    early, late = line.trend.slope, fit.trend.slope
    if late >= common.slowing * early or fit.p_growth < common.alpha:
        return None
    if early - late <= _unsure(line.trend.error, fit.trend.error):
        return None
    return Argument(
        text="it grew by {growth_rate} overall, but by only {late_rate} in the last {last_share} "
        "of the run",
        numbers={"growth_rate": early, "late_rate": late, "last_share": case.last_share},
        reason=Reason.SLOWING,
    )


@Rule
def steps_slow(case: Case, window: Window) -> Argument | None:
    """It rises in steps that bring less in each third of the way from the first of them to the
    last: no curve fits steps closely enough to show that they slow down.
    """
    steps, common = case.staircase, case.policy.common
    if steps is None:
        return None
    ends = np.linspace(steps.at[0], steps.at[-1], common.fewest + 1)
    risen = np.diff(np.interp(ends, steps.at, steps.level))
    if (np.diff(risen) >= 0).any() or risen[-1] >= common.slowing * risen[0]:
        return None
    return Argument(
        text="it rises in steps that slow down: by {early_y} in the first third of them, by "
        "{late_y} in the last",
        numbers={"early_y": float(risen[0]), "late_y": float(risen[-1])},
        reason=Reason.SLOWING,
    )


@Rule
def slowed_before(case: Case, window: Window) -> Argument | None:
    """Its rate fell, and fell again: growth that slowed down so late may do so again, even if it is
    linear since.

    It did so before its present rate, if more than a third of the climb went before, or in both
    halves since then, if the curve through the climb has not yet come to less than a tenth of its
    first rate: then the warm-up would be over.

    Not where its rate since then falls clearly less than half as much as it did before: what
    slowed down, as a saturating exponential does, has ended, and a line is left.
    """
    fit, policy = window.fit, case.policy
    span, x, y, start = undiminished(fit, policy), fit.binned.x, fit.binned.y, _climb(fit)
    since, climb = x[span.first_bin], float(x[-1] - x[start])
    if not span.slowed or climb <= span.length_x:
        return None
    first, second = _halves(fit, span.first_bin, policy)
    unsure = _unsure(first.error, second.error)
    if climb - span.length_x > policy.common.warm_share * climb:
        ends = [x[start], (x[start] + since) / 2, since]
        early, late = np.diff(np.interp(ends, x, y))
        slows = late < policy.common.slowing * early
        text = "it slowed down again and again, and has its present rate for {length_x} of "
        text += "{climb_x} only"
    else:
        early, late = (y[span.first_bin] - y[start]) / (since - x[start]), first.slope
        slows = first.slope - second.slope > unsure and _is_unfinished(fit, start, policy)
        text = "it slowed down before the last {length_x} of {climb_x}, and again in them"
    if not slows or policy.common.most * (second.slope - unsure) * early > late * first.slope:
        return None
    return Argument(
        text=text,
        numbers={"length_x": span.length_x, "climb_x": climb},
        reason=Reason.SLOWING,
    )


@Rule
def waves_slow(case: Case, window: Window) -> Argument | None:
    """Growth under slow waves whose turning points do not keep rising: memory that swings with the
    load, or a warm-up beneath it.
    """
    slow = case.all_waves(case.policy.common.warm_share)
    if slow is None or slow.continues(case.policy.common.slowing):
        return None
    return Argument(
        text="it goes up and down in {falls} slow waves, whose highs and lows rise more slowly now",
        numbers={"falls": float(slow.falls)},
        reason=Reason.SLOWING,
    )
