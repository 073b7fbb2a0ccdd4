"""`memray stats`, as text or JSON: one summary per run; several runs make a series."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from memdiag.errors import ReadError
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.table import Table
from memdiag.values import units

# "Peak memory usage:" came with memray 1.13. Before, the text has only the sum of all allocations.
_TEXT = re.compile(r"Total allocations:\s*\n\s*[0-9,]+\s*\n")
_PEAK = re.compile(r"Peak memory usage:\s*\n\s*([0-9.]+)\s*([kMGT]?i?B)")
_JSON = re.compile(r'\{\s*"total_num_allocations"')
_MOST_BYTES = 64 << 20


def is_stats(source: Source) -> bool:
    """Return True if the head has a summary."""
    return _is_json(source) or _TEXT.search(source.head()) is not None


def _is_json(source: Source) -> bool:
    return _JSON.match(source.head().lstrip()) is not None


def read_stats(source: Source) -> Table:
    """The peak of each summary, in their order. Raises ReadError for a single one."""
    text = source.first_bytes(_MOST_BYTES).decode("utf-8", errors="replace")
    peaks = list(_json_peaks(text) if _is_json(source) else _text_peaks(text))
    if len(peaks) < 2:
        raise ReadError(
            "memray's summary of one run holds no memory over time",
            source=source.name,
            remedy="record the run with memdiag run; or put the summaries of several runs below "
            "each other: for run in *.bin; do memray stats $run; done > stats.txt",
        )
    runs = range(len(peaks))
    return Table.of(pl.DataFrame({"run": runs, "peak memory (bytes)": peaks}))


def _text_peaks(text: str) -> Iterator[float]:
    for number, unit in _PEAK.findall(text):
        yield float(number) * float(units.bytes_per_unit(unit) or 1)


def _json_peaks(text: str) -> Iterator[float]:
    decoder, at = json.JSONDecoder(), 0
    while (found := _JSON.search(text, at)) is not None:
        try:
            summary, at = decoder.raw_decode(text, found.start())
            yield float(summary["metadata"]["peak_memory"])
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            at = max(at, found.end())
