"""Logs that tests write, and what is read from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memdiag.recording.read import read
from memdiag.recording.read_options import ReadOptions
from memdiag.values.measurements import Recording, Series


def read_log(
    folder: Path, content: str | bytes | Sequence[str], name: str = "log", **options: object
) -> Recording:
    """The recording of a file with this content: text, bytes or lines."""
    if not isinstance(content, (str, bytes)):
        content = "".join(f"{line}\n" for line in content)
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(str(path), ReadOptions(**options))  # type: ignore[arg-type]


def series_of(recording: Recording, metric: str, process: str | None = None) -> Series:
    """The first series of a metric, of the process if one is given."""
    return next(
        series
        for series in recording.series
        if series.metric == metric and process in (None, series.process)
    )
