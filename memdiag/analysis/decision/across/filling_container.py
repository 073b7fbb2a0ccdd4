"""Growth that ends by itself, since what keeps it has a greatest length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memdiag.analysis.decision.across.kept_by_names import late_rate
from memdiag.analysis.decision.across.series_set import Changes, SeriesSet, speed
from memdiag.analysis.decision.case import Rule
from memdiag.values.findings import Finding, NeedMore
from memdiag.values.measurements import ON_DEVICE, Unit
from memdiag.values.verdict import STABLE_OR_WARMUP, Argument, Reason

_WHY = "until it is full, and as long again"
_NOT_SAID = "longer if it is not full by then"
_WITHOUT_BRACES = str.maketrans("{}", "()")  # they stand for numbers in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filling:
    """A container that has `items` of at most `bound` items, and is full after `left_x`."""

    name: str
    items: float
    bound: float
    left_x: float


@Rule
def filling_container(finding: Finding, series: SeriesSet) -> tuple[Argument, Changes] | None:
    """Most of the growth is what containers of the program keep that have a greatest length and are
    not full: `deque(maxlen=...)`, a cache with a `maxsize`. Or a log says of something that holds a
    limited number of items how many it has, and it still fills: `replay 620/1000`, `replay_size`.

    Leaves a leak inconclusive until they are, unless a limit is reached before. Of objects, which a
    container keeps beside bytes, if that is so of the largest growth of bytes of their process.
    """
    if finding.verdict in STABLE_OR_WARMUP or finding.growth_per_x is None:
        return None
    growths = [finding]
    if finding.unit is not Unit.BYTES:
        own = [f for f in series.findings if f.process == finding.process and f.growth_per_s]
        growths = sorted((f for f in own if f.unit is Unit.BYTES), key=speed) or [finding]
    named = _named(growths[-1], series)
    filling = named or _in_log(growths[-1], series)
    if not filling or speed(finding) <= 0:
        return None
    largest, left_x = filling[-1], max(one.left_x for one in filling)
    whose = "most of the growth is" if named else "memory may grow until it is full:"
    name = largest.name.translate(_WITHOUT_BRACES)
    numbers = {"items": largest.items}
    need_x = left_x if math.isfinite(left_x) else None
    need_more = NeedMore(more_x=None, more_s=None, why=_NOT_SAID)
    if need_x is not None:
        text = "which holds at most {bound} items, has {items}, and is full after {left_x}"
        numbers |= {"bound": largest.bound, "left_x": largest.left_x}
        more_x, seconds_per_x = need_x + finding.last_x - finding.first_x, _seconds_per_x(finding)
        more_s = None if seconds_per_x is None else more_x * seconds_per_x
        need_more = NeedMore(more_x=more_x, more_s=more_s, why=_WHY)
    else:
        text = "which has {items} items; how many it holds is not in the log"
    argument = Argument(
        text=f"{whose} `{name}`, {text}",
        numbers=numbers,
        reason=Reason.FILLING,
        need_x=need_x,
    )
    return argument, {
        "onset_x": None,
        "forecasts": (),
        "limit_hits": (),
        "confidence": series.policy.reporting.open_confidence,
        "need_more": need_more,
    }


def _seconds_per_x(finding: Finding) -> float | None:
    per_x, per_s = finding.growth_per_x, finding.growth_per_s
    return per_x.value / per_s.value if per_x and per_s and per_s.value else None


def _named(finding: Finding, series: SeriesSet) -> Sequence[_Filling]:
    """The containers of the program that most of a growth of bytes fills, before a limit is
    reached, the largest growth last.
    """
    kept = series.kept
    processes = kept if finding.process == "tree" else {finding.process} & kept.keys()
    is_on_device = finding.role in ON_DEVICE
    found = [
        (one.device_per_s if is_on_device else one.per_s, one)
        for process in processes
        for one in kept[process].filling
    ]
    grown, seconds_per_x = finding.growth_per_s, _seconds_per_x(finding)
    if grown is None or not seconds_per_x:
        return ()
    if not sum(per_s for per_s, _ in found) >= series.policy.common.most * grown.value > 0:
        return ()
    if _ends_before(finding, sum(per_s * one.left_s for per_s, one in found)):
        return ()
    return [
        _Filling(name=one.name, items=one.items, bound=one.bound, left_x=one.left_s / seconds_per_x)
        for _, one in sorted(found, key=lambda pair: pair[0])
    ]


def _in_log(finding: Finding, series: SeriesSet) -> Sequence[_Filling]:
    """What a log says is fuller than ever at its end, and still fills; the one last that takes
    longest.
    """
    found = []
    for level in series.fill_levels:
        there = np.isfinite(level.items) & np.isfinite(level.x)
        x, items = level.x[there], level.items[there]
        per_x = late_rate(list(zip(x.tolist(), items.tolist(), strict=True))) or 0.0
        left = level.capacity - items[-1] if items.size else 0.0
        if per_x > 0 and left > 0 and items[-1] == items.max():
            found.append(
                _Filling(
                    name=level.name,
                    items=float(items[-1]),
                    bound=level.capacity,
                    left_x=left / per_x,
                )
            )
    longest = max((one.left_x for one in found), default=0.0)
    if finding.growth_per_x is None or _ends_before(finding, finding.growth_per_x.value * longest):
        return ()
    return sorted(found, key=lambda one: one.left_x)


def _ends_before(finding: Finding, more: float) -> bool:
    """Return True if a limit is reached before so much more is in use."""
    return any(hit.limit_bytes <= finding.latest_value + more for hit in finding.limit_hits)
