"""Rows of one step: of several processes without names, or of a monitor that reads often."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memdiag.recording.read import read

STEPS = 40


def of_ranks(step: int, rank: int) -> str:
    return f"{step},{step * 1.0 + rank * 0.01},{4000 + rank * 100 + (20 * step if rank else 0)}"


def of_monitor(step: int, part: int) -> str:
    return f"{step},{step * 1.0 + part * 0.5},{4000 + 20 * step + 10 * part}"


@pytest.mark.parametrize(("row", "processes"), [(of_ranks, 2), (of_monitor, 1)])
def test_rows_of_a_step_are_processes_only_if_written_at_once(
    tmp_path: Path, row: object, processes: int
) -> None:
    assert callable(row)
    rows = [row(step, part) for step in range(STEPS) for part in range(2)]
    (tmp_path / "log.csv").write_text("\n".join(["step,time_s,rss_mb", *rows]))
    recording = read(str(tmp_path / "log.csv"))
    assert len(recording.series) == processes
    if processes > 1:
        assert [s.y[-1] for s in recording.series] == [4000e6, (4100 + 20 * (STEPS - 1)) * 1e6]
        assert any("nothing tells whose" in note for note in recording.notes)


def test_rows_of_a_numbered_part_of_a_step_stay_together(tmp_path: Path) -> None:
    rows = [f"{step},{part},{4000 + 200 * part}" for step in range(STEPS) for part in range(3)]
    (tmp_path / "log.csv").write_text("\n".join(["step,micro_batch,rss_mb", *rows]))
    assert len(read(str(tmp_path / "log.csv")).series) == 1


def test_readings_of_an_epoch_are_of_one_process(tmp_path: Path) -> None:
    rows = [f"epoch {epoch} mem {4000 + part} MB" for epoch in range(20) for part in range(5)]
    (tmp_path / "train.log").write_text("\n".join(rows))
    assert len(read(str(tmp_path / "train.log")).series) == 1


def test_lines_of_two_processes_with_a_reading_each_are_all_judged(tmp_path: Path) -> None:
    rows = [
        f"step {step}: {name} {level + rank} MB"
        for step in range(STEPS)
        for rank in (0, 500)
        for name, level in (("allocated", 4000), ("reserved", 6000 + 20 * step * bool(rank)))
    ]
    (tmp_path / "train.log").write_text("\n".join(rows))
    series = read(str(tmp_path / "train.log")).series
    peaks = {(s.column, s.process): float(np.nanmax(s.y)) for s in series}
    assert len(peaks) == 4
    assert max(peaks.values()) == (6500 + 20 * (STEPS - 1)) * 1e6


@pytest.mark.parametrize("each", [2, 4])
@pytest.mark.parametrize("growth", [0, 0.5])
def test_readings_that_follow_each_other_are_of_one_process(
    tmp_path: Path, each: int, growth: float
) -> None:
    noise = np.random.default_rng(each).normal(size=(STEPS, each))
    rows = [
        f"step {step}: rss {4000 + growth * (each * step + at) + noise[step, at]:.2f} MB"
        for step in range(STEPS)
        for at in range(each)
    ]
    (tmp_path / "train.log").write_text("\n".join(rows))
    recording = read(str(tmp_path / "train.log"))
    assert [len(series.y) for series in recording.series] == [STEPS * each]
    assert f"each step has {each} readings, which follow each other" in recording.notes


def test_processes_are_kept_apart_in_any_order_of_their_lines(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = [
        f"step {step}: rss {level + 3 * random.normal():.1f} MB"
        for step in range(STEPS)
        for level in random.permutation([4000 + 2 * step, 4100, 4200])
    ]
    (tmp_path / "train.log").write_text("\n".join(rows))
    assert len(read(str(tmp_path / "train.log")).series) == 3
