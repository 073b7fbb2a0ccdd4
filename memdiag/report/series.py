"""The table of series: the deciding one first, then leaks, doubts and calm ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from memdiag.findings import Finding, RecordingFinding, Verdict
from memdiag.report import naming, numbers, rates, words
from memdiag.report.layout import Column, Columns, joined, paragraph
from memdiag.report.screen import Screen

_ROWS = 8
_ORDER = (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE)


def table(found: RecordingFinding, screen: Screen) -> list[Text]:
    """At most eight series; the others are counted in a last line."""
    order = ranked(found)
    if not order:
        return []
    # One line more is no longer than saying that there is one more.
    shown = order if len(order) <= _ROWS + 1 else order[:_ROWS]
    lines = _fitting(shown, screen).lines()
    rest = order[len(shown) :]
    return lines + (paragraph(_others(rest), screen.measure) if rest else [])


def ranked(found: RecordingFinding) -> list[Finding]:
    """All series: the deciding one, then by verdict, the surest first; ties in given order."""
    deciding = found.deciding
    rest = [finding for at, finding in enumerate(found.series) if at != found.decided_by]
    rest.sort(key=lambda finding: (_ORDER.index(finding.verdict), -finding.confidence))
    return ([] if deciding is None else [deciding]) + rest


def _fitting(shown: Sequence[Finding], screen: Screen) -> Columns:
    """The fullest form that fits: first the intervals are left out, then peaks, then reasons."""
    for interval, peak, reason in (
        (True, True, True),
        (False, True, True),
        (False, False, True),
        (False, False, False),
    ):
        columns = _columns(shown, screen, interval=interval, peak=peak, reason=reason)
        if columns.width <= screen.measure:
            break
    return columns


def _columns(
    shown: Sequence[Finding], screen: Screen, *, interval: bool, peak: bool, reason: bool
) -> Columns:
    gap = 3 if reason else 2
    several = any(finding.process for finding in shown)
    titles = [Column(title="series")]
    titles += [Column(title="process")] * several
    titles += [Column(title="now", right=True)]
    titles += [Column(title="peak", right=True)] * peak
    titles += [Column(title="growth"), Column(title="verdict")]
    rows = []
    for finding in shown:
        row = [Text(naming.metric(finding.metric, screen))]
        row += [Text(naming.process(finding.process, screen))] * several
        row += [Text(numbers.quantity(finding.latest_value, finding.unit))]
        row += [Text(numbers.quantity(finding.peak_value, finding.unit))] * peak
        row += [_growth(finding, screen, interval), _verdict(finding, reason)]
        rows.append(row)
    return Columns(columns=titles, rows=rows, gap=gap)


def _growth(finding: Finding, screen: Screen, interval: bool) -> Text:
    rate = rates.of(finding)
    if rate is None:
        return Text("-")
    return Text(rate.full(screen.plus_minus) if interval else rate.brief())


def _verdict(finding: Finding, reason: bool) -> Text:
    verdict = Text(words.VERDICTS[finding.verdict].lower(), words.STYLES[finding.verdict])
    if finding.verdict is Verdict.LEAK:
        verdict = Text(words.VERDICTS[finding.verdict], f"bold {words.STYLES[finding.verdict]}")
    return verdict.append(f", {words.REASONS[finding.reason]}", "default") if reason else verdict


def _others(rest: Sequence[Finding]) -> str:
    counts = Counter(finding.verdict for finding in rest)
    if len(counts) == 1:
        return f"and {len(rest):,} more, all {words.VERDICTS[rest[0].verdict].lower()}"
    parts = [f"{counts[v]:,} {words.VERDICTS[v].lower()}" for v in _ORDER if counts[v]]
    return f"and {len(rest):,} more: {joined(parts)}"
