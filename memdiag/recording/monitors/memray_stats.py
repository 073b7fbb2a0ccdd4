"""`memray stats`, as text or JSON: one summary per run, so that only several are a series."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from memdiag.errors import UnreadableInput
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.table import Table
from memdiag.values import units

# "Peak memory usage:" came with memray 1.13; before it, text tells the total alone, which only
# adds up what was ever allocated.
_TEXT = re.compile(r"Total allocations:\s*\n\s*[0-9,]+\s*\n")
_PEAK = re.compile(r"Peak memory usage:\s*\n\s*([0-9.]+)\s*([kMGT]?i?B)")
_JSON = re.compile(r'\{\s*"total_num_allocations"')
_MOST_BYTES = 64 << 20


def read_stats(source: Source) -> Table | None:
    """The peak of each summary, in their order. Raises UnreadableInput for a single one."""
    head = source.head()
    in_json = _JSON.match(head.lstrip()) is not None
    if not in_json and _TEXT.search(head) is None:
        return None
    text = source.first_bytes(_MOST_BYTES).decode("utf-8", errors="replace")
    peaks = list(_json_peaks(text) if in_json else _text_peaks(text))
    if len(peaks) < 2:
        raise UnreadableInput(
            "memray's summary of one run holds no memory over time",
            source=source.name,
            remedy="record the run with memdiag run; or put the summaries of several runs below "
            "each other: for run in *.bin; do memray stats $run; done > stats.txt",
        )
    columns = (pl.Series(range(len(peaks))), pl.Series(peaks, dtype=pl.Float64))
    return Table(names=("run", "peak memory (bytes)"), columns=columns, first_line=None)


def _text_peaks(text: str) -> Iterator[float]:
    for figure, unit in _PEAK.findall(text):
        yield float(figure) * float(units.bytes_per_unit(unit) or 1)


def _json_peaks(text: str) -> Iterator[float]:
    decoder, at = json.JSONDecoder(), 0
    while (found := _JSON.search(text, at)) is not None:
        try:
            summary, at = decoder.raw_decode(text, found.start())
            yield float(summary["metadata"]["peak_memory"])
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            at = max(at, found.end())
