"""The whole decision on one series. Read it from top to bottom.

One question is asked of several windows: does memory grow here, and for longer than a warm-up
would? The first window that finds growth proposes a leak. Checks object to it; without an objection
it stands. Where nothing grows, other checks argue for and against calm. What stays open is asked
again with a coarser look, without its last readings, and over slow waves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from memdiag.analysis.decision import ends
from memdiag.analysis.decision.calm import (
    always_rises,
    at_limit,
    bounded_cycles,
    climbs_as_a_whole,
    constant,
    cycles_rise,
    equivalence,
    immaterial,
    not_flat,
    pause,
    rest_too_short,
    too_few,
    waves_rise,
)
from memdiag.analysis.decision.case import (
    Case,
    Check,
    Context,
    Decision,
    Proposal,
    Window,
)
from memdiag.analysis.decision.growth import (
    bending,
    few_readings,
    first_touch,
    flight_recorder,
    free_list,
    growth_evidence,
    irregular,
    negligible,
    not_a_meter,
    reclaimed_before,
    return_to_level,
    sampling_blur,
    saturating,
    slower_lately,
    slowing,
    step_due,
    uncollected_heap,
    warmup_prior,
    waves_slow,
)
from memdiag.analysis.decision.regimes import rose
from memdiag.analysis.decision.windows import (
    block_trend,
    last_regime,
    staircase,
    turning_points,
    whole_climb,
)
from memdiag.values.verdict import Argument, Reason, Side, Verdict

if TYPE_CHECKING:
    from memdiag.analysis.policy import Policy
    from memdiag.analysis.preprocessing.prepare import Prepared

# What needs no statistics.
AT_ONCE = (too_few.CHECK, constant.CHECK)

# Where growth is looked for. The first that finds some proposes a leak.
WINDOWS = (staircase.PROPOSAL, last_regime.PROPOSAL, whole_climb.PROPOSAL)
# Where it is looked for again, if that has shown no leak and no long plateau.
COARSE = block_trend.PROPOSAL
WAVES = turning_points.PROPOSAL

# Why growth is no evidence of a leak, whatever its shape.
NOT_EVIDENCE = (
    negligible.CHECK,
    not_a_meter.CHECK,
    free_list.CHECK,
    first_touch.CHECK,
    uncollected_heap.CHECK,
    flight_recorder.CHECK,
)
# Why it may be a warm-up after all.
MAY_END = (
    saturating.CHECK,
    reclaimed_before.CHECK,
    return_to_level.CHECK,
    slowing.CHECK,
    sampling_blur.CHECK,
    warmup_prior.CHECK,
    few_readings.CHECK,
    bending.CHECK,
    irregular.CHECK,
    slower_lately.CHECK,
    growth_evidence.CHECK,
    waves_slow.CHECK,
)
# The same for a staircase.
STEPS_MAY_END = (step_due.CHECK, growth_evidence.CHECK)
# Why a series that does not grow beyond chance is not called calm.
NOT_CALM = (
    pause.CHECK,
    not_flat.CHECK,
    always_rises.CHECK,
    cycles_rise.CHECK,
    waves_rise.CHECK,
    rest_too_short.CHECK,
    climbs_as_a_whole.CHECK,
)
# What settles any doubt that is left: readings that fall back again and again, and keep nothing.
CYCLES = (bounded_cycles.CHECK,)
# A climb that is nearly over, where growth is not beyond chance.
ENDING = (saturating.CHECK,)
# What else settles one, each for some of the doubts.
SETTLES = (
    (
        immaterial.CHECK,
        (Reason.UNCERTAIN_TREND, Reason.RECENT_STEP, Reason.RECLAIMED_BEFORE, Reason.IRREGULAR),
    ),
    (
        equivalence.CHECK,
        (
            Reason.UNCERTAIN_TREND,
            Reason.RECLAIMED_BEFORE,
            Reason.IRREGULAR,
            Reason.SLOWING,
            Reason.STILL_CLIMBING,
        ),
    ),
)
# What objects to any calm, by what is known beside the readings.
CALM_IN_CONTEXT = (at_limit.CHECK,)


def everything() -> tuple[Proposal[Any] | Check[Any], ...]:
    """Every window and check of this list, for the documentation and the ablation."""
    checks = (*AT_ONCE, *NOT_EVIDENCE, *MAY_END, *STEPS_MAY_END, *NOT_CALM, *CYCLES)
    settling = tuple(check for check, _ in SETTLES)
    return (*WINDOWS, COARSE, WAVES, *checks, *settling, *CALM_IN_CONTEXT)


# What is said of calm that has more to it than being level.
_CALM = {
    Reason.FALLING: "it fell in its last {length_x}",
    Reason.BOUNDED_CYCLES: "it goes up and down, and the floors of its cycles show no growth "
    "beyond chance in the last {length_x} ({growth_p})",
}
# Doubts that a last reading may have raised.
_PENDING = (Reason.UNCERTAIN_TREND, Reason.RECENT_STEP)


def decide(prepared: Prepared, policy: Policy, context: Context | None = None) -> Decision:
    """Verdict on one prepared series, with all that was argued."""
    case = Case(prepared, policy, context or Context())
    found = _in_context(case, _by_readings(case))
    trail = tuple(replace(a, is_decisive=True) if a is found.by else a for a in case.trail)
    return replace(found, trail=trail)


def _by_readings(case: Case) -> Decision:
    at_once = case.at_once(AT_ONCE)
    if at_once is not None:
        return Decision(verdict=at_once.verdict, reason=at_once.reason, by=at_once)
    found = _by_regimes(case)
    for end in ends.ENDS:
        if found.reason in _PENDING:
            found = _without_end(case, found, end)
    if found.is_calm:
        return found
    if found.verdict is not Verdict.LEAK:
        found = _by_waves(case, found)
    return found if found.verdict is Verdict.LEAK else _settled(case, found)


def _by_regimes(case: Case) -> Decision:
    """The first look, and a coarser one where that shows neither a leak nor a long plateau."""
    first = _first_look(case)
    case.tail = first.tail
    long = case.last_share > case.policy.common.warm_share
    if first.verdict is Verdict.LEAK or (first.is_calm and long):
        return first
    window = case.propose(COARSE)
    return first if window is None else _coarse_look(case, first, window)


def _first_look(case: Case) -> Decision:
    for proposal in WINDOWS:
        window = case.propose(proposal)
        if window is not None:
            return _weigh(case, window)
    return _calm_or_open(case)


def _weigh(case: Case, window: Window) -> Decision:
    """A leak, unless something objects; calm all the same, if it only comes and goes."""
    assert window.argument is not None
    barred = case.first(NOT_EVIDENCE, window, Side.AGAINST_LEAK)
    if barred is not None:
        return _decision(window, barred)
    steps = window.argument.check == staircase.PROPOSAL.name
    doubt = case.first(STEPS_MAY_END if steps else MAY_END, window, Side.AGAINST_LEAK)
    if doubt is None:
        return _decision(window, window.argument)
    settled = None
    if doubt.verdict is Verdict.INCONCLUSIVE and not steps:
        settled = case.first(CYCLES, window, Side.FOR_CALM)
    return _decision(window, settled or doubt)


def _calm_or_open(case: Case) -> Decision:
    """Where nothing grows beyond chance: calm, unless something objects."""
    window = case.end
    doubt = case.first(NOT_CALM, window, Side.AGAINST_CALM)
    if doubt is None:
        return _decision(window, _calm(case))
    # (A curve through steps and rests levels off between any two of them: `pause` comes first.)
    climbs = doubt.check != pause.CHECK.name and case.stairs is None
    ending = ENDING if climbs else ()
    settled = case.first((*ending, *CYCLES), window, Side.FOR_CALM)
    return _decision(window, settled or doubt)


def _calm(case: Case) -> Argument:
    """What a last regime that does not grow is called."""
    view, warm = case.view, rose(case.view, case.policy)
    reason = Reason.FALLING if view.trend.t < -case.policy.reporting.falling_errors else Reason.FLAT
    if warm:
        reason = Reason.PLATEAU
    if case.prepared.floors:
        reason = Reason.BOUNDED_CYCLES
    return case.argue(
        Argument(
            check="flat",
            side=Side.FOR_CALM,
            text=_CALM.get(
                reason, "it shows no growth beyond chance in its last {length_x} ({growth_p})"
            ),
            numbers={"growth_p": view.p_growth, "length_x": case.end.length_x},
            reason=reason,
            verdict=Verdict.WARMUP if warm else Verdict.STABLE,
        )
    )


def _coarse_look(case: Case, first: Decision, window: Window) -> Decision:
    """What a line through coarse blocks says to what was found first."""
    coarse = _weigh(case, window)
    if coarse.verdict is not Verdict.LEAK:
        return coarse if first.is_calm else first
    surely = window.view.p_growth < case.policy.common.alpha
    if surely and (case.last_share < case.policy.common.short_share or not first.is_calm):
        return coarse
    return _open(first, window.argument) if first.is_calm else first


def _without_end(case: Case, found: Decision, end: ends.End[Any]) -> Decision:
    given = case.policy.checks.get(end.name, end.parameters)
    readings = 0 if end.name in case.policy.off else end.readings(case, found, given)
    if readings == 0:
        return found
    before = case.without_last(readings)
    without = _by_regimes(before)
    for argument in before.trail:
        said = case.argue(replace(argument, look=end.name))
        if argument is without.by:
            without = replace(without, by=said)
    return without if end.is_settled(case, without, given) else found


def _by_waves(case: Case, found: Decision) -> Decision:
    """Growth under slow waves is judged on their turning points."""
    window = case.propose(WAVES)
    leak = None if window is None else _weigh(case, window)
    if window is None or leak is None or leak.verdict is not Verdict.LEAK:
        return found
    tail = int(np.searchsorted(case.prepared.x, window.view.prepared.x[0]))
    return replace(leak, tail=tail, binned=found.binned, segmentation=found.segmentation)


def _settled(case: Case, found: Decision) -> Decision:
    """Doubts that are too small to care, or over."""
    window = replace(case.end, first_sample=found.tail)
    for check, reasons in SETTLES:
        small = check is immaterial.CHECK and _is_small(found, case.policy)
        if found.reason in reasons or small:
            calm = case.first((check,), window, Side.FOR_CALM)
            if calm is not None:
                found = replace(found, verdict=calm.verdict, reason=calm.reason, by=calm)
                if check is immaterial.CHECK:
                    return found
                tail, fitted = equivalence.last_half(case.prepared, case.policy)
                return replace(found, tail=tail, trend=fitted)
    return found


def _is_small(found: Decision, policy: Policy) -> bool:
    if found.reason is not Reason.FEW_PAGES or found.trend is None:
        return False
    given = policy.checks.get(first_touch.CHECK.name, first_touch.CHECK.parameters)
    return bool(found.trend.slope * found.span_x < given.least_bytes)


def _in_context(case: Case, found: Decision) -> Decision:
    if not found.is_calm:
        return found
    case.so_far = found.verdict
    said = case.first(
        CALM_IN_CONTEXT, replace(case.end, first_sample=found.tail), Side.AGAINST_CALM
    )
    return found if said is None else _open(found, said)


def _decision(window: Window, argument: Argument) -> Decision:
    return Decision(
        verdict=argument.verdict,
        reason=argument.reason,
        posterior=window.posterior,
        tail=window.first_sample,
        span_x=window.span_x,
        trend=window.trend,
        binned=window.view.binned,
        segmentation=window.view.segmentation,
        need_x=argument.need_x,
        by=argument,
    )


def _open(found: Decision, by: Argument | None) -> Decision:
    """The same, not to be told."""
    reason = Reason.UNCERTAIN_TREND if by is None or by.verdict is Verdict.LEAK else by.reason
    return replace(found, verdict=Verdict.INCONCLUSIVE, reason=reason, by=by)
