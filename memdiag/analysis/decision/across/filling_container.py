"""Growth that ends by itself, since what keeps it has a greatest length."""

from __future__ import annotations

from memdiag.analysis.decision.across.kept_by_names import Filling
from memdiag.analysis.decision.across.series_set import ON_DEVICE, Changes, SeriesSet, speed
from memdiag.analysis.decision.case import Rule
from memdiag.values.findings import Finding, NeedMore
from memdiag.values.measurements import Unit
from memdiag.values.verdict import STABLE_OR_WARMUP, Argument, Reason


@Rule
def filling_container(finding: Finding, series: SeriesSet) -> tuple[Argument, Changes] | None:
    """Most of the growth is what one container of the program keeps that has a greatest length and
    is not full: `deque(maxlen=...)`, a cache with a `maxsize`.

    Leaves a leak inconclusive until it is full, unless a limit is reached before. Of objects, which
    a container keeps beside bytes, if that is so of the largest growth of bytes of their process.
    """
    if finding.verdict in STABLE_OR_WARMUP or finding.growth_per_x is None:
        return None
    growths = [finding]
    if finding.unit is not Unit.BYTES:
        own = [f for f in series.findings if f.process == finding.process and f.growth_per_s]
        growths = sorted((f for f in own if f.unit is Unit.BYTES), key=speed)
    filling = _filling(growths[-1], series) if growths else None
    if filling is None or speed(finding) <= 0:
        return None
    seconds_per_x = finding.growth_per_x.value / speed(finding)
    left_x, length_x = filling.left_s / seconds_per_x, finding.last_x - finding.first_x
    argument = Argument(
        text=f"most of the growth is `{filling.name}`, which holds at most {{bound}} items: it has "
        "{items}, and is full after {left_x}",
        numbers={"items": filling.items, "bound": filling.bound, "left_x": left_x},
        reason=Reason.FILLING,
        need_x=left_x,
    )
    more_x = left_x + length_x
    return argument, {
        "onset_x": None,
        "forecasts": (),
        "limit_hits": (),
        "confidence": series.policy.reporting.open_confidence,
        "need_more": NeedMore(more_x=more_x, more_s=more_x * seconds_per_x, why=_WHY),
    }


_WHY = "until it is full, and as long again"


def _filling(finding: Finding, series: SeriesSet) -> Filling | None:
    """The container that most of a growth of bytes fills, before a limit is reached."""
    if finding.process == "tree":
        known = max(series.kept.values(), key=lambda k: k.per_s + k.device_per_s, default=None)
    else:
        known = series.kept.get(finding.process)
    if known is None or known.filling is None or finding.growth_per_s is None:
        return None
    per_s = known.device_per_s if finding.role in ON_DEVICE else known.per_s
    if not per_s >= series.policy.common.most * finding.growth_per_s.value > 0:
        return None
    full_bytes = finding.latest_value + per_s * known.filling.left_s
    is_over = any(hit.limit_bytes <= full_bytes for hit in finding.limit_hits)
    return None if is_over else known.filling
