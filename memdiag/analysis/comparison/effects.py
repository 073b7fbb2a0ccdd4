"""The rules of a comparison: from the measures of both sides to an effect.

The effect is "no effect" only where a change by a third is excluded; where it is not, it is
"can't tell", and how much longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from memdiag.analysis.comparison.align import SHOWN, Pair, Side, noise
from memdiag.analysis.stats.pooled_estimate import Estimate
from memdiag.values.comparison import Difference, Effect, Measure, Why
from memdiag.values.measurements import Unit
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

# A rate counts as changed when it changed by a tenth at the least, as equal when a change by a
# third is excluded (so never when it halved). Heuristic.
_MATERIAL_RATE = 0.10
_EQUAL_RATE = (2 / 3, 3 / 2)
# A leak counts as gone when at most this part of its rate can still be there. Heuristic.
_GONE = 0.25
# A base that is open had no leak if it grew by no more than this part of the new leak. Heuristic.
_NEXT_TO_NONE = 0.05
# A plateau counts as changed when it moved by a twentieth and by more than a small program's
# start differs, as equal when a change by a fifth is excluded. Heuristic.
_MATERIAL_LEVEL = 0.05
_MATERIAL_BYTES = 4e6
_EQUAL_LEVEL = 0.20
# A peak is one reading, and may fall between two samples: it must change by more. Heuristic.
_MATERIAL_PEAK = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An effect, the rule that gave it, and the measure that it rests on."""

    effect: Effect
    why: Why
    by: Measure | None = None


def decide(pair: Pair) -> Decision:
    """What the change did to one series."""
    if len(pair.base.axis_kinds | pair.candidate.axis_kinds) > 1:
        return _inconclusive(Why.AXES_DIFFER)
    base, candidate = pair.base.verdict, pair.candidate.verdict
    if candidate is Verdict.LEAK and (
        base in STABLE_OR_WARMUP or (base is Verdict.INCONCLUSIVE and _base_was_flat(pair))
    ):
        return _leak_appeared(pair)
    if base is Verdict.LEAK and candidate in STABLE_OR_WARMUP:
        return _leak_gone(pair)
    if base is Verdict.LEAK and candidate is Verdict.LEAK:
        return _rates(pair)
    if base in STABLE_OR_WARMUP and candidate in STABLE_OR_WARMUP:
        return _levels(pair)
    return _unsettled(pair)


def _inconclusive(why: Why, by: Measure | None = None) -> Decision:
    return Decision(effect=Effect.INCONCLUSIVE, why=why, by=by)


def _leak_gone(pair: Pair) -> Decision:
    """The old rate must be excluded, not only be unseen: a short stable run proves nothing."""
    if _not_reached(pair):
        return _inconclusive(Why.CANDIDATE_TOO_SHORT, _rise_of(pair))
    if Measure.GROWTH not in pair.estimates:
        return _inconclusive(Why.NOT_MEASURED)
    base, candidate = (e.interval() for e in pair.estimates[Measure.GROWTH])
    if candidate.high > _GONE * base.value:
        return _inconclusive(Why.TOO_NOISY, Measure.GROWTH)
    return Decision(effect=Effect.FIXED, why=Why.LEAK_GONE, by=Measure.GROWTH)


def _leak_appeared(pair: Pair) -> Decision:
    """The base must have run to where the leak would have shown in it."""
    if _not_reached(pair):
        return _inconclusive(Why.BASE_TOO_SHORT, _rise_of(pair))
    if Measure.GROWTH not in pair.estimates:
        return Decision(effect=Effect.NEW_LEAK, why=Why.LEAK_APPEARED)
    base, candidate = (e.interval() for e in pair.estimates[Measure.GROWTH])
    if base.high >= candidate.value:
        return _inconclusive(Why.TOO_NOISY, Measure.GROWTH)
    return Decision(effect=Effect.NEW_LEAK, why=Why.LEAK_APPEARED, by=Measure.GROWTH)


