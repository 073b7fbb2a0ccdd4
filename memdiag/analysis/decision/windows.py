"""Where growth is looked for: each rule proposes one kind of window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memdiag.analysis.decision.case import Case, Rule, Window
from memdiag.analysis.decision.prior import (
    Span,
    longer_share,
    posterior_leak,
    regular_odds,
    undiminished,
)
from memdiag.analysis.decision.regimes import RegimeFit, fit_regimes, r_squared
from memdiag.analysis.decision.staircase import Staircase
from memdiag.analysis.policy import Common, Policy
from memdiag.analysis.stats.changepoint import stretches
from memdiag.analysis.stats.slope_test import trend
from memdiag.values.verdict import Argument, Reason, Verdict

_AFTER_PLATEAU = "it barely grew for {plateau_x}, then grew for {length_x}; few warm-ups do that"
_REGULAR = "it grew by equal amounts for {length_x}; leaks do that, few warm-ups do"
_LONG = "it grew for {length_x}; {longer_share} of warm-ups last longer"
_LONG_IN_TIME = "it grew for {length_x} in {length_s}; {longer_share} of warm-ups last longer"
_ONE_STEP = "it rose by no more than the smallest change that its readings show"


def _window(fit: RegimeFit, policy: Policy, text: str = "") -> Window:
    """The last regime of the fit, with the posterior of its growth. text: put before its own."""
    span = undiminished(fit, policy)
    factor = max(regular_odds(one, policy) for one in (fit, fit.from_bin(span.first_bin)))
    posterior = posterior_leak(fit, policy, span, factor)
    longer = longer_share(fit.prepared, span.length_x, policy)
    length_s = span.length_x * (fit.prepared.seconds_per_x or 0.0)
    if span.plateau_x > 0:
        reason, why = Reason.GROWTH_AFTER_PLATEAU, _AFTER_PLATEAU
    elif factor > 1:
        reason, why = Reason.REGULAR_GROWTH, _REGULAR
    else:
        length = policy.prior.warmup_length(fit.prepared.axis.kind)
        is_slow = longer < length.survival(span.length_x)
        reason, why = Reason.OUTLASTS_WARMUP, _LONG_IN_TIME if is_slow else _LONG
    numbers = {
        "length_x": span.length_x,
        "plateau_x": span.plateau_x,
        "growth_rate": fit.trend.slope,
        "growth_error_rate": fit.trend.error,
        "growth_p": fit.p_growth,
        "longer_share": longer,
        **({"length_s": length_s} if why is _LONG_IN_TIME else {}),
        "posterior_share": posterior,
    }
    return Window(
        fit=fit,
        trend=fit.trend,
        first_sample=fit.first_sample,
        span_x=span.length_x,
        posterior=posterior,
        argument=Argument(text=text + why, numbers=numbers, reason=reason, verdict=Verdict.LEAK),
    )


@Rule
def last_regime(case: Case) -> Window | str:
    """The last regime of the best partition into lines: does memory grow in it?

    A slope test that holds for autocorrelated noise (Perron and Yabu, J. Econometrics 151 (2009)
    56-69), and the weight of all last regimes that have a material slope against the flat ones.
    """
    fit, common = case.fit, case.policy.common
    if fit.is_one_step:
        return _ONE_STEP
    if fit.p_growth >= common.alpha or fit.growing <= common.growing_weight:
        return "any growth since its rate last changed may be chance"
    return _window(fit, case.policy)


@Rule
def whole_climb(case: Case) -> Window | str:
    """The whole climb since the last plateau, where several regimes make one line, or speed up."""
    policy = case.policy
    if case.fit.is_one_step:
        return _ONE_STEP
    whole = case.fit.from_bin(undiminished(case.fit, policy).first_bin)
    if whole.p_growth >= policy.common.alpha or not (
        _is_one_line(whole, policy.common) or _speeds_up(whole)
    ):
        return "growth since its last plateau may be chance, is uneven or slows down"
    return _window(whole, policy)


def _is_one_line(fit: RegimeFit, common: Common) -> bool:
    """Return True if what was cut into several climbing regimes is a straight line after all."""
    x, y = fit.binned.x[fit.tail :], fit.binned.y[fit.tail :]
    return len(x) >= common.fewest and r_squared(x, y) >= common.regular_r2


def _speeds_up(fit: RegimeFit) -> bool:
    """Return True if the last regimes all climb, each at least as fast as the one before it."""
    pieces = [p for p in fit.segmentation.pieces if p.first >= fit.tail]
    slopes = [p.slope for p in pieces if not p.flat]
    return len(pieces) == len(slopes) > 1 and slopes[0] > 0 and slopes == sorted(slopes)


@Rule
def staircase(case: Case) -> Window | str:
    """Growth by steps between flat treads, as pools and caching allocators show it.

    A staircase that continues is weighed like growth along its steps: a line through them, and no
    wait longer than the gaps before.
    """
    policy, fit, steps = case.policy, case.fit, case.staircase
    if steps is None:
        return "no upward steps with level stretches between them were found"
    if not _continues(steps, policy.common):
        return "it rises in steps, but they are too few, are uneven or have stopped"
    fitted = trend(steps.at, steps.level, fit.floor)
    length_x = float(steps.at[-1] - steps.at[0])
    span = Span(first_bin=steps.first_bin, length_x=length_x)
    posterior = posterior_leak(fit, policy, span, 1.0)
    numbers = {
        "steps": float(len(steps.at)),
        "length_x": length_x,
        "growth_rate": fitted.slope,
        "growth_p": fitted.p_growth,
        "longer_share": longer_share(fit.prepared, length_x, policy),
        "posterior_share": posterior,
    }
    return Window(
        fit=fit,
        trend=fitted,
        first_sample=int(fit.binned.start[steps.first_bin]),
        span_x=float(fit.binned.x[-1] - fit.binned.x[steps.first_bin]),
        posterior=posterior,
        argument=Argument(
            text="it rose in {steps} even steps over {length_x}; {longer_share} of warm-ups last "
            "longer",
            numbers=numbers,
            reason=Reason.OUTLASTS_WARMUP,
            verdict=Verdict.LEAK,
        ),
        need_x=max(steps.still_to_wait, 0.0) or None,
    )


def _continues(steps: Staircase, common: Common) -> bool:
    """Return True if the steps lie on a line and less than two median gaps have passed since."""
    if len(steps.at) < common.cycles or steps.waited >= 2 * steps.median_gap:
        return False
    return r_squared(steps.at, steps.level) >= common.block_r2


@Rule
def block_trend(case: Case) -> Window | str:
    """A line through a few coarse blocks, which does not see treads, teeth and noise.

    From the earliest regime on from which the blocks climb on a line, but not from one that is
    level for a whole block. R2 of eight blocks from .9 on is t >= 7.3 at 6 degrees of freedom,
    above the 5.6 that hold for every AR(1) noise at 95%.
    """
    fit, common = case.fit, case.policy.common
    for piece in fit.segmentation.pieces:
        first = int(fit.binned.start[piece.first])
        if len(fit.prepared.x) - first < common.window_samples:
            break
        bins = len(fit.binned.x) - piece.first
        is_rest = piece.flat and (piece.last - piece.first) * common.blocks > bins
        if not is_rest and _is_steady_line(fit, first, case.policy):
            return _window(fit.from_bin(piece.first), case.policy)
    return "averages over long parts of the run are too few or do not grow steadily"


def _is_steady_line(fit: RegimeFit, first: int, policy: Policy) -> bool:
    """Return True if, from sample `first` on, blocks lie on a line, nearly all step up, and they
    do not slow down."""
    x, y, common = fit.prepared.x[first:], fit.prepared.y[first:], policy.common
    blocks = stretches(x, y, common.blocks, policy)
    steps = np.diff(blocks.y)
    if r_squared(blocks.x, blocks.y) < common.block_r2 or (steps > 0).sum() < len(steps) - 1:
        return False
    half = len(steps) // 2
    early, late = float(steps[:half].mean()), float(steps[-half:].mean())
    return late >= common.slowing * early and bool(steps[-1] > 0)


@Rule
def turning_points(case: Case) -> Window | str:
    """Growth under slow waves, judged on the line of their turning points (`waves`)."""
    policy = case.policy
    slow = case.all_waves(policy.common.most)
    if slow is None:
        return "it does not go up and down in slow waves"
    if not slow.continues(policy.common.slowing) or slow.p_rise >= policy.common.alpha:
        return "it goes up and down in slow waves, but the waves do not keep rising"
    turned = replace(case.prepared, x=slow.x, y=slow.y, noise=slow.scatter, floors=True, blur=0.0)
    fit = fit_regimes(turned, policy).from_bin(0)
    return _window(fit, policy, "the highs and lows of its slow waves rise: ")
