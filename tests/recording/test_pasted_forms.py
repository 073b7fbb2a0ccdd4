"""Forms in which people paste readings, and what is read of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.timestamps import moments
from memdiag.recording.read import read
from memdiag.values.measurements import Unit


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("22.8 -> 22.7 GB", 22.7e9),
        ("22.8 → 22.7 GB", 22.7e9),
        ("807.0 ± 2.0 MiB", 807 * 2**20),
        ("3.5 / 24.0 GiB", 3.5 * 2**30),
    ],
)
def test_the_value_in_use_of_a_cell_is_read(cell: str, value: float) -> None:
    cells = to_numbers(pl.Series([cell]))
    assert cells.unit is Unit.BYTES
    assert cells.values.tolist() == [pytest.approx(value)]


def test_decimal_commas_with_points_between_thousands_are_read() -> None:
    assert to_numbers(pl.Series(["1.204,5", "980,25"])).values.tolist() == [1204.5, 980.25]


@pytest.mark.parametrize(
    "dates",
    [
        ["3/11/2025 9:30 AM", "3/13/2025 9:30 PM"],
        ["11.03.2025 09:30", "13.03.2025 21:30"],
        ["11/03/2025 09:30", "13/03/2025 21:30"],
        ["03/11/25 09:30", "03/13/25 21:30"],
        ["11.03.25 09:30", "13.03.25 21:30"],
        ["25/03/11 09:30:00", "25/03/13 21:30:00"],
        ["03-11-2025 09:30:00.250 +0000", "03-13-2025 21:30:00.250 +0000"],
        ["3/11/2025 9:30 AM UTC", "3/13/2025 9:30 PM UTC"],
        ["2025-03-11 09:30:00 -0500", "2025-03-13 21:30:00 -0500"],
        ["2025/03/11 09:30:00 UTC", "2025/03/13 21:30:00 UTC"],
    ],
)
def test_dates_with_the_day_or_the_month_first_are_read(dates: list[str]) -> None:
    assert np.diff(moments(pl.Series(dates))).tolist() == [2.5 * 86400]


def test_only_free_memory_counts_downwards() -> None:
    assert recognise("gpu_free_mb").falling
    assert recognise("INFO Free RAM (GB)").falling
    assert not recognise("free_not_returned_mb").falling


def test_memory_in_use_in_percent_is_no_load_of_a_bus() -> None:
    assert recognise("mem_util_percent").part is Part.METRIC
    assert recognise("utilization.memory [%]").part is Part.OTHER


def test_counts_with_a_letter_are_no_bytes_and_sizes_left_out_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    lines = (f"step {n} rows {n}K rss {900 + n} MB; disk freed 3 MB\n" for n in range(10))
    path.write_text("".join(lines))
    recording = read(str(path))
    assert {series.column for series in recording.series} == {"rss (bytes)"}
    assert any(note.startswith("not read as memory") for note in recording.notes)
