"""The table of series: the deciding one first, then leaks, doubts and calm ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from memdiag.report.text import numbers, rates, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, Columns, joined, paragraph
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import Role
from memdiag.values.verdict import Reason, Verdict

_ROWS = 8
_MANY = 20  # samples from which an interval is taken as it is
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


# What the collector has done is there to explain the objects.
_EXPLAINING = ("gc_full_", "gc_young_")


def ranked(found: RecordingFinding) -> list[Finding]:
    """The deciding series, then by verdict, the surest first; ties in given order.

    Series too short to say anything come last. One that never was anything but zero (no swap, no
    tensor on a device that is not there) is left out, and so are totals of a lone process, and what
    the collector has done.
    """
    deciding = found.deciding
    repeated = _totals_of_one(found.series)
    rest = [
        finding
        for at, finding in enumerate(found.series)
        if at not in (found.decided_by, *repeated)
        and not (finding.peak_value == 0 == finding.start_value)
        and not finding.metric.startswith(_EXPLAINING)
    ]
    rest.sort(
        key=lambda finding: (
            finding.reason is Reason.TOO_FEW_SAMPLES,
            _ORDER.index(finding.verdict),
            -finding.confidence,
        )
    )
    return ([] if deciding is None else [deciding]) + rest


def _totals_of_one(series: Sequence[Finding]) -> list[int]:
    """Places of totals that only repeat what the one process says, or that it is one."""
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
        row = [Text(series_names.metric(finding.metric, screen, cells=form.cells))]
        row += [Text(series_names.process(finding.process, screen, cells=form.cells))] * several
        row += [Text(numbers.quantity(finding.latest_value, finding.unit))]
        row += [Text(numbers.quantity(finding.peak_value, finding.unit))] * form.peak
        row += [_growth(finding, screen, form.interval)] * form.growth
        row += [_verdict(finding, form.reason)]
        rows.append(row)
    return Columns(columns=titles, rows=rows, gap=3 if form.peak else 2)


def _growth(finding: Finding, screen: Screen, interval: bool) -> Text:
    rate = rates.of(finding)
    if rate is None or _says_nothing(finding):
        return Text("-")
    return Text(rate.full(screen.plus_minus) if interval else rate.brief())


def _says_nothing(finding: Finding) -> bool:
    """The rate's interval is so wide that the whole level fits in it, either way."""
    growth = finding.growth_per_x
    if growth is None or finding.samples >= _MANY:
        return False
    run = finding.last_x - finding.first_x
    return (growth.high - growth.low) * run > 2 * abs(finding.peak_value)


def _verdict(finding: Finding, reason: bool) -> Text:
    word, style = wording.VERDICTS[finding.verdict], wording.STYLES[finding.verdict]
    leaks = finding.verdict is Verdict.LEAK
    text = Text()
    if finding.reason is Reason.TOO_FEW_SAMPLES:
        return text.append(wording.REASONS[finding.reason], style)
    text.append(word if leaks else word.lower(), f"bold {style}" if leaks else style)
    return text.append(f", {wording.REASONS[finding.reason]}") if reason else text


def _others(rest: Sequence[Finding]) -> str:
    counts = Counter(_standing(finding) for finding in rest)
    if len(counts) == 1:
        return f"and {len(rest):,} more, all {_standing(rest[0])}"
    parts = [f"{number:,} {standing}" for standing, number in counts.items()]
    return f"and {len(rest):,} more: {joined(parts)}"


def _standing(finding: Finding) -> str:
    if finding.reason is Reason.TOO_FEW_SAMPLES:
        return wording.REASONS[finding.reason]
    return wording.VERDICTS[finding.verdict].lower()
