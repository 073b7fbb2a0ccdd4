"""The first lines: the verdict, what it was read from, and the story in a sentence or two."""

from __future__ import annotations

import math

from rich.cells import cell_len
from rich.text import Text

from memdiag.findings import Finding, Reason, RecordingFinding, Verdict
from memdiag.model import AxisKind, Unit
from memdiag.report import naming, numbers, rates, words
from memdiag.report.layout import INDENT, joined
from memdiag.report.screen import Screen

NOTHING_MEASURED = "nothing was measured"


def line(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The verdict line; how sure it is ends it, or stands below where both do not fit."""
    badge = Text(
        f" {words.VERDICTS[found.verdict]} ", f"bold reverse {words.STYLES[found.verdict]}"
    )
    left = Text(" " * INDENT) + badge
    left.append("  " + summary(found, screen), "bold")
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


def summary(found: RecordingFinding, screen: Screen) -> str:
    """What the verdict comes to, in a few words."""
    finding = found.deciding
    if finding is None:
        return NOTHING_MEASURED
    reason = words.REASONS[finding.reason]
    match found.verdict:
        case Verdict.LEAK:
            return _leak(finding)
        case Verdict.WARMUP:
            plateau = finding.plateau
            since = (
                "" if plateau is None else f" since {naming.place(finding, plateau.since_x.value)}"
            )
            return f"not a leak: {reason}{since}"
        case Verdict.STABLE:
            return f"no leak: {reason}"
        case Verdict.INCONCLUSIVE:
            after = finding.reason in {Reason.STILL_CLIMBING, Reason.SLOWING}
            return f"{reason} after {naming.extent(finding)}" if after else reason


def _leak(finding: Finding) -> str:
    rate = rates.of(finding)
    growth = words.REASONS[finding.reason] if rate is None else rate.brief()
    if finding.onset_x is None:
        return growth
    return f"{growth} since {naming.place(finding, finding.onset_x.value)}"


def _sureness(found: RecordingFinding) -> str:
    finding = found.deciding
    if finding is None:
        return ""
    sure = f"{numbers.sureness(found.confidence)} sure, "
    return ("" if found.verdict is Verdict.INCONCLUSIVE else sure) + naming.extent(finding)


def subject(found: RecordingFinding, screen: Screen) -> str:
    """Where the verdict comes from: `hybrid.csv: VRAM of rank0 (GPU memory), 9 samples`."""
    source = screen.show(found.source, cells=screen.measure // 2)
    finding = found.deciding
    if finding is None:
        return source
    name, role = naming.series(finding, screen), words.ROLES[finding.role]
    return f"{source}: {name} ({role}), {naming.counted(finding.samples, 'sample')}"


def story(finding: Finding, screen: Screen) -> str:
    """What happened, in a sentence or two that only say what the finding holds."""
    name = naming.series(finding, screen)
    name = name[0].upper() + name[1:]
    match finding.verdict:
        case Verdict.LEAK:
            what = _rise(finding, name) + _per_event(finding, screen)
        case Verdict.WARMUP:
            what = _settled(finding, name) or _rise(finding, name)
        case Verdict.STABLE:
            what = _held(finding, name)
        case Verdict.INCONCLUSIVE:
            what = _rise(finding, name)
    return f"{what} {words.GROUNDS[finding.reason]}"


def _rise(finding: Finding, name: str) -> str:
    start_x = finding.first_x if finding.onset_x is None else finding.onset_x.value
    start = naming.value_at(finding, start_x)
    now = finding.latest_value
    verb = "went" if now < start or _same(start, now, finding.unit) else "grew"
    show = numbers.quantity
    return (
        f"{name} {verb} from {show(start, finding.unit)} at {naming.place(finding, start_x)}"
        f" to {show(now, finding.unit)} at {naming.place(finding, finding.last_x)}."
    )


def _same(start: float, end: float, unit: Unit) -> bool:
    return numbers.quantity(start, unit) == numbers.quantity(end, unit)


def _per_event(finding: Finding, screen: Screen) -> str:
    blamed = [phase for phase in finding.phases if phase.blamed]
    if not blamed:
        return ""
    names = joined(screen.show(phase.phase, cells=30) for phase in blamed)
    growths = [phase.growth_per_event.value for phase in blamed]
    amount = numbers.between(min(growths), max(growths), finding.unit)
    phases = "phase" if len(blamed) == 1 else "phases"
    return f" It grows in {phases} {names}, by {amount} per event."


def _settled(finding: Finding, name: str) -> str:
    plateau = finding.plateau
    if plateau is None:
        return ""
    level = numbers.between(plateau.low_value, plateau.high_value, finding.unit)
    since = naming.place(finding, plateau.since_x.value)
    lasted = naming.stretch(finding, plateau.lasted_x)
    return f"{name} rose until {since}, then stayed at {level} for {lasted}."


def _held(finding: Finding, name: str) -> str:
    values = [value for _, value in finding.trace if math.isfinite(value)]
    low, high = (min(values), max(values)) if values else (finding.start_value, finding.peak_value)
    over = "" if finding.axis.kind is AxisKind.INDEX else f" over {naming.extent(finding)}"
    return f"{name} stayed at {numbers.between(low, high, finding.unit)}{over}."
