"""The report for a terminal: verdict, reason, plot, tables, and what to do.

`render` returns a value that rich prints; it never prints. Everything is plain Text with styles:
names from outside are never read as markup, and all of them are made printable.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group
from rich.text import Text

from memdiag.report.plotting.annotations import plot
from memdiag.report.sections import (
    advice,
    arguments,
    budgets,
    capacity,
    evidence_and_notes,
    exit_cause,
    forecast,
    headline,
    phase_table,
    recordings_table,
    series_table,
    threshold_events,
)
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import INDENT, paragraph
from memdiag.values.findings import Diagnosis, RecordingFinding

# More recordings than this are shown with one line each.
_IN_FULL = 3


def render(
    diagnosis: Diagnosis,
    *,
    width: int,
    ascii_only: bool = False,
    why: bool = False,
) -> Group:
    """The whole report as lines for `console.print`.

    width: cells of a line; below 40 the report stays 40 wide, above 100 it stays 100 wide.
    ascii_only: only ASCII characters.
    why: show the arguments for and against each verdict instead of plot, tables and advice.
    """
    screen = Screen(width=width, ascii_only=ascii_only)
    blocks: list[list[Text]] = []
    are_many = len(diagnosis.recordings) > _IN_FULL
    if are_many:
        blocks.append(recordings_table.table(diagnosis.recordings, screen))
        blocks.append(budgets.of_many(diagnosis.recordings, screen))
    if why or not are_many:
        for at, found in enumerate(diagnosis.recordings):
            blocks += [_rule(screen)] if at or are_many else []
            blocks += _reasons(found, screen) if why else _recording(found, screen)
    blocks.append(recordings_table.failures(diagnosis.failures, screen))
    if len(diagnosis.recordings) + len(diagnosis.failures) != 1:
        blocks.append(recordings_table.overall(diagnosis, screen))
    return laid_out(blocks, screen)


def laid_out(blocks: Iterable[list[Text]], screen: Screen) -> Group:
    """The lines of all blocks, a blank line between two."""
    lines: list[Text] = []
    for block in filter(None, blocks):
        lines += [Text(), *block] if lines else block
    return Group(*(_fitted(line, screen) for line in lines))


def _rule(screen: Screen) -> list[Text]:
    stroke = "-" if screen.ascii_only else "─"
    return [Text(" " * INDENT + stroke * (screen.measure - INDENT))]


def _reasons(found: RecordingFinding, screen: Screen) -> list[list[Text]]:
    """The blocks of one recording with its arguments."""
    return [
        _top(found, screen),
        budgets.lines(found, screen),
        *arguments.blocks(found, screen),
        evidence_and_notes.closing(found, screen),
    ]


def _top(found: RecordingFinding, screen: Screen) -> list[Text]:
    """Verdict, source and what happened."""
    top = headline.line(found, screen) + paragraph(headline.subject(found, screen), screen.measure)
    finding = found.deciding
    if finding is None:
        return top
    return top + paragraph(headline.story(finding, screen), screen.measure)


def _recording(found: RecordingFinding, screen: Screen) -> list[list[Text]]:
    """The blocks of one recording's full report."""
    top, closing = _top(found, screen), evidence_and_notes.closing(found, screen)
    finding = found.deciding
    held, is_over = budgets.lines(found, screen), exit_cause.is_out_of_memory(found)
    if finding is None:
        return [top, held, closing, advice.lines(found, screen)]
    return [
        top,
        held,
        plot(finding, screen),
        series_table.table(found, screen),
        phase_table.table(finding, screen),
        evidence_and_notes.evidence(found, screen)
        + forecast.lines(finding, screen, is_over=is_over)
        + ([] if is_over else forecast.first_elsewhere(found, screen))
        + capacity.lines(found, screen),
        threshold_events.lines(found, screen),
        closing,
        advice.lines(found, screen),
    ]


def _fitted(line: Text, screen: Screen) -> Text:
    """The line without further wrapping; its end is left out if it is too long."""
    line.no_wrap, line.overflow = True, "ignore"
    if line.cell_len > screen.measure:
        line.truncate(screen.measure - len(screen.ellipsis), overflow="crop")
        line.rstrip()
        line.append(screen.ellipsis)
    return line
