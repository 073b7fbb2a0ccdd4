"""The report for a terminal: the verdict, the facts in the order of their use, the verdict again.

`render` returns a value that rich prints; it never prints. Everything is plain Text with styles:
names from outside are never read as markup, and all of them are made printable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rich.console import Group
from rich.text import Text

from memdiag.report.picture.of_finding import of_finding
from memdiag.report.plotting.plot import draw
from memdiag.report.sections import (
    arguments,
    budgets,
    capacity,
    evidence_and_notes,
    exit_cause,
    facts,
    forecast,
    headline,
    in_memory,
    interventions,
    phase_table,
    recordings_table,
    series_table,
)
from memdiag.report.text import text_layout
from memdiag.report.text.screen import Detail, Screen
from memdiag.report.text.text_layout import paragraph
from memdiag.values.findings import Diagnosis, RecordingFinding
from memdiag.values.verdict import Verdict

# More recordings than this are shown with one line each.
_IN_FULL = 3
# The report on one recording fits on a screen of 24 lines; one with less to do is shorter.
_MOST_LINES = {
    Verdict.STABLE: 8,
    Verdict.WARMUP: 14,
    Verdict.LEAK: 24,
    Verdict.INCONCLUSIVE: 16,
}
_PICTURE_ROWS = 4
_CENSUS_LINES = 8


def render(
    diagnosis: Diagnosis,
    *,
    width: int,
    ascii_only: bool = False,
    detail: Detail = Detail.FACTS,
    why: bool = False,
    plot: bool = True,
) -> Group:
    """The whole report as lines for `console.print`.

    width: cells of a line; below 40 the report stays 40 wide, above 100 it stays 100 wide.
    ascii_only: only ASCII characters.
    why: show the arguments for and against each verdict instead of the facts.
    plot: False where a picture is beside the report.
    """
    screen = Screen(width=width, ascii_only=ascii_only)
    if detail is Detail.VERDICT:
        return Group(*_last(diagnosis, screen))
    blocks: list[list[Text]] = []
    are_many = len(diagnosis.recordings) > _IN_FULL
    if are_many:
        lines = recordings_table.table(diagnosis.recordings, screen)
        blocks += [[rule("memdiag", screen), *lines], budgets.of_many(diagnosis.recordings, screen)]
    if why or detail > Detail.FACTS or not are_many:
        for found in diagnosis.recordings:
            several = len(diagnosis.recordings) > 1
            title = screen.show(found.source, cells=screen.measure - 8) if several else "memdiag"
            head, *rest = (
                _reasons(found, screen) if why else _recording(found, screen, detail, plot)
            )
            blocks += [[rule(title, screen), *head], *rest]
    return laid_out([*blocks, _last(diagnosis, screen)], screen)


def _title(found: RecordingFinding, diagnosis: Diagnosis, screen: Screen) -> str:
    """The name of the recording, if there are several."""
    is_alone = len(diagnosis.recordings) == 1
    return "memdiag" if is_alone else screen.show(found.source, cells=screen.measure - 8)


def rule(title: str, screen: Screen) -> Text:
    """The line above a report."""
    return text_layout.rule(title, screen.measure, "-" if screen.ascii_only else "─")


def laid_out(blocks: Iterable[list[Text]], screen: Screen) -> Group:
    """The lines of all blocks, a blank line between two. The last line is never cut."""
    lines: list[Text] = []
    for block in filter(None, blocks):
        lines += [Text(), *block] if lines else block
    return Group(*(_fitted(line, screen) for line in lines[:-1]), *lines[-1:])


def _last(diagnosis: Diagnosis, screen: Screen) -> list[Text]:
    if len(diagnosis.recordings) == 1 and not diagnosis.failures:
        return [headline.last_line(diagnosis.recordings[0], screen)]
    return [recordings_table.overall(diagnosis, screen)] if diagnosis.recordings else []


def _reasons(found: RecordingFinding, screen: Screen) -> list[list[Text]]:
    """The blocks of one recording with its arguments."""
    return [
        headline.ending_line(found, screen) + headline.line(found, screen),
        budgets.lines(found, screen),
        *arguments.blocks(found, screen),
        evidence_and_notes.unmeasured(found, screen),
    ]


def _recording(
    found: RecordingFinding, screen: Screen, detail: Detail, plot: bool
) -> list[list[Text]]:
    """The blocks of one recording's report."""
    ended, top = headline.ending_line(found, screen), headline.line(found, screen)
    memory, freed = in_memory.lines(found, screen), interventions.lines(found, screen)
    if detail > Detail.FACTS:
        shown = facts.of(found, screen, is_alone=False)
        more = [*_details(found, screen, plot), freed, memory]
        more.append(evidence_and_notes.unmeasured(found, screen))
        if detail is Detail.ARGUMENTS:
            more += arguments.blocks(found, screen)
        return [ended + top, *facts.in_blocks(shown), *more]
    is_killed = in_memory.is_killed(found)
    shown = facts.of(found, screen, picture=_small_picture(found, screen) if plot else ())
    if is_killed and memory:
        shown.append(facts.Fact(lines=memory[:_CENSUS_LINES], rank=facts.Rank.CAUSE, is_block=True))
    most = _MOST_LINES[Verdict.LEAK if ended else found.verdict]
    if facts.is_notable(found):
        most = max(most, _MOST_LINES[Verdict.INCONCLUSIVE])
    # (Around the facts: the rule, two blank lines and the last line, which a terminal may wrap.)
    wrapped = headline.last_line(found, screen).cell_len // (screen.measure + 1)
    blocks = facts.fitting(shown, most - len(ended + top) - 4 - wrapped)
    return [ended + top, *blocks, freed, [] if is_killed else memory]


def _small_picture(found: RecordingFinding, screen: Screen) -> list[Text]:
    """A few rows, for verdicts that a shape explains."""
    finding = found.deciding
    if finding is None or found.verdict is Verdict.STABLE:
        return []
    picture = of_finding(finding, screen)
    bare = replace(picture, curves=tuple(replace(curve, marks=()) for curve in picture.curves))
    return draw(bare, screen.measure, ascii_only=screen.ascii_only, most_rows=_PICTURE_ROWS)


def _details(found: RecordingFinding, screen: Screen, plot: bool) -> list[list[Text]]:
    """What is behind the facts: the picture, all series, phases, evidence and forecasts."""
    finding = found.deciding
    if finding is None:
        return []
    is_over = exit_cause.is_out_of_memory(found)
    subject = paragraph(headline.subject(found, screen), screen.measure)
    picture = draw(of_finding(finding, screen), screen.measure, ascii_only=screen.ascii_only)
    dotted = paragraph(" ".join(headline.between(finding)), screen.measure)
    return [
        subject + dotted,
        picture if plot else [],
        series_table.table(found, screen),
        phase_table.table(finding, screen),
        evidence_and_notes.evidence(found, screen)
        + forecast.lines(finding, screen, is_over=is_over)
        + ([] if is_over else forecast.first_elsewhere(found, screen))
        + capacity.lines(found, screen),
    ]


def _fitted(line: Text, screen: Screen) -> Text:
    """The line without further wrapping; its end is left out if it is too long."""
    line.no_wrap, line.overflow = True, "ignore"
    if line.cell_len > screen.measure:
        line.truncate(screen.measure - len(screen.ellipsis), overflow="crop")
        line.rstrip()
        line.append(screen.ellipsis)
    return line
