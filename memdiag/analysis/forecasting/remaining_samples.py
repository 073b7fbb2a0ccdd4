"""How much longer until an inconclusive series is settled."""

from __future__ import annotations

import math

from memdiag.analysis.decision.case import Decision
from memdiag.analysis.decision.growth.not_evidence import in_proportion
from memdiag.analysis.decision.prior import longer_share
from memdiag.analysis.policy import Policy
from memdiag.analysis.preprocessing.prepare import Prepared
from memdiag.values.findings import NeedMore
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Reason, Verdict

_AWAITED = {
    Reason.RECENT_STEP: "long enough to see whether another step follows",
    Reason.FEW_PAGES: "more growth than a start-up can explain",
    Reason.FILLING: "more than torch's record of recent collectives takes",
}
_AS_LONG_AGAIN = {
    Reason.NOT_COLLECTED: "the heap has to be collected a few times",
    Reason.IRREGULAR: "as long again",
    Reason.RECLAIMED_BEFORE: "as long again",
    Reason.SLOWING: "at least as long again",
}
# What no more of the same changes.
_OF_THE_LOG = frozenset({Reason.UNREAD_CELLS, Reason.MAY_BE_FREE})
NEVER = NeedMore(more_x=None, more_s=None, why="not decidable in this run")


def need_more(
    decision: Decision, prepared: Prepared, policy: Policy, planned_x: float | None = None
) -> NeedMore | None:
    """Further axis units (and seconds) after which the verdict is expected to be settled.

    None for a series that is decided, or whose log has to be read or written in another way. "Not
    decidable in this run" where more than `Policy.reporting.hopeless_runs` times what was recorded
    would be needed, or the length of a usual warm-up if that is more, or where no more of the same
    helps (address space, a metric overruled by another).
    """
    if decision.verdict is not Verdict.INCONCLUSIVE or decision.reason in _OF_THE_LOG:
        return None
    more, why = _more(decision, prepared, policy)
    run = max(prepared.run, policy.prior.warmup_length(prepared.axis.kind).median)
    if more is None or (len(prepared.x) >= 12 and more > policy.reporting.hopeless_runs * run):
        return NEVER if not why else NeedMore(more_x=None, more_s=None, why=why)
    pace = prepared.seconds_per_x
    return NeedMore(
        more_x=more,
        more_s=None if pace is None else more * pace,
        why=why,
        is_beyond_plan=planned_x is not None and prepared.x[-1:].sum() + more > planned_x,
    )


def _more(decision: Decision, prepared: Prepared, policy: Policy) -> tuple[float | None, str]:
    stride = prepared.run / max(len(prepared.x) - 1, 1)
    reason, margin = decision.reason, policy.reporting.need_margin
    if decision.by is not None and decision.by.check == in_proportion.name:
        return decision.need_x, "until its counter ends"
    if reason is Reason.TOO_FEW_SAMPLES:
        if len(prepared.x) < 2:
            return None, "one position is not enough"
        few = stride * max(policy.reporting.enough_samples - len(prepared.x), 1)
        return max(few, decision.need_x or 0.0), "a few more samples"
    if reason is Reason.STILL_CLIMBING:
        more = _outlast(decision, prepared, policy)
        return (
            margin * more + 0.7 * prepared.run,
            "past the usual length of a warm-up",
        )
    if reason in _AWAITED:
        return margin * max(decision.need_x or 0.0, prepared.run), _AWAITED[reason]
    if reason in _AS_LONG_AGAIN:
        times = margin if reason is Reason.SLOWING else 1.0
        return max(times * prepared.run, stride), _AS_LONG_AGAIN[reason]
    if reason is Reason.UNCERTAIN_TREND:
        return _sharper(decision, prepared, policy, stride), "a slope this small needs more data"
    return None, ""


def _outlast(decision: Decision, prepared: Prepared, policy: Policy) -> float:
    """Length whose survival brings the posterior to the threshold, minus what has passed.

    The factors on its odds follow from the posterior that was reached.
    """
    prior, pace_s = policy.prior, prepared.seconds_per_x
    reached = decision.posterior / max(1 - decision.posterior, 1e-12)
    factors = reached * longer_share(prepared, decision.span_x, policy)
    length = prior.warmup_length(prepared.axis.kind)
    needed = length.outlasting(prior.leak_posterior, factors)
    if pace_s:
        in_time = prior.warmup_length(AxisKind.SECONDS)
        needed = min(needed, in_time.outlasting(prior.leak_posterior, factors) / pace_s)
    return max(needed - decision.span_x, prepared.run / max(len(prepared.x) - 1, 1))


def _sharper(decision: Decision, prepared: Prepared, policy: Policy, stride: float) -> float | None:
    """The error of a slope shrinks with length to the power -3/2 (at constant sampling)."""
    fitted = decision.trend
    if fitted is None:
        return None
    tail_x = float(prepared.x[-1] - prepared.x[decision.tail])
    wanted = policy.common.stable_growth * prepared.level / max(prepared.run, 1e-300)
    room = max(abs(wanted - max(fitted.slope, 0.0)), 0.3 * wanted)
    if room <= 0:  # (a level of 0, or of next to nothing over a run without an end)
        return None
    factor = (max(2.3 * fitted.error / room, 1.0)) ** (2 / 3)
    return (
        max(tail_x * (factor - 1), 2.0 * prepared.run, 3 * stride)
        if math.isfinite(factor)
        else None
    )
