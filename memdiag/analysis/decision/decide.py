"""The whole decision on one series. Read it from top to bottom.

One question is asked of several windows: does memory grow here, and for longer than a warm-up
would? The first window with growth proposes a leak. Checks object to it; without an objection it
stands. Where nothing grows, other checks argue for and against a stable verdict. A series that
stays inconclusive is looked at again coarsely, without its last readings, and over slow waves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.decision import ends, windows
from memdiag.analysis.decision.case import Case, Context, Decision, Rule, Window
from memdiag.analysis.decision.growth import not_evidence, slowing, weak_evidence
from memdiag.analysis.decision.stability import (
    at_limit,
    at_once,
    may_be_free,
    may_grow,
    no_growth,
    unread_cells,
)
from memdiag.values.verdict import Argument, Reason, Side, Verdict

if TYPE_CHECKING:
    from memdiag.analysis.policy import Policy
    from memdiag.analysis.preprocessing.prepare import Prepared

# What needs no statistics.
AT_ONCE = ((at_once.too_few, Side.AGAINST_STABLE), (at_once.constant, Side.FOR_STABLE))

# Where growth is looked for. The first window with growth proposes a leak.
WINDOWS = (windows.staircase, windows.last_regime, windows.whole_climb)
# Where it is looked for again, if that has shown neither a leak nor a long plateau.
COARSE = windows.block_trend
WAVES = windows.turning_points

# Why growth is not evidence of a leak, whatever its shape.
NOT_EVIDENCE = (
    not_evidence.negligible,
    not_evidence.not_a_meter,
    not_evidence.in_proportion,
    not_evidence.free_list,
    not_evidence.first_touch,
    not_evidence.uncollected_heap,
    not_evidence.flight_recorder,
)
# Why it may be a warm-up after all.
MAY_END = (
    slowing.saturating,
    weak_evidence.reclaimed_before,
    weak_evidence.return_to_level,
    slowing.slowing,
    weak_evidence.sampling_blur,
    weak_evidence.warmup_prior,
    weak_evidence.few_readings,
    slowing.bending,
    weak_evidence.irregular,
    slowing.slower_lately,
    slowing.steps_slow,
    slowing.slowed_before,
    weak_evidence.growth_evidence,
    slowing.waves_slow,
)
# The same for a staircase.
STEPS_MAY_END = (
    weak_evidence.step_due,
    slowing.bending,
    slowing.steps_slow,
    weak_evidence.growth_evidence,
)
# Why a series that does not grow beyond chance is not called stable.
MAY_GROW = (
    may_grow.pause,
    may_grow.not_flat,
    may_grow.always_rises,
    may_grow.cycles_rise,
    may_grow.waves_rise,
    may_grow.rest_too_short,
    may_grow.climbs_as_a_whole,
)
# What settles any inconclusive series: readings that fall back repeatedly, and keep nothing.
CYCLES = (no_growth.bounded_cycles,)
# A climb that is nearly over, where growth is not beyond chance.
ENDING = (slowing.saturating,)
# What else settles one, each for some of the reasons.
SETTLES = (
    (
        no_growth.immaterial,
        (Reason.UNCERTAIN_TREND, Reason.RECENT_STEP, Reason.RECLAIMED_BEFORE, Reason.IRREGULAR),
    ),
    (
        no_growth.equivalence,
        (
            Reason.UNCERTAIN_TREND,
            Reason.RECENT_STEP,
            Reason.RECLAIMED_BEFORE,
            Reason.IRREGULAR,
            Reason.SLOWING,
            Reason.STILL_CLIMBING,
        ),
    ),
)
# What objects to any stable verdict, whatever its readings look like.
IN_CONTEXT = (
    at_once.too_few,
    at_limit.at_limit,
    unread_cells.unread_cells,
    may_be_free.may_be_free,
)


def everything() -> tuple[Rule, ...]:
    """Every window and check of this list, for the documentation and the ablation."""
    checks = (*NOT_EVIDENCE, *MAY_END, *STEPS_MAY_END, *MAY_GROW, *CYCLES)
    first, settling = (tuple(check for check, _ in pairs) for pairs in (AT_ONCE, SETTLES))
    return (*WINDOWS, COARSE, WAVES, *first, *checks, *settling, *IN_CONTEXT)


# What a stable verdict says that has more to it than being level.
_NO_GROWTH = {
    Reason.FALLING: "it fell in its last {length_x}",
    Reason.BOUNDED_CYCLES: "it goes up and down, and the floors of its cycles show no growth "
    "beyond chance in the last {length_x} ({growth_p})",
}
# Reasons that a last reading may have caused.
_PENDING = (Reason.UNCERTAIN_TREND, Reason.RECENT_STEP)


def decide(prepared: Prepared, policy: Policy, context: Context | None = None) -> Decision:
    """Verdict on one prepared series, with all arguments that were made."""
    case = Case(prepared, policy, context or Context())
    found = _in_context(case, _by_readings(case))
    trail = tuple(replace(a, is_decisive=True) if a is found.by else a for a in case.trail)
    return replace(found, trail=trail)


def _by_readings(case: Case) -> Decision:
    for check, side in AT_ONCE:
        at_once = case.first((check,), None, side)
        if at_once is not None:
            verdict, reason, need_x = at_once.verdict, at_once.reason, at_once.need_x
            return Decision(verdict=verdict, reason=reason, need_x=need_x, by=at_once)
    found = _by_regimes(case)
    for end in ends.ENDS:
        if found.reason in _PENDING:
            found = end.apply(case.policy, case, found, _without_last(case, end.name)) or found
    if found.is_stable:
        return found
    if found.verdict is not Verdict.LEAK:
        found = _by_waves(case, found)
    return found if found.verdict is Verdict.LEAK else _overall(case, _settled(case, found))


def _by_regimes(case: Case) -> Decision:
    """The first look, and a coarser one where that shows neither a leak nor a long plateau."""
    first = _first_look(case)
    case.tail = first.tail
    long = case.last_share > case.policy.common.warm_share
    if first.verdict is Verdict.LEAK or (first.is_stable and long):
        return first
    window = case.propose(COARSE)
    return first if window is None else _coarse_look(case, first, window)


def _first_look(case: Case) -> Decision:
    for proposal in WINDOWS:
        window = case.propose(proposal)
        if window is not None:
            return _weigh(case, window)
    return _stable_or_open(case)


def _weigh(case: Case, window: Window) -> Decision:
    """A leak, unless a check objects; stable all the same, if memory only comes and goes."""
    barred = case.first(NOT_EVIDENCE, window, Side.AGAINST_LEAK)
    if barred is not None:
        is_open = barred.verdict is Verdict.INCONCLUSIVE
        ending = case.first((*ENDING, *CYCLES), window, Side.FOR_STABLE) if is_open else None
        return _decision(window, ending or barred)
    steps = window.argument.check == windows.staircase.name
    objection = case.first(STEPS_MAY_END if steps else MAY_END, window, Side.AGAINST_LEAK)
    if objection is None:
        return _decision(window, window.argument)
    settled = None
    if objection.verdict is Verdict.INCONCLUSIVE and not steps:
        settled = case.first(CYCLES, window, Side.FOR_STABLE)
    return _decision(window, settled or objection)


def _stable_or_open(case: Case) -> Decision:
    """Where nothing grows beyond chance: stable, unless a check objects."""
    window = case.end
    objection = case.first(MAY_GROW, window, Side.AGAINST_STABLE)
    if objection is None:
        return _decision(window, _no_growth(case))
    # (A curve through steps and rests levels off between any two of them: `pause` comes first.)
    climbs = objection.check != may_grow.pause.name and case.staircase is None
    settled = case.first((*(ENDING if climbs else ()), *CYCLES), window, Side.FOR_STABLE)
    return _decision(window, settled or objection)


def _no_growth(case: Case) -> Argument:
    """The argument of a last regime that does not grow."""
    fit, warm = case.fit, case.fit.rose(case.policy)
    reason = Reason.FALLING if fit.trend.t < -case.policy.reporting.falling_errors else Reason.FLAT
    if warm:
        reason = Reason.PLATEAU
    if case.prepared.floors:
        reason = Reason.BOUNDED_CYCLES
    return case.argue(
        Argument(
            check="flat",
            side=Side.FOR_STABLE,
            text=_NO_GROWTH.get(
                reason, "it shows no growth beyond chance in its last {length_x} ({growth_p})"
            ),
            numbers={"growth_p": fit.p_growth, "length_x": case.end.length_x},
            reason=reason,
            verdict=Verdict.WARMUP if warm else Verdict.STABLE,
        )
    )


def _coarse_look(case: Case, first: Decision, window: Window) -> Decision:
    """The first decision, corrected by a line through coarse blocks."""
    coarse = case.coarse = _weigh(case, window)
    if coarse.verdict is not Verdict.LEAK:
        # (The trend that made it uncertain is this line.)
        negligible = coarse.is_stable and first.reason is Reason.UNCERTAIN_TREND
        return coarse if negligible else first
    surely = window.fit.p_growth < case.policy.common.alpha
    if surely and (case.last_share < case.policy.common.short_share or not first.is_stable):
        return coarse
    return _open(first, window.argument) if first.is_stable else first


def _overall(case: Case, found: Decision) -> Decision:
    """Of growth that is open, what it is as a whole says more than its last few readings."""
    coarse = case.coarse
    if coarse is None or found.verdict is not Verdict.INCONCLUSIVE or found.reason not in _PENDING:
        return found
    return coarse if coarse.reason is Reason.STILL_CLIMBING else found


def _without_last(case: Case, look: str) -> ends.Without:
    """A function that decides without this many last readings, as `look` on the case's trail."""

    def decided(readings: int) -> Decision:
        before = case.without_last(readings)
        found = _by_regimes(before)
        for argument in before.trail:
            said = case.argue(replace(argument, look=look))
            if argument is found.by:
                found = replace(found, by=said)
        return found

    return decided


