"""The table of phases that memory grows in."""

from __future__ import annotations

from rich.text import Text

from memdiag.report.text import numbers
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, Columns, joined, paragraph
from memdiag.values.findings import Finding, PhaseGrowth, RecurringGrowth

_ROWS = 6
# A phase that holds less than this of the growth is not worth a line, unless it is blamed.
_NOTABLE_SHARE = 0.05


def table(finding: Finding, screen: Screen) -> list[Text]:
    """Phases by their share of the growth; none where no phase grows."""
    grown = [
        phase for phase in finding.phases if phase.is_attributed or phase.share >= _NOTABLE_SHARE
    ]
    grown.sort(key=lambda phase: -phase.share)
    if not grown:
        return []
    columns = Columns(
        columns=[
            Column(title="phase"),
            Column(title="events", right=True),
            Column(title="growth per event"),
            Column(title="share", right=True),
            Column(title="by chance"),
        ],
        rows=[_row(phase, finding, screen) for phase in grown[:_ROWS]],
        gap=3 if screen.measure >= 72 else 2,
    )
    lines = columns.lines()
    for phase in grown[:_ROWS]:
        if phase.match is not None and finding.recurring is None:
            name, what = screen.show(phase.phase, cells=30), numbers.multiple(phase.match)
            lines += paragraph(f"Each {name} adds {what}.", screen.measure)
    if finding.recurring is not None:
        lines += paragraph("No phase stands out: every event added the same.", screen.measure)
    if len(grown) > _ROWS:
        lines += paragraph(f"and {len(grown) - _ROWS} more", screen.measure)
    return lines


def recurring(growth: RecurringGrowth, finding: Finding, screen: Screen) -> str:
    """What every tagged event adds alike, in a sentence."""
    each = joined(f"each {screen.show(name, cells=30)}" for name in growth.phases)
    amount = numbers.between(growth.least, growth.most, finding.unit)
    match = "" if growth.match is None else f", {numbers.multiple(growth.match)}"
    return f"{each[0].upper()}{each[1:]} added {amount}{match}."


def _row(phase: PhaseGrowth, finding: Finding, screen: Screen) -> list[Text]:
    growth = numbers.signed(phase.growth_per_event.value, finding.unit)
    if phase.spread is not None:
        growth += f" {screen.plus_minus} {numbers.significant(phase.spread * 100, 2)} %"
    return [
        Text(screen.show(phase.phase, cells=18), "bold" if phase.is_attributed else ""),
        Text(f"{phase.growing_events:,} of {phase.events:,}"),
        Text(growth),
        Text(numbers.share(phase.share)),
        Text(numbers.probability(phase.p_value)),
    ]
