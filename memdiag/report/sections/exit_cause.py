"""What a target held when it came to a bad end, and what of it had grown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from memdiag.report.sections import forecast
from memdiag.report.text import numbers, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import paragraph
from memdiag.values.capacity import Foretold
from memdiag.values.findings import Finding, Interval, RecordingFinding
from memdiag.values.measurements import Cause, Ending, Role, Unit

if TYPE_CHECKING:
    from rich.text import Text

_MOST = 3
_HOST = frozenset({Role.RESIDENT, Role.UNIQUE, Role.IN_USE, Role.SWAP})
_DEVICE = frozenset({Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED})
# Below this part of the first reading it has not changed, as far as anybody cares. Chosen.
_UNCHANGED = 0.01


def lines(found: RecordingFinding, screen: Screen) -> list[Text]:
    """What the target said of its end, its last readings and what grew; none after a good end."""
    how = found.ending
    if how is None or (how.signal is None and how.cause is None):
        return []
    said: list[Text] = []
    if how.detail:
        said += paragraph(series_names.stopped(how.detail, screen), screen.measure, lead="It said:")
    held = sorted(_held(found, how), key=_telling, reverse=True)[:_MOST]
    if held:
        text = "; ".join(_reading(finding, screen) for finding in held)
        said += paragraph(f"{text}.", screen.measure, lead="Last readings:", hanging=2)
    if found.foretold is not None:
        text = _foretold(found.foretold, found.series[found.foretold.series], screen)
        said += paragraph(text, screen.measure, lead="Foretold:", hanging=2)
    return said


def is_out_of_memory(found: RecordingFinding) -> bool:
    """A limit of memory has ended the run: nothing goes on from here."""
    return found.ending is not None and found.ending.cause is not None


def _foretold(told: Foretold, finding: Finding, screen: Screen) -> str:
    """What could be known half-way, beside what came."""
    name, end = series_names.series(finding, screen), series_names.place(finding, told.at_x)
    span = Interval(value=told.at_x, low=told.low_x, high=told.high_x)
    sure = "if it went on so, which could not be told yet"
    if told.confidence is not None:
        sure = f"{numbers.sureness(told.confidence)} sure of a leak by then"
    return (
        f"half-way, at {series_names.place(finding, told.seen_until_x)}, {name} was to reach "
        f"{numbers.size(told.limit_bytes)} at {end}{forecast.reach(span, finding)}, {sure}. "
        f"The last sample is of {series_names.place(finding, finding.last_x)}."
    )


def _held(found: RecordingFinding, how: Ending) -> list[Finding]:
    """One series of each metric: that of the whole tree where there is one, else the largest."""
    wanted = _HOST | _DEVICE
    if how.cause is not None:
        wanted = _DEVICE if how.cause is Cause.DEVICE_MEMORY else _HOST
    best: dict[str, Finding] = {}
    for finding in found.series:
        if finding.role not in wanted or finding.unit is not Unit.BYTES:
            continue
        if not math.isfinite(finding.latest_value):
            continue
        other = best.get(finding.metric)
        if other is None or _rank(finding) > _rank(other):
            best[finding.metric] = finding
    return list(best.values())


def _rank(finding: Finding) -> tuple[bool, float]:
    return finding.process == "tree", finding.latest_value


def _telling(finding: Finding) -> tuple[bool, float]:
    """What all processes held together first, then what grew most."""
    return finding.process == "tree", _growth(finding)


def _growth(finding: Finding) -> float:
    return finding.latest_value - finding.start_value


def _reading(finding: Finding, screen: Screen) -> str:
    name, now = series_names.series(finding, screen), numbers.size(finding.latest_value)
    growth = _growth(finding)
    if abs(growth) <= _UNCHANGED * abs(finding.start_value):
        return f"{name} {now}, as at the start"
    more = "more" if growth > 0 else "less"
    return f"{name} {now}, {numbers.size(abs(growth))} {more} than at the start"
