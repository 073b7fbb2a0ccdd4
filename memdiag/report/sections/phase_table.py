"""The table of phases in which memory grows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from memdiag.report.text import numbers, text_layout
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, joined, paragraphs
from memdiag.values.findings import Finding, PhaseGrowth, RecurringGrowth

_ROWS = 6
# Phases with a smaller part of the growth are shown only if growth is attributed to them.
_NOTABLE_SHARE = 0.05
TITLES = ("phase", "events", "growth per event", "share", "by chance")
_RIGHT = ("events", "share")


def table(finding: Finding, screen: Screen) -> list[Text]:
    """Phases by their share of the growth; empty if no phase grows."""
    grown = growing(finding)
    if not grown:
        return []
    shown = grown[:_ROWS]
    cells = rows(shown, finding, screen, cells=18)
    styles = ["bold" * phase.is_attributed for phase in shown]
    columns = [
        Column(
            title,
            [Text(row[at], "" if at else style) for row, style in zip(cells, styles, strict=True)],
            right=title in _RIGHT,
        )
        for at, title in enumerate(TITLES)
    ]
    lines = text_layout.table(columns, gap=3 if screen.measure >= 72 else 2)
    return lines + paragraphs(sentences(finding, screen), screen.measure)


def growing(finding: Finding) -> list[PhaseGrowth]:
    """The phases that have a notable part of the growth, the largest first."""
    grown = [row for row in finding.phases if row.is_attributed or row.share >= _NOTABLE_SHARE]
    return sorted(grown, key=lambda row: -row.share)


def rows(
    shown: Sequence[PhaseGrowth], finding: Finding, screen: Screen, *, cells: int
) -> list[tuple[str, ...]]:
    """The cells of the table; `cells` is the most that a name may take."""
    return [
        (
            screen.show(row.phase, cells=cells),
            f"{row.growing_events:,} of {row.events:,}",
            _growth(row, finding, screen),
            numbers.share(row.share),
            numbers.probability(row.p_value),
        )
        for row in shown
    ]


def sentences(finding: Finding, screen: Screen) -> list[str]:
    """What the table does not show of the phases."""
    grown = growing(finding)
    if finding.recurring is not None:
        said = ["No phase stands out: every event added the same."]
    else:
        said = [
            f"Each {screen.show(row.phase, cells=30)} adds {numbers.multiple(row.match)}."
            for row in grown[:_ROWS]
            if row.match is not None
        ]
    if len(grown) > _ROWS:
        said.append(f"and {len(grown) - _ROWS} more")
    return said


def recurring(growth: RecurringGrowth, finding: Finding, screen: Screen) -> str:
    """What every tagged event adds alike, in a sentence."""
    each = joined(f"each {screen.show(name, cells=30)}" for name in growth.phases)
    amount = numbers.between(growth.least, growth.most, finding.unit)
    match = "" if growth.match is None else f", {numbers.multiple(growth.match)}"
    return text_layout.sentence(f"{each} added {amount}{match}")


def _growth(phase: PhaseGrowth, finding: Finding, screen: Screen) -> str:
    growth = numbers.signed(phase.growth_per_event.value, finding.unit)
    if phase.spread is None:
        return growth
    return f"{growth} {screen.plus_minus} {numbers.significant(phase.spread * 100, 2)}%"
