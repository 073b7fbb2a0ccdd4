"""The table of series: the deciding one first, then leaks, doubts and calm ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from memdiag.findings import Finding, Reason, RecordingFinding, Verdict
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
    """The deciding series, then by verdict, the surest first; ties in given order.

    Series too short to say anything come last. One that never was anything but zero (no swap, no
    tensor on a device that is not there) is left out.
    """
    deciding = found.deciding
    rest = [
        finding
        for at, finding in enumerate(found.series)
        if at != found.decided_by and not (finding.peak_value == 0 == finding.start_value)
    ]
    rest.sort(
        key=lambda finding: (
            finding.reason is Reason.TOO_FEW_SAMPLES,
            _ORDER.index(finding.verdict),
            -finding.confidence,
        )
    )
    return ([] if deciding is None else [deciding]) + rest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How much a table says: `cells` is the most that a name may take."""

    interval: bool = True
    peak: bool = True
    reason: bool = True
    growth: bool = True
    cells: int = 32


# From the fullest to the barest: the first that fits is taken.
_FORMS = (
    _Form(),
    _Form(interval=False),
    _Form(reason=False),
    _Form(interval=False, reason=False),
    _Form(interval=False, reason=False, cells=18),
    _Form(interval=False, reason=False, peak=False, cells=18),
    _Form(interval=False, reason=False, peak=False, cells=12),
    _Form(interval=False, reason=False, peak=False, growth=False, cells=12),
)


def _fitting(shown: Sequence[Finding], screen: Screen) -> Columns:
    for form in _FORMS:
        columns = _columns(shown, screen, form)
        if columns.width <= screen.measure:
            break
    return columns


def _columns(shown: Sequence[Finding], screen: Screen, form: _Form) -> Columns:
    several = any(finding.process for finding in shown)
    titles = [Column(title="series")]
    titles += [Column(title="process")] * several
    titles += [Column(title="now", right=True)]
    titles += [Column(title="peak", right=True)] * form.peak
    titles += [Column(title="growth")] * form.growth
    titles += [Column(title="verdict")]
    rows = []
    for finding in shown:
        row = [Text(naming.metric(finding.metric, screen, cells=form.cells))]
        row += [Text(naming.process(finding.process, screen, cells=form.cells))] * several
        row += [Text(numbers.quantity(finding.latest_value, finding.unit))]
        row += [Text(numbers.quantity(finding.peak_value, finding.unit))] * form.peak
        row += [_growth(finding, screen, form.interval)] * form.growth
        row += [_verdict(finding, form.reason)]
        rows.append(row)
    return Columns(columns=titles, rows=rows, gap=3 if form.peak else 2)


def _growth(finding: Finding, screen: Screen, interval: bool) -> Text:
    rate = rates.of(finding)
    if rate is None:
        return Text("-")
    return Text(rate.full(screen.plus_minus) if interval else rate.brief())


def _verdict(finding: Finding, reason: bool) -> Text:
    word, style = words.VERDICTS[finding.verdict], words.STYLES[finding.verdict]
    leaks = finding.verdict is Verdict.LEAK
    text = Text()
    text.append(word if leaks else word.lower(), f"bold {style}" if leaks else style)
    return text.append(f", {words.REASONS[finding.reason]}") if reason else text


def _others(rest: Sequence[Finding]) -> str:
    counts = Counter(finding.verdict for finding in rest)
    if len(counts) == 1:
        return f"and {len(rest):,} more, all {words.VERDICTS[rest[0].verdict].lower()}"
    parts = [f"{counts[v]:,} {words.VERDICTS[v].lower()}" for v in _ORDER if counts[v]]
    return f"and {len(rest):,} more: {joined(parts)}"
