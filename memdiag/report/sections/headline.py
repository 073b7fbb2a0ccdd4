"""The first lines: the verdict, the series it rests on, and what happened in a sentence or two."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from memdiag.report.sections import forecast, phase_table
from memdiag.report.text import argument_text, numbers, rates, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import badge, joined
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Reason, Verdict

if TYPE_CHECKING:
    from rich.text import Text

NOTHING_MEASURED = "nothing was measured"


# A reading within a step is reported from this part above the highest floor on (heuristic).
_HIDDEN = 0.05


def line(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The verdict line; the confidence ends it, or is below if both do not fit."""
    style = wording.STYLES[found.verdict]
    return badge(found.verdict.name, style, summary(found), screen.measure, right=_basis(found))


def summary(found: RecordingFinding) -> str:
    """The verdict in a few words, for a reader who sees only this line."""
    match found.verdict:
        case Verdict.WARMUP:
            return f"not a leak: {gist(found)}"
        case Verdict.STABLE:
            return f"no leak: {gist(found)}"
        case Verdict.LEAK | Verdict.INCONCLUSIVE:
            return gist(found)


def gist(found: RecordingFinding) -> str:
    """The finding in a few words, beside its verdict."""
    finding = found.deciding
    if finding is None:
        return NOTHING_MEASURED
    reason = wording.REASONS[finding.reason]
    if found.verdict is Verdict.LEAK:
        return _leak(finding)
    if found.verdict is Verdict.WARMUP and finding.plateau is not None:
        return f"{reason} since {series_names.place(finding, finding.plateau.since_x.value)}"
    if finding.reason is Reason.FLAT:
        return f"{reason} at {numbers.quantity(finding.latest_value, finding.unit)}"
    return reason


def _leak(finding: Finding) -> str:
    rate = rates.of(finding)
    growth = wording.REASONS[finding.reason] if rate is None else rate.brief()
    if finding.onset_x is None:
        return growth
    return f"{growth} since {series_names.place(finding, finding.onset_x.value)}"


def _basis(found: RecordingFinding) -> str:
    """`85% confident, 150 steps`."""
    finding = found.deciding
    if finding is None:
        return ""
    confidence = f"{numbers.confidence(found.confidence)} confident, "
    extent = series_names.extent(finding)
    return extent if found.verdict is Verdict.INCONCLUSIVE else confidence + extent


def subject(found: RecordingFinding, screen: Screen) -> str:
    """What the verdict rests on: `hybrid.csv: VRAM of rank0 (GPU memory), 9 samples`."""
    source = screen.show(found.source, cells=screen.measure // 2)
    finding = found.deciding
    if finding is None:
        return source
    name, role = series_names.series(finding, screen), wording.ROLES[finding.role]
    return f"{source}: {name} ({role}), {series_names.counted(finding.samples, 'sample')}"


def story(finding: Finding, screen: Screen) -> str:
    """What happened, in a few sentences."""
    name = series_names.opening(finding, screen)
    grounds = argument_text.grounds(finding)
    match finding.verdict:
        case Verdict.LEAK:
            hits = [forecast.limit(hit, finding, screen) for hit in finding.limit_hits[:1]]
            rise = _rise(finding, name) + _rate(finding, screen)
            said = [f"{rise}.", *_in_phases(finding, screen), grounds, *hits]
        case Verdict.WARMUP:
            said = [_stabilized(finding, name) or f"{_rise(finding, name)}. {grounds}"]
        case Verdict.STABLE:
            said = [_held(finding, name), grounds]
        case Verdict.INCONCLUSIVE:
            said = [f"{_rise(finding, name)}.", grounds]
    return " ".join([*said, *_between(finding)])


def _between(finding: Finding) -> list[str]:
    """The peak between the readings that the plot shows, if it is worth reporting."""
    if not is_higher_between(finding):
        return []
    highest = numbers.quantity(max(value for _, value in finding.tops), finding.unit)
    if finding.axis.kind is AxisKind.SECONDS:
        return [f"Between these readings it reaches {highest} (dotted)."]
    return [f"Within {wording.one(finding.axis)} it reaches {highest} (dotted)."]


def is_higher_between(finding: Finding) -> bool:
    """Return True if readings within a step are so high that a plot of the steps hides them."""
    shown = [value for _, value in finding.trace if math.isfinite(value)]
    highest = max((value for _, value in finding.tops), default=-math.inf)
    return bool(shown) and highest > max(shown) + _HIDDEN * abs(max(shown))


def _rise(finding: Finding, name: str) -> str:
    start_x = finding.first_x if finding.onset_x is None else finding.onset_x.value
    start = series_names.value_at(finding, start_x)
    end_x, end = _end_of_rise(finding, start)
    show = numbers.quantity
    first, last = series_names.place(finding, start_x), series_names.place(finding, end_x)
    if start_x == finding.last_x:
        return f"{name} was {show(end, finding.unit)} at {last}"
    if show(start, finding.unit) == show(end, finding.unit) and end > start:
        rise = f"{show(end - start, finding.unit)} between {first} and {last}"
        return f"{name} grew by {rise}, to {show(end, finding.unit)}"
    return (
        f"{name} {'grew' if end > start else 'went'} from {show(start, finding.unit)}"
        f" at {first} to {show(end, finding.unit)} at {last}"
    )


def _end_of_rise(finding: Finding, start: float) -> tuple[float, float]:
    """Where the rise ends: at the last reading, or one before if the last has lost most of it, as
    at the end of a program.
    """
    last = finding.last_x, finding.latest_value
    if finding.verdict is not Verdict.LEAK or len(finding.trace) < 3:
        return last
    x, before = finding.trace[-2]
    return (x, before) if before - last[1] > (before - start) / 2 > 0 else last


def _rate(finding: Finding, screen: Screen) -> str:
    rate, epoch = rates.of(finding), rates.per_epoch(finding)
    beside = f" ({epoch.brief()})" if epoch is not None else ""
    return "" if rate is None else f", {rate.full(screen.plus_minus)}{beside}"


def _in_phases(finding: Finding, screen: Screen) -> list[str]:
    growing = [phase for phase in finding.phases if phase.is_attributed]
    if not growing:
        alike = finding.recurring
        return [] if alike is None else [phase_table.recurring(alike, finding, screen)]
    names = joined(screen.show(phase.phase, cells=30) for phase in growing)
    growths = [phase.growth_per_event.value for phase in growing]
    amount = numbers.between(min(growths), max(growths), finding.unit)
    which = "phase" if len(growing) == 1 else "phases"
    return [f"It grows in {which} {names}, by {amount} per event."]


def _stabilized(finding: Finding, name: str) -> str:
    plateau = finding.plateau
    if plateau is None:
        return ""
    level = numbers.between(plateau.low_value, plateau.high_value, finding.unit)
    since = series_names.place(finding, plateau.since_x.value)
    lasted = series_names.stretch(finding, plateau.lasted_x)
    return f"{name} rose until {since}, then stayed at {level} for {lasted}."


def _held(finding: Finding, name: str) -> str:
    values = [value for _, value in finding.trace if math.isfinite(value)]
    low, high = (min(values), max(values)) if values else (finding.start_value, finding.peak_value)
    counted = finding.axis.kind in {AxisKind.INDEX, AxisKind.TICK}
    over = "" if counted else f" over {series_names.extent(finding)}"
    return f"{name} stayed at {numbers.between(low, high, finding.unit)}{over}."
