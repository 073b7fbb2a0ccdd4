"""Several recordings together: one line each, failures, and the verdict on all of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from memdiag.report.sections import headline
from memdiag.report.text import numbers, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import INDENT, Column, Columns, joined, paragraph
from memdiag.values.findings import Diagnosis, Failure, RecordingFinding
from memdiag.values.verdict import Verdict

_ORDER = (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE)


def table(recordings: Sequence[RecordingFinding], screen: Screen) -> list[Text]:
    """A line for each recording, leaks first, otherwise in the order given.

    Where the line is too long, the directory that all have in common is named once, then
    names lose their middle.
    """
    order = sorted(recordings, key=lambda found: _ORDER.index(found.verdict))
    shared = _shared_directory([found.source for found in order])
    for cells, sure in ((60, True), (40, True), (32, True), (24, True), (18, False)):
        columns = _table(order, shared, screen, source_cells=cells, sure=sure)
        if columns.width <= screen.measure:
            break
    return columns.lines()


def _table(
    order: Sequence[RecordingFinding],
    shared: str,
    screen: Screen,
    *,
    source_cells: int,
    sure: bool,
) -> Columns:
    place = f" in {screen.show(shared, cells=max(8, source_cells - 13))}" if shared else ""
    columns = [Column(title="verdict")]
    columns += [Column(title="sure", right=True)] * sure
    columns += [Column(title=f"recording{place}"), Column(title="finding")]
    rows = []
    for found in order:
        bold = "bold " if found.verdict is Verdict.LEAK else ""
        row = [Text(wording.VERDICTS[found.verdict], f"{bold}{wording.STYLES[found.verdict]}")]
        doubt = found.verdict is Verdict.INCONCLUSIVE
        row += [Text("-" if doubt else numbers.sureness(found.confidence))] * sure
        row += [Text(screen.show(found.source.removeprefix(shared), cells=source_cells))]
        row += [Text(headline.gist(found))]
        rows.append(row)
    return Columns(columns=columns, rows=rows, gap=2)


def _shared_directory(sources: Sequence[str]) -> str:
    """The directories that all sources begin with, up to the last slash."""
    directories = [source.split("/")[:-1] for source in sources]
    levels = itertools.takewhile(
        lambda names: len(set(names)) == 1, zip(*directories, strict=False)
    )
    return "".join(f"{names[0]}/" for names in levels)


def failures(failed: Sequence[Failure], screen: Screen) -> list[Text]:
    """What could not be analysed, each with what to try."""
    lines: list[Text] = []
    for failure in failed:
        title = Text(" " * INDENT)
        title.append("FAILED", "bold red")
        title.append(f"  {screen.show(failure.source, cells=screen.measure - 10)}", "bold")
        lines.append(title)
        message = failure.message.removeprefix(f"{failure.source}: ")
        lines += paragraph(series_names.stopped(message, screen), screen.measure)
        if failure.remedy:
            lines += paragraph(screen.show(failure.remedy), screen.measure, lead="Try:", hanging=5)
    return lines


def overall(diagnosis: Diagnosis, screen: Screen) -> list[Text]:
    """The last line: the verdict on everything, and how it is made up."""
    counts = Counter(found.verdict for found in diagnosis.recordings)
    parts = [f"{counts[v]:,} {wording.VERDICTS[v].lower()}" for v in _ORDER if counts[v]]
    if diagnosis.failures:
        parts.append(f"{len(diagnosis.failures):,} not analysed")
    verdict = wording.VERDICTS[diagnosis.verdict] if diagnosis.recordings else "no verdict"
    text = f"{verdict} ({joined(parts)})" if parts else verdict
    lines = paragraph(text, screen.measure, lead="Overall:", hanging=2)
    style = wording.STYLES[diagnosis.verdict] if diagnosis.recordings else "red"
    start = INDENT + len("Overall: ")
    lines[0].stylize(f"bold {style}", start, start + len(verdict))
    return lines