def _base_was_flat(pair: Pair) -> bool:
    """Return True if the inconclusive base has no growth beyond noise, and next to none beside the
    candidate's."""
    if Measure.GROWTH not in pair.estimates:
        return False
    base, candidate = (e.interval() for e in pair.estimates[Measure.GROWTH])
    return base.low <= 0 and base.high <= _NEXT_TO_NONE * candidate.low


def _not_reached(pair: Pair) -> bool:
    """Return True if the stable side is too short for the other's leak: over the same stretch since
    its onset, the leaking side had not risen by more than noise, or no more than the stable one."""
    if pair.late is None:
        return True
    leaking, stable = pair.late
    if pair.base.verdict is not Verdict.LEAK:
        leaking, stable = stable, leaking
    return leaking.value - stable.value < SHOWN * math.hypot(leaking.error, stable.error)


def _rise_of(pair: Pair) -> Measure | None:
    return Measure.RISE if Measure.RISE in pair.estimates else None


def _rates(pair: Pair) -> Decision:
    if Measure.GROWTH not in pair.estimates:
        return _inconclusive(Why.NOT_MEASURED)
    found = pair.difference(Measure.GROWTH)
    if found.ratio is None:
        return _inconclusive(Why.TOO_NOISY, Measure.GROWTH)
    changed = not 1 - _MATERIAL_RATE < found.ratio.value < 1 + _MATERIAL_RATE
    moved = _moved(found, changed, Measure.GROWTH, Why.RATE_CHANGED)
    if moved is not None:
        return moved
    if found.ratio.low >= _EQUAL_RATE[0] and found.ratio.high <= _EQUAL_RATE[1]:
        return Decision(effect=Effect.NO_EFFECT, why=Why.RATE_EQUAL, by=Measure.GROWTH)
    return _inconclusive(Why.TOO_NOISY, Measure.GROWTH)


def _levels(pair: Pair) -> Decision:
    if Measure.LEVEL not in pair.estimates:
        return _inconclusive(Why.NOT_MEASURED)
    found = pair.difference(Measure.LEVEL)
    scale = _scale(found)
    least = _least_change(pair, _MATERIAL_LEVEL * scale)
    changed = abs(found.change.value) >= least
    moved = _moved(found, changed, Measure.LEVEL, Why.LEVEL_CHANGED)
    if moved is None and max(-found.change.low, found.change.high) > max(
        _EQUAL_LEVEL * scale, least
    ):
        return _inconclusive(Why.TOO_NOISY, Measure.LEVEL)
    if moved is None and Measure.PEAK in pair.estimates:
        peaks = pair.difference(Measure.PEAK)
        least = _least_change(pair, _MATERIAL_PEAK * _scale(peaks))
        changed = abs(peaks.change.value) >= least
        moved = _moved(peaks, changed, Measure.PEAK, Why.PEAK_CHANGED)
    return moved or Decision(effect=Effect.NO_EFFECT, why=Why.LEVEL_EQUAL, by=Measure.LEVEL)


def _moved(found: Difference, changed: bool, by: Measure, why: Why) -> Decision | None:
    """Better or worse, where the change is large enough to matter and its sign is certain."""
    if not changed or found.change.low <= 0 <= found.change.high:
        return None
    better = found.change.high < 0
    return Decision(effect=Effect.IMPROVED if better else Effect.WORSE, why=why, by=by)


def _scale(found: Difference) -> float:
    return max(abs(found.base.value), abs(found.candidate.value))


def _least_change(pair: Pair, share: float) -> float:
    in_bytes = pair.base.findings[0].unit is Unit.BYTES
    return max(share, _MATERIAL_BYTES) if in_bytes else share


