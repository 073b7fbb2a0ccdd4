"""Amounts per something, and bars of progress: numbers of a log that are no memory in use."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log

from memdiag.recording.textlog.number_spans import numbers_in


@pytest.mark.parametrize("per", ["/epoch", " / epoch", "/Stunde", "/h", " per file"])
def test_an_amount_per_something_is_no_reading(tmp_path: Path, per: str) -> None:
    log = "".join(f"epoch {n}: {2 + n / 10:.1f} GB\n" for n in range(1, 31))
    (series,) = read_log(tmp_path, f"{log}so 0.1 GB{per}, OOM at epoch 120\n").series
    assert series.x.max() == 30


@pytest.mark.parametrize("per", ["/GPU", "/16GB", " / 16 GB", " peak", ", ok"])
def test_an_amount_of_a_device_or_of_a_total_is_one(tmp_path: Path, per: str) -> None:
    log = "".join(f"epoch {n}: {2 + n / 10:.1f} GB{per}\n" for n in range(1, 31))
    (series,) = read_log(tmp_path, log).series
    assert len(series.y) == 30


def test_a_bar_of_progress_is_no_memory() -> None:
    line = "Loading dataset into memory:  45%|████▌     | 27/60 [00:08<00:10, 3.10it/s]"
    assert not [number for number in numbers_in(line) if number.unit == "%"]


def test_memory_beside_a_bar_is_read(tmp_path: Path) -> None:
    log = "".join(
        f"Caching (RAM {n / 10:.1f}GB): {n}%|{'█' * (n // 10)}| {n}/100 [00:{n % 60:02d}<01:00]\n"
        for n in range(1, 60)
    )
    (series,) = read_log(tmp_path, log).series
    assert series.y[0] == 1e8
