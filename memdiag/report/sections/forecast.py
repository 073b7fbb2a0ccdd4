"""What comes: limits that will be reached, forecasts, and what is needed to decide."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from memdiag.report.text import numbers, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import paragraph
from memdiag.values.findings import (
    Finding,
    FirstLimit,
    Interval,
    LimitHit,
    NeedMore,
    RecordingFinding,
)
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from rich.text import Text


def lines(finding: Finding, screen: Screen, *, is_over: bool = False) -> list[Text]:
    """One paragraph for each kind of statement; none where nothing is known.

    is_over: memory has ended the run, so that there is no telling of what would come.
    """
    found: list[Text] = []
    # The story of a leak has told the first one.
    told = 1 if finding.verdict is Verdict.LEAK else 0
    for hit in () if is_over else finding.limit_hits[told:]:
        found += paragraph(limit(hit, finding, screen), screen.measure)
    if finding.forecasts and not is_over:
        found += paragraph(_forecast(finding), screen.measure)
    if finding.peaks_grow:
        text = "the floor is level, but the peaks rise."
        found += paragraph(text, screen.measure, lead="Warning:")
    return found


def first_elsewhere(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The limit that is reached first, where that is not the doing of the series in the story."""
    first = found.first_limit
    if first is None or first.series == found.decided_by:
        return []
    finding = found.series[first.series]
    deciding = found.deciding
    if deciding is not None and first.limit in {hit.limit for hit in deciding.limit_hits}:
        return []  # told already, and of another meter of the same memory it is no news
    name = f"{screen.show(first.limit, cells=40)} ({numbers.size(first.limit_bytes)})"
    text = (
        f"{name}, by {series_names.series(finding, screen)},"
        f" at {series_names.place(finding, first.at_x.value)}{reach(first.at_x, finding)}"
        f"{_left(first.left_s)}{_how_sure(first)}."
    )
    if first.rival:
        text += f" {screen.show(first.rival, cells=40)} may come before it."
    return paragraph(text, screen.measure, lead="First to be full:", hanging=2)


def _left(left_s: Interval | None) -> str:
    if left_s is None:
        return ""
    return f", about {numbers.duration(left_s.value)} after the last sample"


def _how_sure(first: FirstLimit) -> str:
    if first.confidence is None:
        return ", if it goes on so, which can't be told yet"
    return f"; {numbers.sureness(first.confidence)} sure that it goes on so"


def limit(hit: LimitHit, finding: Finding, screen: Screen) -> str:
    """When a limit is reached at the last regime's rate."""
    name = f"{screen.show(hit.limit, cells=40)} ({numbers.size(hit.limit_bytes)})"
    when = series_names.place(finding, hit.at_x.value)
    if hit.at_x.value <= finding.last_x:
        return f"{name} is reached."
    left = "" if hit.in_s is None else f", about {numbers.duration(hit.in_s)} after the last sample"
    return f"{name} will be full at {when}{reach(hit.at_x, finding)}{left}, if it goes on so."


def reach(at_x: Interval, finding: Finding) -> str:
    """` (505 to 516)`, as far as it is bounded."""
    low, high = at_x.low, at_x.high
    kind = finding.axis.kind
    if not math.isfinite(low):
        return ""
    if not math.isfinite(high):
        soonest = numbers.position(low, kind)
        same = soonest == numbers.position(at_x.value, kind)
        return " or later" if same else f" (not before {soonest})"
    ends = numbers.position(low, kind), numbers.position(high, kind)
    return "" if ends[0] == ends[1] else f" ({ends[0]} to {ends[1]})"


def _forecast(finding: Finding) -> str:
    parts = [
        f"{numbers.between(at.value.low, at.value.high, finding.unit)}"
        f" at {series_names.place(finding, at.at_x)}"
        for at in finding.forecasts
    ]
    return f"If it goes on so: {'; '.join(parts)}."


def needs_room(finding: Finding, need: NeedMore, limit_bytes: int | None) -> str:
    """What a run that memory has ended must have, so that one can know."""
    than = "" if limit_bytes is None else f" than {numbers.size(limit_bytes)}"
    if need.more_x is None and need.more_s is None:
        return f"Give it more memory{than} and record it again, to see whether it settles."
    longer = _amount(finding, need)
    return f"Give it more memory{than} and record {longer} than this, to see whether it settles."


def needs(finding: Finding, need: NeedMore, screen: Screen) -> str:
    """How much longer the run must be watched, and why."""
    if need.more_x is None and need.more_s is None:
        why = need.why or "not decidable in this run"
        return f"Record a longer run of the same job: {series_names.stopped(why, screen)}"
    why = f": {series_names.stopped(need.why, screen)}" if need.why else "."
    return f"Let it run {_amount(finding, need)} to know{why}"


def _amount(finding: Finding, need: NeedMore) -> str:
    timed = "" if need.more_s is None else f"about {numbers.duration(need.more_s)} longer"
    if need.more_x is None or finding.axis.kind is AxisKind.SECONDS:
        return timed or f"about {numbers.duration(need.more_x or 0.0)} longer"
    more = math.ceil(need.more_x)
    steps = f"about {numbers.count(more)} more {wording.axis(finding.axis, more)}"
    if need.more_s is None:
        return steps
    return f"{steps} ({numbers.duration(need.more_s)} at this pace)"
