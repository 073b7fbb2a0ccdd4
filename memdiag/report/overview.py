"""Several recordings together: one line each, failures, and the verdict on all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from memdiag.findings import Diagnosis, Failure, RecordingFinding, Verdict
from memdiag.report import headline, naming, numbers, words
from memdiag.report.layout import INDENT, Column, Columns, joined, paragraph
from memdiag.report.screen import Screen

_ORDER = (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE)
_LEAST_SOURCE_CELLS = 16


def table(recordings: Sequence[RecordingFinding], screen: Screen) -> list[Text]:
    """A line for each recording, leaks first, otherwise in the order given."""
    order = sorted(recordings, key=lambda found: _ORDER.index(found.verdict))
    wide = _table(order, screen, source_cells=screen.measure)
    if wide.width <= screen.measure:
        return wide.lines()
    longest = max(len(screen.show(found.source)) for found in order)
    excess = wide.width - screen.measure
    cells = max(_LEAST_SOURCE_CELLS, min(longest, screen.measure) - excess)
    narrow = _table(order, screen, source_cells=cells)
    lines = narrow.lines()
    for line in lines:
        line.truncate(screen.measure, overflow="crop")
        line.rstrip()
    return lines


def _table(order: Sequence[RecordingFinding], screen: Screen, *, source_cells: int) -> Columns:
    rows = []
    for found in order:
        style = words.STYLES[found.verdict]
        bold = "bold " if found.verdict is Verdict.LEAK else ""
        rows.append(
            [
                Text(words.VERDICTS[found.verdict], f"{bold}{style}"),
                Text(numbers.sureness(found.confidence)),
                Text(screen.show(found.source, cells=source_cells)),
                Text(headline.summary(found, screen)),
            ]
        )
    columns = [
        Column(title="verdict"),
        Column(title="sure", right=True),
        Column(title="recording"),
        Column(title="finding"),
    ]
    return Columns(columns=columns, rows=rows, gap=2)


def failures(failed: Sequence[Failure], screen: Screen) -> list[Text]:
    """What could not be analysed, each with what to try."""
    lines: list[Text] = []
    for failure in failed:
        title = Text(" " * INDENT)
        title.append("FAILED", "bold red")
        title.append(f"  {screen.show(failure.source, cells=screen.measure - 10)}", "bold")
        lines.append(title)
        lines += paragraph(screen.show(failure.message), screen.measure)
        if failure.remedy:
            lines += paragraph(screen.show(failure.remedy), screen.measure, lead="Try:", hanging=5)
    return lines


def overall(diagnosis: Diagnosis, screen: Screen) -> list[Text]:
    """The last line: the verdict on everything, and how it is made up."""
    counts = Counter(found.verdict for found in diagnosis.recordings)
    parts = [f"{counts[v]:,} {words.VERDICTS[v].lower()}" for v in _ORDER if counts[v]]
    if diagnosis.failures:
        parts.append(f"{len(diagnosis.failures):,} not analysed")
    total = naming.counted(len(diagnosis.recordings) + len(diagnosis.failures), "recording")
    verdict = words.VERDICTS[diagnosis.verdict] if diagnosis.recordings else "no verdict"
    [*lines] = paragraph(f"{verdict}   {total}: {joined(parts)}", screen.measure, lead="Overall:")
    start = INDENT + len("Overall: ")
    style = words.STYLES[diagnosis.verdict] if diagnosis.recordings else "red"
    lines[0].stylize(f"bold {style}", start, start + len(verdict))
    return lines
