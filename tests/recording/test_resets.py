"""Steps that start again: restarts, or blocks of one count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from logs import read_log

from memdiag.values.measurements import Recording, Series


def _only(recording: Recording) -> Series:
    (series,) = recording.series
    return series


def test_step_that_starts_again_with_low_memory_is_a_restart(tmp_path: Path) -> None:
    first = [(10 * n, 5000 + 1600 * n) for n in range(1, 8)]
    rows = first + [(10 * n, 5000 + 1600 * n) for n in range(1, 12)]
    recording = read_log(tmp_path, "step,rss_mb\n" + "".join(f"{x},{y}\n" for x, y in rows))
    series = _only(recording)
    assert series.generation is not None
    assert series.generation.tolist() == [0] * 7 + [1] * 11
    assert any("restart" in note for note in recording.notes)


def test_a_restart_is_seen_by_the_readings_where_some_are_missing(tmp_path: Path) -> None:
    run = [f"{n},{5 + n if n % 4 == 3 else ''}\n" for n in range(20)]
    series = _only(read_log(tmp_path, "step,rss_gb\n" + "".join(run + run)))
    assert series.generation is not None
    assert series.generation.max() == 1
    few = _only(read_log(tmp_path, "step,rss_gb\n" + "1,\n" * 6 + "2,\n1,1\n"))
    assert np.isfinite(few.y).sum() == 1


def test_a_job_that_resumes_from_checkpoints_is_restarted_each_time(tmp_path: Path) -> None:
    """It runs out of memory every 600 steps, and goes on a hundred steps before."""
    starts = (0, 500, 1000, 1500)
    rows = [(start + n, 2000 + 10 * n) for start in starts for n in range(0, 600, 5)]
    recording = read_log(tmp_path, "step,rss_mb\n" + "".join(f"{x},{y}\n" for x, y in rows))
    series = _only(recording)
    assert series.generation is not None
    assert series.generation.tolist() == [n for n in range(4) for _ in range(120)]
    assert "step goes back 3 times and the memory drops: read as process restarts" in " ".join(
        recording.notes
    )


def test_blocks_are_counted_on_behind_a_start_up_without_steps(tmp_path: Path) -> None:
    """Nothing of the run is left out, and rows between two blocks have no step either."""
    block = [f"{n},100\n" for n in range(1, 11)]
    content = "step,rss_mb\n" + ",90\n" * 5 + "".join([*block, ",100\n", *block, *block, *block])
    recording = read_log(tmp_path, content)
    x = _only(recording).x
    assert np.flatnonzero(np.isnan(x)).tolist() == [0, 1, 2, 3, 4, 15]
    assert x[np.isfinite(x)].tolist() == list(range(1, 41))
    assert any("restarts 3 times: counted on" in note for note in recording.notes)


def test_a_restart_behind_a_start_up_without_steps_is_one(tmp_path: Path) -> None:
    run = [",50\n", ",60\n", *(f"{n},{100 + 10 * n}\n" for n in range(1, 11))]
    series = _only(read_log(tmp_path, "step,rss_mb\n" + "".join(run + run)))
    assert series.generation is not None
    assert series.generation.tolist()[:12] == [0] * 12
    assert series.generation.tolist()[14:] == [1] * 10


def test_step_within_epochs_is_counted_on(tmp_path: Path) -> None:
    rows = [(epoch, step, 100) for epoch in range(3) for step in range(5)]
    content = "epoch,step,rss_mb\n" + "".join(f"{e},{s},{y}\n" for e, s, y in rows)
    assert _only(read_log(tmp_path, content)).x.tolist() == list(range(15))
