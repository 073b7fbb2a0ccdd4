"""A recording as Parquet."""

from __future__ import annotations

from pathlib import Path

from memdiag.recording.lazy_polars import pl
from memdiag.values.metrics import KEY_COLUMNS


def csv_to_parquet(csv: Path, parquet: Path) -> None:
    """Write a native CSV recording to a Parquet file. Raises OSError."""
    types = dict(
        zip(KEY_COLUMNS, (pl.Float64, pl.Int64, pl.String, pl.Int64, pl.String), strict=True)
    )
    try:
        frame = pl.scan_csv(csv, schema_overrides=types, infer_schema_length=None, glob=False)
        frame.sink_parquet(parquet)
    except pl.exceptions.PolarsError as error:
        raise OSError(f"no Parquet could be made of it: {error}") from error
