"""What comes next: limits that will be reached, forecasts, and how much more data is needed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from memdiag.report.text import numbers, rates, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import paragraph, paragraphs
from memdiag.values.findings import (
    Finding,
    FirstLimit,
    Interval,
    LimitHit,
    NeedMore,
    RecordingFinding,
)
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.verdict import Reason, Verdict

if TYPE_CHECKING:
    from rich.text import Text


PEAKS_GROW = "the baseline is stable, but the peaks rise."


def lines(finding: Finding, screen: Screen, *, is_over: bool = False) -> list[Text]:
    """A paragraph for each limit, and one for the forecasts.

    is_over: memory has ended the run, so nothing is forecast.
    """
    said: list[str] = []
    if not is_over:
        shown = 1 if finding.verdict is Verdict.LEAK else 0  # the story of a leak has the first
        said += [limit(hit, finding, screen) for hit in finding.limit_hits[shown:]]
    if finding.forecasts and not is_over:
        said.append(f"If the trend continues: {forecasts(finding)}.")
    found = paragraphs(said, screen.measure)
    if finding.peaks_grow:
        found += paragraph(PEAKS_GROW, screen.measure, lead="Warning:")
    return found


def first_elsewhere(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The limit that is reached first, if a series other than the deciding one reaches it."""
    first = found.first_limit
    if first is None or first.series == found.decided_by:
        return []
    finding = found.series[first.series]
    deciding = found.deciding
    if deciding is not None and first.limit in {hit.limit for hit in deciding.limit_hits}:
        return []  # shown already, for another metric of the same memory
    name = f"{screen.show(first.limit, cells=40)} ({numbers.size(first.limit_bytes)})"
    left = "" if first.left_s is None else _after_the_end(first.left_s.value)
    text = (
        f"{name}, by {series_names.series(finding, screen)},"
        f" at {series_names.place(finding, first.at_x.value)}{reach(first.at_x, finding)}"
        f"{left}{_confidence(first)}."
    )
    if first.rival:
        text += f" {screen.show(first.rival, cells=40)} may come before it."
    return paragraph(text, screen.measure, lead="First limit reached:")


def first_limit(found: RecordingFinding, screen: Screen) -> str:
    """The limit that is reached first, and about when; "" if none is."""
    finding, first = found.deciding, found.first_limit
    name, size_bytes, at, left_s = "", 0, 0.0, None
    if first is not None:
        finding = found.series[first.series]
        name, size_bytes, at = first.limit, first.limit_bytes, first.at_x.value
        left_s = None if first.left_s is None else first.left_s.value
    elif finding is not None and finding.limit_hits:
        hit = finding.limit_hits[0]
        name, size_bytes, at, left_s = hit.limit, hit.limit_bytes, hit.at_x.value, hit.in_s
    if finding is None or not name:
        return ""
    shown = f"{screen.show(name, cells=40)} ({numbers.size(size_bytes)})"
    if at <= finding.last_x:
        return f"{shown} is reached."
    near = series_names.place(finding, float(numbers.significant(at).replace(",", "")))
    left = "" if left_s is None else f", about {numbers.about(left_s)} after the last sample"
    whose = "at this rate"
    if finding is not found.deciding and (rate := rates.of(finding)) is not None:
        whose = f"at the rate of {series_names.series(finding, screen)} ({rate.brief()})"
    return f"{shown} is reached near {near}{left}, {whose}."


def _after_the_end(seconds: float) -> str:
    return f", about {numbers.duration(seconds)} after the last sample"


def _confidence(first: FirstLimit) -> str:
    if first.confidence is None:
        return ", if the trend continues, which is inconclusive"
    return f"; {numbers.confidence(first.confidence)} confidence that the trend continues"


def limit(hit: LimitHit, finding: Finding, screen: Screen) -> str:
    """When a limit is reached at the rate of the last segment."""
    name = f"{screen.show(hit.limit, cells=40)} ({numbers.size(hit.limit_bytes)})"
    if hit.at_x.value <= finding.last_x:
        return f"{name} is reached."
    when = series_names.place(finding, hit.at_x.value)
    left = "" if hit.in_s is None else _after_the_end(hit.in_s)
    reached = f"will be reached at {when}{reach(hit.at_x, finding)}{left}"
    return f"{name} {reached}, if the trend continues."


