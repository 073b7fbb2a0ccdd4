"""The table of phases in which memory grows."""

from __future__ import annotations

from rich.text import Text

from memdiag.report.text import numbers, text_layout
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, joined, paragraphs
from memdiag.values.findings import Finding, PhaseGrowth, RecurringGrowth

_ROWS = 6
# Phases with a smaller part of the growth are shown only if growth is attributed to them.
_NOTABLE_SHARE = 0.05


def table(finding: Finding, screen: Screen) -> list[Text]:
    """Phases by their share of the growth; empty if no phase grows."""
    grown = [row for row in finding.phases if row.is_attributed or row.share >= _NOTABLE_SHARE]
    grown.sort(key=lambda row: -row.share)
    if not grown:
        return []
    rows = grown[:_ROWS]
    names = [(screen.show(row.phase, cells=18), "bold" * row.is_attributed) for row in rows]
    events = [f"{row.growing_events:,} of {row.events:,}" for row in rows]
    shares = [Text(numbers.share(row.share)) for row in rows]
    columns = [
        Column("phase", [Text(name, style) for name, style in names]),
        Column("events", [Text(text) for text in events], right=True),
        Column("growth per event", [Text(_growth(row, finding, screen)) for row in rows]),
        Column("share", shares, right=True),
        Column("by chance", [Text(numbers.probability(row.p_value)) for row in rows]),
    ]
    lines = text_layout.table(columns, gap=3 if screen.measure >= 72 else 2)
    if finding.recurring is not None:
        said = ["No phase stands out: every event added the same."]
    else:
        said = [
            f"Each {screen.show(row.phase, cells=30)} adds {numbers.multiple(row.match)}."
            for row in rows
            if row.match is not None
        ]
    if len(grown) > _ROWS:
        said.append(f"and {len(grown) - _ROWS} more")
    return lines + paragraphs(said, screen.measure)


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
