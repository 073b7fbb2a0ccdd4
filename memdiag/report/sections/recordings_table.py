"""Several recordings: a line each, failures, and the verdict on all of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from memdiag.report.sections import headline
from memdiag.report.sections.series_table import ORDER
from memdiag.report.text import numbers, text_layout, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import Column, first_fitting, joined
from memdiag.values.findings import Diagnosis, RecordingFinding
from memdiag.values.verdict import Verdict

# Most cells of a source, and whether the confidence is shown: the first that fits is taken.
_FORMS = ((60, True), (40, True), (32, True), (24, True), (18, False))


def table(recordings: Sequence[RecordingFinding], screen: Screen) -> list[Text]:
    """A line for each recording, leaks first, otherwise in the order given.

    The title names the directory that all have in common. If lines are too long, names lose their
    middle.
    """
    order = sorted(recordings, key=lambda found: ORDER.index(found.verdict))
    tables = (_table(order, screen, cells, confidence) for cells, confidence in _FORMS)
    return first_fitting(tables, screen.measure)


def _table(
    order: Sequence[RecordingFinding], screen: Screen, cells: int, confidence: bool
) -> list[Text]:
    shared = shared_directory([found.source for found in order])
    place = f" in {screen.show(shared, cells=max(8, cells - 13))}" if shared else ""
    names = [screen.show(found.source.removeprefix(shared), cells=cells) for found in order]
    columns = [Column("verdict", [_verdict(found) for found in order])]
    if confidence:
        columns.append(Column("confidence", [_confidence(found) for found in order], right=True))
    columns.append(Column(f"recording{place}", [Text(name) for name in names]))
    columns.append(Column("finding", [Text(headline.gist(found)) for found in order]))
    return text_layout.table(columns, gap=2)


def _verdict(found: RecordingFinding) -> Text:
    bold = "bold " if found.verdict is Verdict.LEAK else ""
    return Text(found.verdict.name, f"{bold}{wording.STYLES[found.verdict]}")


def _confidence(found: RecordingFinding) -> Text:
    inconclusive = found.verdict is Verdict.INCONCLUSIVE
    return Text("-" if inconclusive else numbers.confidence(found.confidence))


def shared_directory(sources: Sequence[str]) -> str:
    """The directories that all sources begin with, up to the last slash."""
    directories = [source.split("/")[:-1] for source in sources]
    levels = itertools.takewhile(
        lambda names: len(set(names)) == 1, zip(*directories, strict=False)
    )
    return "".join(f"{names[0]}/" for names in levels)


def overall(diagnosis: Diagnosis, screen: Screen) -> Text:
    """The last line: the verdict on everything, and the number of each verdict."""
    counts = Counter(found.verdict for found in diagnosis.recordings)
    parts = [f"{counts[v]:,} {v.name.lower()}" for v in ORDER if counts[v]]
    if diagnosis.failures:
        parts.append(f"{len(diagnosis.failures):,} not analyzed")
    line = Text("memdiag: ")
    line.append(diagnosis.verdict.name, f"bold {wording.STYLES[diagnosis.verdict]}")
    return line.append(f" ({joined(parts)})")
