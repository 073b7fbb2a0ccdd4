"""The plot of a finding: its marks, limits and colors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memdiag.report.plotting.plot import Level, Mark, Plot, draw
from memdiag.report.sections import headline
from memdiag.report.text import numbers, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.values.findings import Finding
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from rich.text import Text

# A stable series is shown on at least this part of its level, so that noise does not look like
# growth.
_STABLE_SPAN = 0.2
# A limit above the peak by more than this factor is not shown: it would flatten the curve.
_LIMIT_IN_SIGHT = 1.5


def plot(finding: Finding, screen: Screen) -> list[Text]:
    """The lines of the plot; empty if the finding has fewer than two points."""
    stable = finding.verdict in {Verdict.STABLE, Verdict.WARMUP}
    drawing = Plot(
        trace=finding.trace,
        unit=finding.unit,
        axis=finding.axis.kind,
        axis_word=wording.axis(finding.axis),
        marks=_marks(finding),
        levels=_limits(finding, screen),
        behind=finding.tops if headline.is_higher_between(finding) else (),
        least_span=_STABLE_SPAN * abs(finding.peak_value) if stable else 0.0,
    )
    return draw(drawing, screen.measure, ascii_only=screen.ascii_only)


def _marks(finding: Finding) -> list[Mark]:
    marks = []
    if finding.plateau is not None and finding.verdict is not Verdict.STABLE:
        since = finding.plateau.since_x.value
        label = f"plateau since {series_names.place(finding, since)}"
        marks.append(Mark(x=since, label=label, style=wording.STYLES[Verdict.STABLE]))
    if finding.onset_x is not None:
        onset = finding.onset_x.value
        label = f"onset, {series_names.place(finding, onset)}"
        marks.append(Mark(x=onset, label=label, style=wording.STYLES[Verdict.LEAK]))
    return [mark for mark in marks if finding.first_x <= mark.x <= finding.last_x]


def _limits(finding: Finding, screen: Screen) -> list[Level]:
    highest = max(finding.peak_value, 0.0) * _LIMIT_IN_SIGHT
    return [
        Level(
            value=float(hit.limit_bytes),
            label=f"{screen.show(hit.limit, cells=24)}, {numbers.size(hit.limit_bytes)}",
        )
        for hit in finding.limit_hits
        if hit.limit_bytes <= highest
    ]
