"""The last readings of a target that did not end well, and what had grown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memdiag.report.sections import forecast
from memdiag.report.text import numbers, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import paragraph
from memdiag.values.capacity import EarlyForecast
from memdiag.values.findings import Finding, Interval, RecordingFinding
from memdiag.values.measurements import Cause, Ending, Role, Unit

if TYPE_CHECKING:
    from rich.text import Text

_MOST = 3
# Errors this long were cut by the probe (`ring_format.NAME_BYTES`).
_CUT = 120
_ENDS = (".", "!", ")", "]", "'")
_HOST = frozenset({Role.RESIDENT, Role.UNIQUE, Role.IN_USE, Role.SWAP})
_DEVICE = frozenset({Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED})
# A change below this part of the first reading is not reported (heuristic).
_UNCHANGED = 0.01


def lines(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The last error, the last readings and what grew; empty if the target ended well."""
    return [
        line
        for lead, text in sentences(found, screen)
        for line in paragraph(text, screen.measure, lead=f"{lead}:")
    ]


def _whole_sentences(text: str) -> str:
    """The text without a last sentence that has no end: long texts are cut."""
    before, stop, last = text.rpartition(". ")
    return f"{before}." if stop and len(text) >= _CUT and not last.endswith(_ENDS) else text


def sentences(found: RecordingFinding, screen: Screen) -> Iterator[tuple[str, str]]:
    """The same as pairs of a title and a sentence."""
    how = found.ending
    if how is None or (how.signal is None and how.cause is None):
        return
    if how.detail:
        yield "Last error", series_names.stopped(_whole_sentences(how.detail), screen)
    last = sorted(_last(found, how), key=_by_growth, reverse=True)[:_MOST]
    if last:
        yield "Last readings", "; ".join(_reading(finding, screen) for finding in last) + "."
    if found.early_forecast is not None:
        finding = found.series[found.early_forecast.series]
        yield "Forecast", _forecast(found.early_forecast, finding, screen)


def is_out_of_memory(found: RecordingFinding) -> bool:
    """Return True if a memory limit ended the run."""
    return found.ending is not None and found.ending.cause is not None


def _forecast(early: EarlyForecast, finding: Finding, screen: Screen) -> str:
    """The forecast from the first half of the run, and what happened."""
    name, end = series_names.series(finding, screen), series_names.place(finding, early.at_x)
    span = Interval(value=early.at_x, low=early.low_x, high=early.high_x)
    confidence = "if the trend continued, which was inconclusive"
    if early.confidence is not None:
        confidence = f"{numbers.confidence(early.confidence)} confident of a leak by then"
    return (
        f"halfway, at {series_names.place(finding, early.seen_until_x)}, {name} was expected to "
        f"reach {numbers.size(early.limit_bytes)} at {end}{forecast.reach(span, finding)}, "
        f"{confidence}. The last sample is at {series_names.place(finding, finding.last_x)}."
    )


def _last(found: RecordingFinding, how: Ending) -> list[Finding]:
    """One series of each metric that was ever above zero: that of the process tree if there is
    one, else the largest."""
    wanted = _HOST | _DEVICE
    if how.cause is not None:
        wanted = _DEVICE if how.cause is Cause.DEVICE_MEMORY else _HOST
    best: dict[str, Finding] = {}
    for finding in found.series:
        if finding.role not in wanted or finding.unit is not Unit.BYTES:
            continue
        if not math.isfinite(finding.latest_value) or finding.peak_value == 0:
            continue
        other = best.get(finding.metric)
        if other is None or _rank(finding) > _rank(other):
            best[finding.metric] = finding
    return list(best.values())


def _rank(finding: Finding) -> tuple[bool, float]:
    return finding.process == "tree", finding.latest_value


def _by_growth(finding: Finding) -> tuple[bool, float]:
    """The process tree first, then what grew most."""
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
