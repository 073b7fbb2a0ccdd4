"""What comes: limits that will be reached, forecasts, and what is needed to decide."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from memdiag.findings import Finding, Interval, LimitHit, NeedMore, Verdict
from memdiag.report import naming, numbers, words
from memdiag.report.layout import paragraph
from memdiag.report.screen import Screen

if TYPE_CHECKING:
    from rich.text import Text


def lines(finding: Finding, screen: Screen) -> list[Text]:
    """One paragraph for each kind of statement; none where nothing is known."""
    found: list[Text] = []
    for hit in finding.limit_hits:
        found += paragraph(_limit(hit, finding, screen), screen.measure)
    if finding.forecasts:
        found += paragraph(_forecast(finding), screen.measure)
    if finding.peaks_grow:
        text = "The floor is level, but the peaks rise: watch them."
        found += paragraph(text, screen.measure)
    if finding.need_more is not None and finding.verdict is Verdict.INCONCLUSIVE:
        found += paragraph(needs(finding, finding.need_more, screen), screen.measure)
    return found


def _limit(hit: LimitHit, finding: Finding, screen: Screen) -> str:
    name = f"{screen.show(hit.limit, cells=40)} ({numbers.size(hit.limit_bytes)})"
    when = naming.place(finding, hit.at_x.value)
    if hit.at_x.value <= finding.last_x:
        return f"{name} is reached."
    left = "" if hit.in_s is None else f", about {numbers.duration(hit.in_s)} from the last sample"
    return f"{name} will be full at {when}{_range(hit.at_x, finding)}{left}, if it goes on so."


def _range(at_x: Interval, finding: Finding) -> str:
    low, high = at_x.low, at_x.high
    kind = finding.axis.kind
    if not math.isfinite(low):
        return ""
    if not math.isfinite(high):
        return f" (not before {numbers.position(low, kind)})"
    ends = numbers.position(low, kind), numbers.position(high, kind)
    return "" if ends[0] == ends[1] else f" ({ends[0]} to {ends[1]})"


def _forecast(finding: Finding) -> str:
    parts = [
        f"{numbers.between(at.value.low, at.value.high, finding.unit)}"
        f" at {naming.place(finding, at.at_x)}"
        for at in finding.forecasts
    ]
    return f"Forecast if it goes on so: {'; '.join(parts)}."


def needs(finding: Finding, need: NeedMore, screen: Screen) -> str:
    """How much longer the run must be watched, and why."""
    why = f" {screen.show(need.why)}" if need.why else ""
    if why and why[-1] not in ".!?":
        why += "."
    if need.more_x is None and need.more_s is None:
        return f"Not decidable in this run.{why}"
    return f"Run about {_amount(finding, need)} more to know.{why}"


def _amount(finding: Finding, need: NeedMore) -> str:
    seconds = "" if need.more_s is None else numbers.duration(need.more_s)
    if need.more_x is None:
        return seconds
    steps = naming.stretch(finding, math.ceil(need.more_x))
    timed = seconds and words.axis(finding.axis) != "second"
    return f"{steps} ({seconds} at this pace)" if timed else steps
