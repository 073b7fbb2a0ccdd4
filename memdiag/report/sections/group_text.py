"""Jobs of several recordings: which of them leak, and which of their ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memdiag.report.sections.series_table import ORDER
from memdiag.report.text import numbers, rates, text_layout
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import joined, labeled
from memdiag.values.fleet import FleetSummary
from memdiag.values.groups import GroupFinding, GroupKind

if TYPE_CHECKING:
    from rich.text import Text

_CELLS, _NAMED = 40, 8
_KINDS = {
    GroupKind.ALL: "all ranks leak at the same rate: look at the code",
    GroupKind.ALL_DIFFER: "all ranks leak, at different rates: look at what each is given",
    GroupKind.ONE: "rank {ranks} alone leaks: look at its data and its hardware",
    GroupKind.FIRST: "rank 0 alone leaks: look at logging, checkpoints and evaluation",
    GroupKind.NODE: "ranks {ranks} leak, which are those of one node",
    GroupKind.SOME: "ranks {ranks} leak",
}


def lines(summary: FleetSummary, screen: Screen) -> list[Text]:
    """The number of jobs of each verdict, and the jobs that leak."""
    total = sum(summary.groups.values())
    counts = [f"{summary.groups[v.value]:,} {v.name}" for v in ORDER if summary.groups.get(v.value)]
    counted = "1 job" if total == 1 else f"{total:,} jobs"
    found = labeled("jobs", f"{counted}: {joined(counts)}.", screen.measure, most_lines=2)
    for one in summary.leaking_groups:
        found += text_layout.paragraph(
            finding(one, screen), screen.measure, lead=f"{screen.show(one.group, cells=_CELLS)}:"
        )
    return found


def finding(one: GroupFinding, screen: Screen) -> str:
    """`rank 3 alone leaks: ..., RSS +2 MB per step. First limit: ...`."""
    ranks = ", ".join(one.leaking[:_NAMED])
    more = f" and {len(one.leaking) - _NAMED:,} more" if len(one.leaking) > _NAMED else ""
    said = _KINDS[one.kind].format(ranks=screen.show(ranks) + more)
    metric = screen.show(one.metric.removesuffix("_bytes"), cells=28)
    parts = [f"{said}; {metric} {_rate(one)}"]
    if one.p_value is not None:
        parts[0] += f" ({numbers.probability(one.p_value)} over all ranks)"
    if one.limit_name:
        limit = f"rank {screen.show(one.limit_rank)} reaches {screen.show(one.limit_name)} first"
        left = "" if one.limit_in_s is None else f", in {numbers.duration(one.limit_in_s)}"
        parts.append(limit + left)
    for ranks_, words in ((one.missing, "no recording of"), (one.behind, "behind the others:")):
        if ranks_:
            parts.append(f"{words} {_ranks(ranks_, screen)}")
    if one.crowded:
        parts.append(f"other programs take memory of {screen.show(', '.join(one.crowded))}")
    return ". ".join(part[0].upper() + part[1:] for part in parts) + "."


def _ranks(ranks: tuple[str, ...], screen: Screen) -> str:
    shown = screen.show(", ".join(ranks[:_NAMED]))
    more = f" and {len(ranks) - _NAMED:,} more" if len(ranks) > _NAMED else ""
    return ("rank " if len(ranks) == 1 else "ranks ") + shown + more


def _rate(one: GroupFinding) -> str:
    growth = one.growth_per_x
    return "" if growth is None else rates.brief(growth, one.axis, one.unit)