def reach(at_x: Interval, finding: Finding) -> str:
    """` (505 to 516)`, as far as it is bounded."""
    low, high = at_x.low, at_x.high
    kind = finding.axis.kind
    if not math.isfinite(low):
        return ""
    soonest = numbers.position(low, kind)
    if not math.isfinite(high):
        same = soonest == numbers.position(at_x.value, kind)
        return " or later" if same else f" (not before {soonest})"
    latest = numbers.position(high, kind)
    return "" if soonest == latest else f" ({soonest} to {latest})"


def forecasts(finding: Finding) -> str:
    """`27.9 to 30.2 GB at step 100`."""
    return "; ".join(
        f"{numbers.between(at.value.low, at.value.high, finding.unit)}"
        f" at {series_names.place(finding, at.at_x)}"
        for at in finding.forecasts
    )


# With fewer, verdicts are rare and less sure (docs/decide.md). Of a recording at one position.
_READINGS = 20
_READ_MORE_OFTEN = "Read memory more often: memdiag run reads it at every step."
# More memory than this many times what there was is not advised. Heuristic.
_MOST_MORE = 4.0


def more_memory(finding: Finding, need: NeedMore, limit_bytes: int | None) -> str:
    """What a run that ran out of memory needs for a verdict, if that is not many times as much."""
    rate, more_x = finding.growth_per_x, need.more_x
    needed = 0.0 if rate is None or more_x is None else rate.value * more_x
    if finding.unit is Unit.BYTES and needed > _MOST_MORE * finding.latest_value:
        return (
            f"A longer run would need about {numbers.size(needed)} more memory at this rate: "
            "look for what grows first."
        )
    than = "" if limit_bytes is None else f" than {numbers.size(limit_bytes)}"
    longer = "it again"
    if need.more_x is not None or need.more_s is not None:
        longer = f"{amount(finding, need)} than this"
    return f"Give it more memory{than} and record {longer}, to see whether it stabilizes."


def needs(finding: Finding, need: NeedMore, screen: Screen) -> str:
    """How much longer the run must be recorded, and why."""
    if need.more_x is None and need.more_s is None:
        why = need.why or "not decidable in this run"
        return f"{longer(finding)}: {series_names.stopped(why, screen)}"
    if need.is_beyond_plan:
        return (
            f"A verdict needs {amount(finding, need)}, and the run is planned to end before. "
            f"{_READ_MORE_OFTEN}"
        )
    if finding.reason is Reason.TOO_FEW_SAMPLES:
        return f"Run for {amount(finding, need)} at least; many warm-ups take minutes."
    why = f": {series_names.stopped(need.why, screen)}" if need.why else "."
    return f"Run for {amount(finding, need)} to reach a verdict{why}"


def longer(finding: Finding) -> str:
    """The request for a longer run, with its length."""
    length = finding.last_x - finding.first_x
    if not length > 0:
        return f"Record the same job until it has {_READINGS} readings"
    return f"Record a run twice as long, of {series_names.stretch(finding, 2 * length)}"


def brief(finding: Finding, need: NeedMore) -> str:
    """How much longer, in the fewest words."""
    is_known = need.more_x is not None or need.more_s is not None
    return amount(finding, need) if is_known else "it twice as long"


def amount(finding: Finding, need: NeedMore) -> str:
    """`about 313 more steps (10 min at this pace)`."""
    timed = "" if need.more_s is None else f"about {numbers.about(need.more_s)} longer"
    if need.more_x is None or finding.axis.kind is AxisKind.SECONDS:
        return timed or f"about {numbers.about(need.more_x or 0.0)} longer"
    more = math.ceil(need.more_x)
    steps = f"about {numbers.count(more)} more {wording.axis(finding.axis, more)}"
    if need.more_s is None:
        return steps
    return f"{steps} ({numbers.about(need.more_s)} at this pace)"
