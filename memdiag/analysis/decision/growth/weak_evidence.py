"""Growth that is too short, too rare, too uneven or too much like earlier rises to be a leak."""

from __future__ import annotations

import numpy as np

from memdiag.analysis.decision.case import Case, Rule, Window
from memdiag.analysis.decision.prior import most_of_leak
from memdiag.analysis.decision.regimes import r_squared
from memdiag.analysis.policy import HELD
from memdiag.analysis.stats.changepoint import bins
from memdiag.analysis.stats.eprocess import log_value, threshold
from memdiag.values.verdict import Argument, Reason


@Rule
def reclaimed_before(case: Case, window: Window) -> Argument | None:
    """An earlier rise this large was released: the next rise of a cycle looks like this.

    What a program holds may wander, as random keys and requests in flight do: half of the rise is
    enough there.
    """
    fit = window.fit
    before = fit.binned.y[: fit.tail + 1]
    if fit.prepared.floors or len(before) < 2:  # floors have no falls
        return None
    drawdown = float(np.max(np.maximum.accumulate(before) - before))
    if drawdown <= case.policy.common.clear_noises * fit.prepared.noise:
        return None
    if window.rise >= (2 if fit.prepared.role in HELD else case.policy.common.margin) * drawdown:
        return None
    return Argument(
        text="it rose by {rise_y}, but after an earlier rise it fell again by {fall_y}",
        numbers={"rise_y": window.rise, "fall_y": drawdown},
        reason=Reason.RECLAIMED_BEFORE,
    )


@Rule
def return_to_level(case: Case, window: Window) -> Argument | None:
    """Half of the growth or more only returns to an earlier level."""
    fit, rise = window.fit, window.rise
    y = fit.binned.y
    if fit.tail < case.policy.common.fewest - 1:
        return None
    end = float(y[fit.tail :].mean()) + rise / 2
    before = float(np.quantile(y[: fit.tail], 1 - case.policy.common.little))
    if end - before >= case.policy.common.most * rise:
        return None
    return Argument(
        text="it rose by {rise_y} to {end_y}, but had already been at {before_y}",
        numbers={"rise_y": rise, "end_y": end, "before_y": before},
        reason=Reason.RECLAIMED_BEFORE,
    )


@Rule
def sampling_blur(case: Case, window: Window) -> Argument | None:
    """Growth of a sawtooth's floors by less than the samples may miss of a floor."""
    fit, rise = window.fit, window.rise
    blur = fit.prepared.blur
    surely = rise - case.policy.common.noises * fit.trend.error * window.length_x
    if blur <= 0 or min(surely, rise / case.policy.common.margin) >= blur:
        return None
    return Argument(
        text="the floors of its cycles rose by {rise_y}, and the readings may miss a floor by "
        "{blur_y}",
        numbers={"rise_y": rise, "blur_y": blur},
        reason=Reason.UNCERTAIN_TREND,
    )


@Rule
def warmup_prior(case: Case, window: Window) -> Argument | None:
    """Growth no longer than warm-ups last: the posterior of a leak, by length and regularity."""
    least = case.policy.prior.leak_posterior
    if window.posterior >= least:
        return None
    return Argument(
        text="some warm-ups last as long: the probability of a leak is {posterior_share}, and "
        "{least_share} is needed",
        numbers={"posterior_share": window.posterior, "least_share": least},
        reason=Reason.STILL_CLIMBING,
    )


@Rule
def step_due(case: Case, window: Window) -> Argument | None:
    """A staircase no longer than warm-ups last, or whose steps do not make a line."""
    policy = case.policy
    rises = window.trend.p_growth <= policy.common.alpha
    if rises and window.posterior >= policy.prior.leak_posterior:
        return None
    return Argument(
        text="the steps may be chance ({growth_p}) or a warm-up: the probability of a leak is "
        "{posterior_share}, and {least_share} is needed",
        numbers={
            "posterior_share": window.posterior,
            "least_share": policy.prior.leak_posterior,
            "growth_p": window.trend.p_growth,
        },
        reason=Reason.RECENT_STEP,
        need_x=window.need_x,
    )


@Rule
def few_readings(case: Case, window: Window) -> Argument | None:
    """So few readings show the growth that most of such starts are warm-ups."""
    readings, prepared = window.fit.tail_samples, case.prepared
    sure = most_of_leak(window.posterior, window.span_x, prepared, case.policy)
    if readings >= case.policy.common.fewest and sure >= case.policy.common.most:
        return None
    return Argument(
        text="only {readings} readings show this growth",
        numbers={"readings": float(readings)},
        reason=Reason.STILL_CLIMBING,
    )


@Rule
def irregular(case: Case, window: Window) -> Argument | None:
    """A leak grows steadily: the averages of eight parts of it lie on a line."""
    fit, common = window.fit, case.policy.common
    x, y = fit.prepared.x[fit.first_sample :], fit.prepared.y[fit.first_sample :]
    if len(y) < 2 * common.blocks:
        return None
    blocks = bins(x, y, common.blocks)
    r2 = r_squared(blocks.x, blocks.y)
    if r2 >= common.block_r2:
        return None
    return Argument(
        text="it does not grow steadily: a straight line through the averages of eight parts of "
        "the growth has an R2 of {r2}",
        numbers={"r2": r2},
        reason=Reason.IRREGULAR,
    )


@Rule
def growth_evidence(case: Case, window: Window) -> Argument | None:
    """A run that is watched is checked again and again, and sooner or later chance looks like
    growth.

    An e-process (memdiag/analysis/stats/eprocess.py) stays valid however often it is looked at. It
    does not apply to a finished recording, which is judged once.
    """
    merges, policy = case.context.merges, case.policy
    if merges is None:
        return None
    value, least = log_value(case.prepared.y, policy), threshold(merges, policy.live.chance)
    if value >= least:
        return None
    return Argument(
        text="a run that is checked repeatedly can show this much growth by chance: the evidence "
        "of growth is {evidence}, and {least_evidence} is needed",
        numbers={"evidence": value, "least_evidence": least},
        reason=Reason.UNCERTAIN_TREND,
    )
