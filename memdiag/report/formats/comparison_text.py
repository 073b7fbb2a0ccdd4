"""The report of a comparison for a terminal: effect, table, both curves, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from memdiag.report.formats import comparison_wording
from memdiag.report.formats.terminal import laid_out
from memdiag.report.plotting.plot import Plot, behind_stroke, draw
from memdiag.report.sections import recordings_table
from memdiag.report.text import series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import INDENT, Column, Columns, paragraph
from memdiag.values.comparison import Comparison, Effect, SeriesComparison
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from rich.console import Group

# Runs of one side that are named; the others are counted.
_NAMED = 3
_OTHER_SERIES = 8


def render(compared: Comparison, *, width: int, ascii_only: bool = False) -> Group:
    """The whole report as lines for `console.print`; `width` as in `terminal.render`."""
    screen = Screen(width=width, ascii_only=ascii_only)
    found = compared.deciding
    blocks = [_top(compared, found, screen)]
    if found is not None:
        blocks += [_table(found, screen), _plot(found, screen), _others(compared, screen)]
    blocks += [
        _notes(compared, screen),
        _next(compared, screen),
        recordings_table.failures(compared.failures, screen),
    ]
    return laid_out(blocks, screen)


def _top(compared: Comparison, found: SeriesComparison | None, screen: Screen) -> list[Text]:
    style = comparison_wording.STYLES[compared.effect]
    badge = Text(f" {comparison_wording.EFFECTS[compared.effect]} ", f"bold reverse {style}")
    text = "they have no series in common" if found is None else comparison_wording.gist(found)
    head = paragraph(text, screen.measure - badge.cell_len - 2)
    lines = []
    for at, line in enumerate(head):
        start = Text(" " * INDENT) + badge if at == 0 else Text(" " * (INDENT + badge.cell_len))
        lines.append(start + Text(" ") + Text(line.plain, "bold"))
    if found is None:
        return lines
    runs = [_runs(compared.base, screen), _runs(compared.candidate, screen)]
    subject = f"{series_names.opening(found, screen)}, {runs[0]} against {runs[1]}"
    lines += paragraph(series_names.stopped(subject, screen), screen.measure)
    shown = comparison_wording.would_have_shown(found, screen)
    return lines + paragraph(
        f"{comparison_wording.GROUNDS[found.why]} {shown}".rstrip(), screen.measure
    )


def _runs(sources: Sequence[str], screen: Screen) -> str:
    names = [screen.show(source, cells=screen.measure // 2) for source in sources[:_NAMED]]
    more = len(sources) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How much the table says."""

    margins: bool
    smallest: bool


_FORMS = (
    _Form(margins=True, smallest=True),
    _Form(margins=True, smallest=False),
    _Form(margins=False, smallest=True),
    _Form(margins=False, smallest=False),
)


def _table(found: SeriesComparison, screen: Screen) -> list[Text]:
    if not found.differences:
        return []
    for form in _FORMS:
        columns = _columns(found, screen, form)
        if columns.width <= screen.measure:
            break
    return columns.lines()


def _columns(found: SeriesComparison, screen: Screen, form: _Form) -> Columns:
    titles = ["before", "after", "change"] + ["would have shown"] * form.smallest
    columns = [Column(title=""), *(Column(title=title, right=True) for title in titles)]
    rows = []
    for at, by in enumerate(found.differences):
        style = "bold" if at == found.decided_by else ""
        cells = [comparison_wording.measure(found, by)]
        cells += [
            comparison_wording.estimate(found, by, of, screen, margin=form.margins)
            for of in (by.base, by.candidate, by.change)
        ]
        smallest = comparison_wording.shown(found, by, by.smallest_effect)
        cells += [smallest.split(" per ")[0]] * form.smallest
        rows.append([Text(cell, style) for cell in cells])
    return Columns(columns=columns, rows=rows)


def _plot(found: SeriesComparison, screen: Screen) -> list[Text]:
    drawing = Plot(
        trace=found.trace_candidate,
        behind=found.trace_base,
        unit=found.unit,
        axis=found.axis.kind,
        axis_word=wording.axis(found.axis),
    )
    lines = draw(drawing, screen.measure, ascii_only=screen.ascii_only)
    if not lines:
        return []
    legend = f"{behind_stroke(screen.ascii_only) * 3} before   line: after"
    return paragraph(legend, screen.measure) + lines


def _others(compared: Comparison, screen: Screen) -> list[Text]:
    """The other series, a line each."""
    rest = [s for at, s in enumerate(compared.series) if at != compared.decided_by]
    if not rest:
        return []
    order = list(Effect)
    rest.sort(key=lambda s: order.index(s.effect))
    columns = [Column(title="other series"), Column(title="before"), Column(title="after")]
    columns += [Column(title="effect")]
    rows = [
        [
            Text(screen.show(series_names.series(s, screen), cells=30)),
            Text(_verdicts(s.base_verdicts)),
            Text(_verdicts(s.candidate_verdicts)),
            Text(comparison_wording.EFFECTS[s.effect].lower(), comparison_wording.STYLES[s.effect]),
        ]
        for s in rest[:_OTHER_SERIES]
    ]
    lines = Columns(columns=columns, rows=rows).lines()
    more = len(rest) - _OTHER_SERIES
    return lines + (paragraph(f"and {more} more series", screen.measure) if more > 0 else [])


def _verdicts(found: Sequence[Verdict]) -> str:
    return ", ".join(dict.fromkeys(wording.VERDICTS[verdict].lower() for verdict in found))


def _notes(compared: Comparison, screen: Screen) -> list[Text]:
    lines: list[Text] = []
    for note in compared.notes:
        lines += paragraph(
            series_names.stopped(note, screen), screen.measure, lead="Note:", hanging=2
        )
    return lines


def _next(compared: Comparison, screen: Screen) -> list[Text]:
    lines: list[Text] = []
    for text in comparison_wording.next_steps(compared):
        lines += paragraph(text, screen.measure, lead="Next:", hanging=len("Next: "))
    return lines