def _unsettled(pair: Pair) -> Decision:
    """At least one side is open. What they rose over the same steps may still speak, unless the one
    that rose more has settled: then it is the rise of a warm-up.
    """
    why = (
        Why.BASE_UNSETTLED if pair.base.verdict is Verdict.INCONCLUSIVE else Why.CANDIDATE_UNSETTLED
    )
    open_ = _inconclusive(why, _rise_of(pair))
    if Measure.RISE not in pair.estimates:
        return open_
    change = pair.difference(Measure.RISE).change
    base, candidate = pair.estimates[Measure.RISE]
    more = pair.base if change.value < 0 else pair.candidate
    if more.verdict in STABLE_OR_WARMUP:
        return open_
    if change.high < 0 and _surely_less(candidate, base):
        return Decision(effect=Effect.IMPROVED, why=Why.SLOWER_SO_FAR, by=Measure.RISE)
    if change.low > 0 and _surely_less(base, candidate):
        return Decision(effect=Effect.WORSE, why=Why.FASTER_SO_FAR, by=Measure.RISE)
    return open_


def _surely_less(one: Estimate, other: Estimate) -> bool:
    """One rose by less than two thirds of the other, whatever the noise."""
    low = other.interval().low
    return low > 0 and one.interval().high < _EQUAL_RATE[0] * low


# ---- how much longer -------------------------------------------------------------------------

# More than this many times the runs at hand is not useful advice. Heuristic.
_HOPELESS = 8.0


def need_more(pair: Pair, decision: Decision) -> float | None:
    """Axis units by which the shorter side must be longer to settle it; None if unknown."""
    if decision.why in {Why.BASE_UNSETTLED, Why.CANDIDATE_UNSETTLED}:
        return _as_diagnosed(pair)
    length = pair.common[1] - pair.common[0]
    if decision.why in {Why.BASE_TOO_SHORT, Why.CANDIDATE_TOO_SHORT}:
        return _past_onset(pair)
    if decision.why is Why.TOO_NOISY and length > 0 and not wants_runs(pair, decision):
        return _bounded(_for_a_rate(pair, length), length)
    return None


def wants_runs(pair: Pair, decision: Decision) -> bool:
    """Return True if the runs of a side differ so much that only more of them would settle it."""
    if decision.why is not Why.TOO_NOISY or decision.by is None:
        return False
    base, candidate = pair.estimates[decision.by]
    between = base.between**2 + candidate.between**2
    return between > 0.5 * (base.error**2 + candidate.error**2)


def _as_diagnosed(pair: Pair) -> float | None:
    """What the longest-open run still needs, as its own diagnosis says."""
    wanted = [
        f.need_more.more_x
        for f in (*pair.base.findings, *pair.candidate.findings)
        if f.need_more is not None and f.need_more.more_x is not None
    ]
    return max(wanted, default=None)


def _past_onset(pair: Pair) -> float | None:
    """To where the leak has risen clear of the noise."""
    leaking: Side = pair.base if pair.base.verdict is Verdict.LEAK else pair.candidate
    rates = [f.growth_per_x.value for f in leaking.findings if f.growth_per_x is not None]
    rate = min(rates, default=0.0)
    if rate <= 0:
        return None
    noisiest = max(noise(f) for f in (*pair.base.findings, *pair.candidate.findings))
    return max(pair.late_from, pair.common[0]) + 2 * SHOWN * noisiest / rate - pair.common[1]


def _for_a_rate(pair: Pair, length: float) -> float:
    """The error of a slope falls with the length to the power 1.5; a third must be excluded."""
    if Measure.GROWTH not in pair.estimates:
        return math.inf
    found = pair.difference(Measure.GROWTH)
    half = (found.change.high - found.change.low) / 2
    allowed = _GONE * max(abs(found.base.value), abs(found.candidate.value))
    if allowed <= 0:
        return math.inf
    return length * (math.pow(max(half / allowed, 1.2), 2 / 3) - 1)


def _bounded(more: float, length: float) -> float | None:
    return more if 0 < more <= _HOPELESS * length else None
