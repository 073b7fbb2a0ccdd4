"""Bytes as lines, several times faster than by a Python string for each."""

from __future__ import annotations

import io

from memdiag.recording.lazy_polars import pl


def raw_lines(raw: bytes) -> pl.Series:
    """The lines of a text, packed with zstd or gzip or not, that holds no byte 1; blank ones may be
    missing at its end. What is no UTF-8 is replaced. Raises PolarsError where there is no line.
    """
    frame = pl.read_csv(
        io.BytesIO(raw),
        has_header=False,
        separator="\x01",
        quote_char=None,
        infer_schema=False,
        encoding="utf8-lossy",
    )
    return frame.to_series(0).fill_null("")
