"""Names of series, positions and lengths, as sentences use them."""

from __future__ import annotations

from memdiag.report.text import numbers, wording
from memdiag.report.text.screen import Screen
from memdiag.values.comparison import SeriesComparison
from memdiag.values.findings import BudgetFinding, Finding
from memdiag.values.measurements import AxisKind, Mark

_NAME_CELLS = 40


OnAxis = Finding | SeriesComparison
Named = OnAxis | BudgetFinding | Mark


def series(finding: Named, screen: Screen) -> str:
    """`VRAM`, `RSS of rank0`, `RSS of all processes`."""
    name = metric(finding.metric, screen)
    return f"{name} of {process(finding.process, screen)}" if finding.process else name


def opening(finding: Named, screen: Screen) -> str:
    """`series` at the start of a sentence; a column's own name keeps its letters."""
    name = series(finding, screen)
    return name[0].upper() + name[1:] if wording.is_own(finding.metric) else name


def metric(name: str, screen: Screen, *, cells: int = _NAME_CELLS) -> str:
    return screen.show(wording.metric(name), cells=cells)


def process(name: str, screen: Screen, *, cells: int = _NAME_CELLS) -> str:
    return screen.show(wording.process(name), cells=cells)


def stopped(text: str, screen: Screen) -> str:
    """A sentence from outside with its full stop; its first word may be a name, so it is kept."""
    shown = screen.show(text)
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."


def place(finding: OnAxis, x: float) -> str:
    """A position on the axis: `step 1,500`, `1 min 50 s`, `cycle 7`."""
    at = numbers.position(x, finding.axis.kind)
    if finding.axis.kind is AxisKind.SECONDS:
        return at
    return f"{wording.axis(finding.axis)} {at}"


def stretch(finding: OnAxis, length: float) -> str:
    """A length on the axis: `150 steps`, `1 min 50 s`."""
    amount = numbers.position(length, finding.axis.kind)
    if finding.axis.kind is AxisKind.SECONDS:
        return amount
    return f"{amount} {wording.axis(finding.axis, length)}"


def extent(finding: Finding) -> str:
    """The length of the series."""
    return stretch(finding, finding.last_x - finding.first_x)


def counted(number: int, thing: str) -> str:
    """`1 sample`, `240 samples`."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def value_at(finding: Finding, x: float) -> float:
    """The fitted value at a position; between two segments, the end of the earlier one.

    At least the lowest reading: a line through readings that jump may begin below it.
    """
    before = [segment for segment in finding.segments if segment.start_x <= x]
    if not before:
        started = x <= finding.first_x or not finding.segments
        return finding.start_value if started else finding.segments[0].start_value
    segment = before[-1]
    length = (segment.end_x - segment.start_x) or 1.0
    part = min(1.0, (x - segment.start_x) / length)
    fitted = segment.start_value + (segment.end_value - segment.start_value) * part
    return max(fitted, min((value for _, value in finding.trace), default=fitted))


def reference(text: str, screen: Screen) -> str:
    """A series that evidence names as "process metric", in the report's words."""
    owner, _, name = text.rpartition(" ")
    called = metric(name, screen)
    return f"{called} of {process(owner, screen)}" if owner else called
