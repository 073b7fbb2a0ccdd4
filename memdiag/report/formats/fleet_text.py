"""Many recordings in a screen: the number of each verdict, the worst, and what is new."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from memdiag.report.sections import group_text
from memdiag.report.sections.recordings_table import shared_directory
from memdiag.report.sections.series_table import ORDER
from memdiag.report.text import numbers, rates, text_layout, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, first_fitting, joined, labeled
from memdiag.values.fleet import FleetSummary, Growing
from memdiag.values.verdict import Reason, Verdict

_CELLS = (60, 40, 32, 24, 16)
_REASONS = 4
_ERROR = "error"


def render(summary: FleetSummary, *, width: int, ascii_only: bool = False) -> Group:
    """The summary as lines of at most `width` cells."""
    screen = Screen(width=width, ascii_only=ascii_only)
    stroke = "-" if ascii_only else "─"
    lines = [text_layout.rule("memdiag", screen.measure, stroke), *_counts(summary, screen)]
    if summary.worst:
        lines += [Text(), *_worst(summary, screen)]
    if summary.groups:
        lines += [Text(), *group_text.lines(summary, screen)]
    if summary.failures:
        lines += [Text(), *_failures(summary, screen)]
    return Group(*lines, Text(), overall(summary))


def overall(summary: FleetSummary) -> Text:
    """The last line: the worst verdict, and the number of each."""
    line = Text("memdiag: ")
    worst = next((v for v in _BY_BADNESS if _any(summary, v)), None)
    if worst is not None:
        line.append(worst.name, f"bold {wording.STYLES[worst]}")
        line.append(" ")
    return line.append(f"({joined(_parts(summary)) or 'no recordings'})")


def _any(summary: FleetSummary, verdict: Verdict) -> bool:
    of_job = verdict is Verdict.LEAK and bool(summary.groups.get(verdict.value))
    return of_job or bool(summary.counts.get(verdict.value))


_BY_BADNESS = (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE)


def _parts(summary: FleetSummary) -> list[str]:
    counts = summary.counts
    parts = [f"{counts[v.value]:,} {v.value}" for v in ORDER if counts.get(v.value)]
    if counts.get(_ERROR):
        parts.append(f"{counts[_ERROR]:,} not analyzed")
    return parts


def _counts(summary: FleetSummary, screen: Screen) -> list[Text]:
    total, width = summary.recordings, screen.measure
    shares = [
        f"{summary.counts[v.value]:,} {v.name} ({numbers.share(summary.counts[v.value] / total)})"
        for v in ORDER
        if summary.counts.get(v.value)
    ]
    rows = [("found", f"{_counted(total)}: {joined(shares)}." if shares else f"{_counted(total)}.")]
    if summary.is_first:
        new = ""
    elif summary.judged == 0:
        new = "Nothing is new or changed since the last time."
    else:
        new = (
            f"{_counted(summary.judged)} new or changed since the last time: "
            f"{_counted(summary.new_leaks, 'leak')} more, {summary.ended_leaks:,} fewer."
        )
    rows += [("new", new)] if new else []
    open_ = summary.counts.get(Verdict.INCONCLUSIVE.value, 0)
    if open_:
        reasons = [
            f"{count:,} {wording.REASONS[Reason(why)]}"
            for why, count in list(summary.inconclusive.items())[:_REASONS]
        ]
        rows.append(("open", f"{numbers.share(open_ / total)} inconclusive: {'; '.join(reasons)}."))
    return [line for label, text in rows for line in labeled(label, text, width, most_lines=3)]


def _counted(number: int, what: str = "recording") -> str:
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def _worst(summary: FleetSummary, screen: Screen) -> list[Text]:
    tables = (_table(summary.worst, screen, cells) for cells in _CELLS)
    return first_fitting(tables, screen.measure)


def _table(worst: tuple[Growing, ...], screen: Screen, cells: int) -> list[Text]:
    shared = shared_directory([one.path for one in worst])
    place = f" in {screen.show(shared, cells=max(8, cells - 13))}" if shared else ""
    names = [screen.show(one.path.removeprefix(shared), cells=cells) for one in worst]
    columns = [
        Column(f"worst{place}", [Text(name) for name in names]),
        Column("series", [Text(_series(one, screen)) for one in worst]),
        Column("growth", [Text(_growth(one)) for one in worst]),
    ]
    if any(one.limit_name for one in worst):
        columns.append(Column("limit", [Text(_limit(one, screen)) for one in worst]))
    if any(one.is_new for one in worst) and not all(one.is_new for one in worst):
        columns.append(Column("", [Text("new" if one.is_new else "", "bold") for one in worst]))
    return text_layout.table(columns, gap=2)


def _series(one: Growing, screen: Screen) -> str:
    metric = one.metric.removesuffix("_bytes")
    return screen.show(f"{one.process} {metric}".strip(), cells=28)


def _growth(one: Growing) -> str:
    growth = one.growth_per_x
    return "-" if growth is None else rates.brief(growth, one.axis, one.unit)


def _limit(one: Growing, screen: Screen) -> str:
    if not one.limit_name:
        return "-"
    name = screen.show(one.limit_name, cells=20)
    return name if one.limit_in_s is None else f"{name} in {numbers.duration(one.limit_in_s)}"


def _failures(summary: FleetSummary, screen: Screen) -> list[Text]:
    failed = summary.counts.get(_ERROR, 0)
    texts = [f"{screen.show(path, cells=60)}: {screen.show(why)}" for path, why in summary.failures]
    if failed > len(texts):
        texts.append(f"{failed - len(texts):,} more, in the column error of --results.")
    return text_layout.paragraphs(texts, screen.measure, lead="not analyzed:")