def _by_waves(case: Case, found: Decision) -> Decision:
    """Growth under slow waves is judged on their turning points."""
    window = case.propose(WAVES)
    leak = None if window is None else _weigh(case, window)
    if window is None or leak is None or leak.verdict is not Verdict.LEAK:
        return found
    tail = int(np.searchsorted(case.prepared.x, window.fit.prepared.x[0]))
    return replace(leak, tail=tail, binned=found.binned, segmentation=found.segmentation)


def _settled(case: Case, found: Decision) -> Decision:
    """What is left inconclusive, where it is too small to matter, or over."""
    window = replace(case.end, first_sample=found.tail)
    for check, reasons in SETTLES:
        small = check is no_growth.immaterial and _is_small(found, case.policy)
        if found.reason in reasons or small:
            settled = case.first((check,), window, Side.FOR_STABLE)
            if settled is not None:
                found = replace(found, verdict=settled.verdict, reason=settled.reason, by=settled)
                if check is no_growth.immaterial:
                    return found
                tail, fitted = no_growth.last_half(case.prepared, case.policy)
                return replace(found, tail=tail, trend=fitted)
    return found


def _is_small(found: Decision, policy: Policy) -> bool:
    if found.reason is not Reason.FEW_PAGES or found.trend is None:
        return False
    given: not_evidence.FirstTouch = not_evidence.first_touch.given(policy)
    return found.trend.slope * found.span_x < given.least_bytes


def _in_context(case: Case, found: Decision) -> Decision:
    if not found.is_stable:
        return found
    case.so_far = found.verdict
    said = case.first(IN_CONTEXT, replace(case.end, first_sample=found.tail), Side.AGAINST_STABLE)
    return found if said is None else _open(found, said)


def _decision(window: Window, argument: Argument) -> Decision:
    return Decision(
        verdict=argument.verdict,
        reason=argument.reason,
        posterior=window.posterior,
        tail=window.first_sample,
        span_x=window.span_x,
        trend=window.trend,
        binned=window.fit.binned,
        segmentation=window.fit.segmentation,
        need_x=argument.need_x,
        by=argument,
    )


def _open(found: Decision, by: Argument) -> Decision:
    """The same, but inconclusive."""
    reason = Reason.UNCERTAIN_TREND if by.verdict is Verdict.LEAK else by.reason
    return replace(found, verdict=Verdict.INCONCLUSIVE, reason=reason, by=by, need_x=by.need_x)
