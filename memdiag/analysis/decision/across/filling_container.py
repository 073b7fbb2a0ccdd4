"""Growth that ends by itself, since what keeps it has a greatest length."""

from __future__ import annotations

from collections.abc import Sequence

from memdiag.analysis.decision.across.kept_by_names import Filling
from memdiag.analysis.decision.across.series_set import Changes, SeriesSet, speed
from memdiag.analysis.decision.case import Rule
from memdiag.values.findings import Finding, NeedMore
from memdiag.values.measurements import ON_DEVICE, Unit
from memdiag.values.verdict import STABLE_OR_WARMUP, Argument, Reason


@Rule
def filling_container(finding: Finding, series: SeriesSet) -> tuple[Argument, Changes] | None:
    """Most of the growth is what containers of the program keep that have a greatest length and are
    not full: `deque(maxlen=...)`, a cache with a `maxsize`.

    Leaves a leak inconclusive until they are, unless a limit is reached before. Of objects, which a
    container keeps beside bytes, if that is so of the largest growth of bytes of their process.
    """
    if finding.verdict in STABLE_OR_WARMUP or finding.growth_per_x is None:
        return None
    growths = [finding]
    if finding.unit is not Unit.BYTES:
        own = [f for f in series.findings if f.process == finding.process and f.growth_per_s]
        growths = sorted((f for f in own if f.unit is Unit.BYTES), key=speed)
    filling = _filling(growths[-1], series) if growths else ()
    if not filling or speed(finding) <= 0:
        return None
    largest = filling[-1]
    seconds_per_x = finding.growth_per_x.value / speed(finding)
    all_full_x = max(one.left_s for one in filling) / seconds_per_x
    argument = Argument(
        text=f"most of the growth is `{largest.name}`, which holds at most {{bound}} items: it has "
        "{items}, and is full after {left_x}",
        numbers={
            "items": largest.items,
            "bound": largest.bound,
            "left_x": largest.left_s / seconds_per_x,
        },
        reason=Reason.FILLING,
        need_x=all_full_x,
    )
    more_x = all_full_x + finding.last_x - finding.first_x
    return argument, {
        "onset_x": None,
        "forecasts": (),
        "limit_hits": (),
        "confidence": series.policy.reporting.open_confidence,
        "need_more": NeedMore(more_x=more_x, more_s=more_x * seconds_per_x, why=_WHY),
    }


_WHY = "until it is full, and as long again"


def _filling(finding: Finding, series: SeriesSet) -> Sequence[Filling]:
    """The containers that most of a growth of bytes fills, before a limit is reached, the largest
    growth last."""
    kept = series.kept
    processes = kept if finding.process == "tree" else {finding.process} & kept.keys()
    is_on_device = finding.role in ON_DEVICE
    found = [
        (one.device_per_s if is_on_device else one.per_s, one)
        for process in processes
        for one in kept[process].filling
    ]
    common, grown = series.policy.common, finding.growth_per_s
    if grown is None or not sum(per_s for per_s, _ in found) >= common.most * grown.value > 0:
        return ()
    full_bytes = finding.latest_value + sum(per_s * one.left_s for per_s, one in found)
    if any(hit.limit_bytes <= full_bytes for hit in finding.limit_hits):
        return ()
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]
