"""The table of series: the deciding one first, then by verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from memdiag.report.text import numbers, rates, series_names, text_layout, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, first_fitting, joined, paragraph
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import Role
from memdiag.values.verdict import Reason, Verdict

_ROWS = 8
_STALE = 0.1  # of the run: a last reading that is older says nothing of now
_MANY = 20  # samples from which an interval is always shown
ORDER = (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE)
# They explain other series.
_COLLECTOR = ("gc_full_", "gc_young_", "gc_unreachable_", "gc_enabled")


def table(found: RecordingFinding, screen: Screen) -> list[Text]:
    """At most eight series; the others are counted in a last line."""
    order = ranked(found)
    if not order:
        return []
    # One more row is not longer than a line that counts it.
    shown = order if len(order) <= _ROWS + 1 else order[:_ROWS]
    lines = first_fitting((_drawn(shown, screen, **form) for form in _FORMS), screen.measure)
    rest = order[len(shown) :]
    return lines + (paragraph(_others(rest), screen.measure) if rest else [])


def ranked(found: RecordingFinding) -> list[Finding]:
    """The deciding series, then by verdict, the surest first; ties in given order.

    Series with too few samples come last. Left out are series that are always zero (no swap, no
    tensors on a device), totals of a single process, and counters of the garbage collector.
    """
    deciding = found.deciding
    repeated = _totals_of_one(found.series)
    rest = [
        finding
        for at, finding in enumerate(found.series)
        if at not in (found.decided_by, *repeated)
        and not (finding.peak_value == 0 == finding.start_value)
        and not finding.metric.startswith(_COLLECTOR)
    ]
    rest.sort(
        key=lambda finding: (
            finding.reason is Reason.TOO_FEW_SAMPLES,
            ORDER.index(finding.verdict),
            -finding.confidence,
        )
    )
    return ([] if deciding is None else [deciding]) + rest


def _totals_of_one(series: Sequence[Finding]) -> list[int]:
    """Indexes of totals that repeat the values of the only process, or count it."""
    of_tree = [at for at, finding in enumerate(series) if finding.process == "tree"]
    alone = {finding.process for finding in series} - {"tree"}
    peaks = [series[at].peak_value for at in of_tree if series[at].role is Role.PROCESSES]
    if len(alone) != 1 or peaks != [1]:
        return []
    said = {finding.metric: finding.verdict for finding in series if finding.process in alone}
    return [
        at
        for at in of_tree
        if series[at].role is Role.PROCESSES or said.get(series[at].metric) is series[at].verdict
    ]


# From the most to the least detailed: the first one that fits is shown.
_FORMS: tuple[dict[str, Any], ...] = (
    {},
    {"interval": False},
    {"reason": False},
    {"interval": False, "reason": False},
    {"interval": False, "reason": False, "cells": 18},
    {"interval": False, "reason": False, "peak": False, "cells": 18},
    {"interval": False, "reason": False, "peak": False, "cells": 12},
    {"interval": False, "reason": False, "peak": False, "growth": False, "cells": 12},
)


def _drawn(
    shown: Sequence[Finding],
    screen: Screen,
    *,
    interval: bool = True,
    peak: bool = True,
    reason: bool = True,
    growth: bool = True,
    cells: int = 32,
) -> list[Text]:
    """The table with these columns; `cells` is the most that a name may take."""
    names = [series_names.metric(f.metric, screen, cells=cells) for f in shown]
    processes = [series_names.process(f.process, screen, cells=cells) for f in shown]
    now = [latest(f, shown) for f in shown]
    peaks = [numbers.quantity(f.peak_value, f.unit) for f in shown]
    columns = [Column("series", [Text(name) for name in names])]
    if any(processes):
        columns.append(Column("process", [Text(name) for name in processes]))
    columns.append(Column("now", [Text(value) for value in now], right=True))
    if peak:
        columns.append(Column("peak", [Text(value) for value in peaks], right=True))
    if growth:
        columns.append(Column("growth", [_growth(f, screen, interval) for f in shown]))
    columns.append(Column("verdict", [_verdict(f, reason) for f in shown]))
    return text_layout.table(columns, gap=3 if peak else 2)


TITLES = ("series", "now", "peak", "growth", "verdict")


def rows(findings: Sequence[Finding], screen: Screen) -> list[tuple[str, ...]]:
    """The cells of a table with `TITLES`, for outputs that lay it out themselves."""
    found: list[tuple[str, ...]] = []
    for finding in findings:
        rate = rates.of(finding)
        found.append(
            (
                series_names.series(finding, screen),
                latest(finding, findings),
                numbers.quantity(finding.peak_value, finding.unit),
                "" if rate is None else rate.full(screen.plus_minus),
                f"{finding.verdict.name}, {wording.REASONS[finding.reason]}",
            )
        )
    return found


def latest(finding: Finding, among: Sequence[Finding]) -> str:
    """Its value now; "-" with the age of its last reading where others on its axis are newer."""
    end = max(f.last_x for f in among if f.axis == finding.axis)
    age = end - finding.last_x
    if age <= _STALE * (end - finding.first_x):
        return numbers.quantity(finding.latest_value, finding.unit)
    return f"- ({series_names.stretch(finding, age)} old)"


def _growth(finding: Finding, screen: Screen, interval: bool) -> Text:
    rate = rates.of(finding)
    leaks = finding.verdict is Verdict.LEAK
    if leaks and rate is None:
        # (Its own rate would not be that of the leak: it is what the other one's says.)
        other = next((a.against for a in finding.trail if a.is_decisive and a.against), "")
        metric = other.rpartition(" ")[2]
        return Text(f"with {series_names.metric(metric, screen)}" if metric else "grows")
    if rate is None or (not leaks and _is_meaningless(finding)):
        return Text("-")
    return Text(rate.full(screen.plus_minus) if interval else rate.brief())


def _is_meaningless(finding: Finding) -> bool:
    """Return True if the interval of the rate is wider than the values themselves."""
    growth = finding.growth_per_x
    if growth is None or finding.samples >= _MANY:
        return False
    run = finding.last_x - finding.first_x
    return (growth.high - growth.low) * run > 2 * abs(finding.peak_value)


def _verdict(finding: Finding, reason: bool) -> Text:
    word, style = finding.verdict.name, wording.STYLES[finding.verdict]
    leaks = finding.verdict is Verdict.LEAK
    text = Text()
    if finding.reason is Reason.TOO_FEW_SAMPLES:
        return text.append(wording.REASONS[finding.reason], style)
    text.append(word if leaks else word.lower(), f"bold {style}" if leaks else style)
    return text.append(f", {wording.REASONS[finding.reason]}") if reason else text


def _others(rest: Sequence[Finding]) -> str:
    counts = Counter(map(_short_verdict, rest))
    if len(counts) == 1:
        return f"and {len(rest):,} more, all {_short_verdict(rest[0])}"
    parts = [f"{number:,} {verdict}" for verdict, number in counts.items()]
    return f"and {len(rest):,} more: {joined(parts)}"


def _short_verdict(finding: Finding) -> str:
    if finding.reason is Reason.TOO_FEW_SAMPLES:
        return wording.REASONS[finding.reason]
    return finding.verdict.name.lower()
