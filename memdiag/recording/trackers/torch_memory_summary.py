"""`torch.cuda.memory_summary()`, printed repeatedly in a log."""

from __future__ import annotations

from memdiag.recording.inputs.lines import chunks
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.table import Table

_TITLE = r"PyTorch \w+ memory summary, device ID ([0-9]+)"
_HINT = b" memory summary, device ID "
# Of the columns the first is the current usage, the second the peak.
_ROWS = ("Allocated memory", "Active memory", "GPU reserved memory", "Allocations")
_CELL = r"\s*([0-9]+ *(?:[KMGTP]i?B|B|[KM])?)\s*\|"
_AXES = ("step", "iteration", "epoch", "batch")


def has_summaries(source: Source) -> bool:
    """Return True if the beginning has the title of a summary."""
    return source.begins_with(_HINT)


def read_summaries(source: Source) -> Table | None:
    """One row per summary: its device, its readings, and the last step named before it."""
    line = pl.col("line")
    found = [line.str.extract(_TITLE, 1).alias("gpu")]
    found += [line.str.extract(rf"\|\s*{row}\s*\|{_CELL}", 1).alias(row) for row in _ROWS]
    found.append(
        line.str.extract(r"\|\s*Allocated memory\s*\|[^|]*\|" + _CELL, 1).alias("Peak allocated")
    )
    found += [
        line.str.extract(rf"(?i)^[^|]*\b{axis}s?\b[^0-9\n|]{{0,4}}([0-9][0-9,]*)", 1).alias(axis)
        for axis in _AXES
    ]
    parts = []
    for chunk in chunks(source):
        part = chunk.select("stamp", *found)
        parts.append(part.filter(pl.any_horizontal(pl.all().is_not_null())))
    return _as_table(pl.concat(parts))


def _as_table(lines: pl.DataFrame) -> Table | None:
    carried = ["stamp", *_AXES]
    held = [*_ROWS, "Peak allocated"]
    rows = (
        lines.with_columns(
            pl.col("gpu").is_not_null().cum_sum().alias("block"), pl.col(carried).forward_fill()
        )
        .filter(pl.col("block") > 0)
        .group_by("block", maintain_order=True)
        .agg(pl.col("gpu", *carried).first(), *(pl.col(name).drop_nulls().first() for name in held))
        .filter(pl.col("Allocated memory").is_not_null())
    )
    if rows.is_empty():
        return None
    names = [name for name in rows.columns if rows[name].null_count() < len(rows)]
    names.remove("block")
    if not any(name in names for name in carried):
        rows = rows.with_columns(pl.int_range(pl.len()).over("gpu").alias("sample"))
        names.append("sample")
    return Table(
        names=tuple("timestamp" if name == "stamp" else name for name in names),
        columns=tuple(_plain(rows[name]) for name in names),
        first_line=None,
    )


def _plain(column: pl.Series) -> pl.Series:
    """Counts of `12 K` and `3 M` written out; sizes have their units."""
    if column.dtype != pl.String:
        return column
    text = column.str.replace(r" +K$", "000").str.replace(r" +M$", "000000")
    return text.str.replace(r" +", " ")
