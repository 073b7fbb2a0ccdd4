"""The report of a comparison for a terminal: effect, table, both curves, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from memdiag.report.formats import comparison_wording
from memdiag.report.formats.terminal import laid_out, rule
from memdiag.report.picture.of_comparison import of_comparison
from memdiag.report.plotting.plot import behind_stroke, draw
from memdiag.report.sections import evidence_and_notes
from memdiag.report.text import series_names, text_layout
from memdiag.report.text.screen import Detail, Screen
from memdiag.report.text.text_layout import Column, badge, first_fitting, paragraph
from memdiag.values.comparison import Comparison, Effect, SeriesComparison
from memdiag.values.findings import Interval

if TYPE_CHECKING:
    from rich.console import Group

# Runs of one side that are named; the others are counted.
_NAMED = 3
_OTHER_SERIES = 8


def render(
    compared: Comparison,
    *,
    width: int,
    ascii_only: bool = False,
    detail: Detail = Detail.FACTS,
) -> Group:
    """The whole report as lines for `console.print`; the parameters as in `terminal.render`."""
    screen = Screen(width=width, ascii_only=ascii_only)
    found = compared.deciding
    last = [_last(compared, found, screen)]
    if detail is Detail.VERDICT:
        return laid_out([last], screen)
    blocks = [[rule("memdiag", screen), *_top(compared, found, screen)]]
    if found is not None:
        blocks.append(_table(found, screen))
    if found is not None and detail > Detail.FACTS:
        blocks += [_plot(found, screen), _others(compared, screen)]
    if found is None or detail > Detail.FACTS:
        blocks.append(evidence_and_notes.notes(compared.notes, screen))
    step = comparison_wording.next_step(compared)
    facts = text_layout.labeled("next", step, screen.measure, most_lines=4)
    hidden = len(compared.series) - 1
    if detail is Detail.FACTS and hidden > 0:
        more = f"{hidden:,} more series (-v)"
        facts += text_layout.labeled("more", more, screen.measure, most_lines=1)
    return laid_out([*blocks, facts, last], screen)


def _last(compared: Comparison, found: SeriesComparison | None, screen: Screen) -> Text:
    """The effect again, and what was compared."""
    text = "" if found is None else f" {comparison_wording.gist(found)}"
    line = Text("memdiag: ")
    effect = comparison_wording.name(compared.effect)
    line.append(effect, f"bold {comparison_wording.STYLES[compared.effect]}")
    sides = f"{_runs(compared.base, screen)} -> {_runs(compared.candidate, screen)}"
    whole = f"{text} {'-' if screen.ascii_only else '·'} {sides}"
    return line.append(whole if line.cell_len + cell_len(whole) <= screen.measure else text)


def _top(compared: Comparison, found: SeriesComparison | None, screen: Screen) -> list[Text]:
    effect, style = comparison_wording.name(compared.effect), comparison_wording.STYLES
    text = "no series in common" if found is None else comparison_wording.gist(found)
    lines = badge(effect, style[compared.effect], text, screen.measure)
    if found is None:
        return lines
    runs = [_runs(compared.base, screen), _runs(compared.candidate, screen)]
    subject = f"{series_names.opening(found, screen)}, {runs[0]} against {runs[1]}"
    lines += paragraph(series_names.stopped(subject, screen), screen.measure)
    smallest = comparison_wording.smallest_detectable(found)
    grounds = f"{comparison_wording.GROUNDS[found.why]} {smallest}"
    return lines + paragraph(grounds, screen.measure)


def _runs(sources: Sequence[str], screen: Screen) -> str:
    shown = map(comparison_wording.run, sources[:_NAMED])
    names = [screen.show(name, cells=screen.measure // 2) for name in shown]
    more = len(sources) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _table(found: SeriesComparison, screen: Screen) -> list[Text]:
    if not found.differences:
        return []
    forms = [(margins, smallest) for margins in (True, False) for smallest in (True, False)]
    return first_fitting((_drawn(found, screen, *form) for form in forms), screen.measure)


def _drawn(found: SeriesComparison, screen: Screen, margins: bool, smallest: bool) -> list[Text]:
    """The table with or without intervals and smallest detectable changes."""

    def column(title: str, texts: Sequence[str]) -> Column:
        styles = ["bold" if at == found.decided_by else "" for at in range(len(texts))]
        return Column(title, [*map(Text, texts, styles)], right=bool(title))

    def values(of: Sequence[Interval]) -> list[str]:
        return [
            comparison_wording.estimate(found, by, one, screen, margin=margins)
            for by, one in zip(found.differences, of, strict=True)
        ]

    measures = [comparison_wording.measure(found, by) for by in found.differences]
    columns = [
        column("", measures),
        column("before", values([by.base for by in found.differences])),
        column("after", values([by.candidate for by in found.differences])),
        column("change", values([by.change for by in found.differences])),
    ]
    if smallest:
        least = [
            comparison_wording.shown(found, by, by.smallest_effect) for by in found.differences
        ]
        columns.append(column("detectable", [text.split(" per ")[0] for text in least]))
    return text_layout.table(columns)


def _plot(found: SeriesComparison, screen: Screen) -> list[Text]:
    lines = draw(of_comparison(found), screen.measure, ascii_only=screen.ascii_only)
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
    shown = rest[:_OTHER_SERIES]
    names = [screen.show(series_names.series(s, screen), cells=30) for s in shown]
    effects = [
        Text(comparison_wording.name(s.effect).lower(), comparison_wording.STYLES[s.effect])
        for s in shown
    ]
    columns = [
        Column("other series", [Text(name) for name in names]),
        Column("before", [Text(comparison_wording.verdicts(s.base_verdicts)) for s in shown]),
        Column("after", [Text(comparison_wording.verdicts(s.candidate_verdicts)) for s in shown]),
        Column("effect", effects),
    ]
    lines = text_layout.table(columns)
    more = len(rest) - _OTHER_SERIES
    return lines + (paragraph(f"and {more} more series", screen.measure) if more > 0 else [])
