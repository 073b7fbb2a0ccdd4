"""The first lines: the verdict, what it was read from, and the story in a sentence or two."""

from __future__ import annotations

import math

from rich.cells import cell_len
from rich.text import Text

from memdiag.report.sections import forecast, phase_table
from memdiag.report.text import argument_text, numbers, rates, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import INDENT, joined
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Reason, Verdict

NOTHING_MEASURED = "nothing was measured"


# A reading within a step is worth a word from this part above the highest floor on: chosen.
_HIDDEN = 0.05


def line(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The verdict line; how sure it is ends it, or stands below where both do not fit."""
    badge = Text(
        f" {wording.VERDICTS[found.verdict]} ", f"bold reverse {wording.STYLES[found.verdict]}"
    )
    left = Text(" " * INDENT) + badge
    left.append("  " + summary(found), "bold")
    right = _sureness(found)
    room = screen.measure - left.cell_len - cell_len(right)
    if room >= 2:
        left.append(" " * room + right)
        left.rstrip()
        return [left]
    return [*_folded(left, screen), Text(" " * INDENT + right)]


def _folded(left: Text, screen: Screen) -> list[Text]:
    """The line cut at a blank where it is too long; further lines are indented."""
    lines = []
    while left.cell_len > screen.measure:
        cut = left.plain.rfind(" ", INDENT + 16, screen.measure)
        head, tail = left.divide([cut if cut > 0 else screen.measure])
        lines.append(head)
        tail = tail[1:] if tail.plain.startswith(" ") else tail
        left = Text("   ") + tail
    return [*lines, left]


def summary(found: RecordingFinding) -> str:
    """What the verdict comes to, for somebody who sees only this line."""
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


def _sureness(found: RecordingFinding) -> str:
    finding = found.deciding
    if finding is None:
        return ""
    sure = f"{numbers.sureness(found.confidence)} sure, "
    return ("" if found.verdict is Verdict.INCONCLUSIVE else sure) + series_names.extent(finding)


def subject(found: RecordingFinding, screen: Screen) -> str:
    """Where the verdict comes from: `hybrid.csv: VRAM of rank0 (GPU memory), 9 samples`."""
    source = screen.show(found.source, cells=screen.measure // 2)
    finding = found.deciding
    if finding is None:
        return source
    name, role = series_names.series(finding, screen), wording.ROLES[finding.role]
    return f"{source}: {name} ({role}), {series_names.counted(finding.samples, 'sample')}"


def story(finding: Finding, screen: Screen) -> str:
    """What happened, in a few sentences that only say what the finding holds."""
    name = series_names.opening(finding, screen)
    grounds = argument_text.grounds(finding)
    match finding.verdict:
        case Verdict.LEAK:
            hits = [forecast.limit(hit, finding, screen) for hit in finding.limit_hits[:1]]
            rise = _rise(finding, name) + _rate(finding, screen)
            told = [f"{rise}.", *_in_phases(finding, screen), grounds, *hits]
        case Verdict.WARMUP:
            told = [_settled(finding, name) or f"{_rise(finding, name)}. {grounds}"]
        case Verdict.STABLE:
            told = [_held(finding, name), grounds]
        case Verdict.INCONCLUSIVE:
            told = [f"{_rise(finding, name)}.", grounds]
    return " ".join([*told, *_between(finding)])


def _between(finding: Finding) -> list[str]:
    """How high it goes between the readings that count, where that is worth a word."""
    if not is_higher_between(finding):
        return []
    highest = numbers.quantity(max(value for _, value in finding.tops), finding.unit)
    if finding.axis.kind is AxisKind.SECONDS:
        return [f"Between these readings it goes up to {highest} (dotted)."]
    return [f"Within {wording.one(finding.axis)} it goes up to {highest} (dotted)."]


def is_higher_between(finding: Finding) -> bool:
    """Whether single readings within a step lie so high that a plot of the steps hides them."""
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
    """Where the rise ends: the last reading, or the one before if most of the rise is gone at the
    last, as where a program ends.
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
    blamed = [phase for phase in finding.phases if phase.is_attributed]
    if not blamed:
        alike = finding.recurring
        return [] if alike is None else [phase_table.recurring(alike, finding, screen)]
    names = joined(screen.show(phase.phase, cells=30) for phase in blamed)
    growths = [phase.growth_per_event.value for phase in blamed]
    amount = numbers.between(min(growths), max(growths), finding.unit)
    which = "phase" if len(blamed) == 1 else "phases"
    return [f"It grows in {which} {names}, by {amount} per event."]


def _settled(finding: Finding, name: str) -> str:
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
