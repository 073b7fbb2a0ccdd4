"""Numbers among the words that say when, of which, or where something begins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.values.measurements import AxisKind

RUNS = 30
MB, GB = 1e6, 1e9


@pytest.mark.parametrize(
    ("line", "metric", "kind"),
    [
        ("Memory after step {i}: {m} MB", "memory_bytes", AxisKind.STEP),
        ("Heap usage following update #{i} (MB): {m}", "heap_usage_following_bytes", AxisKind.STEP),
        ("RAM held at epoch {i} [MB] = {m}", "ram_held_bytes", AxisKind.EPOCH),
        ("[INFO] RSS (MB) in round {i}: {m}", "rss_bytes", AxisKind.INDEX),
        ("Resident memory for request {i} is {m} MB", "resident_memory_bytes", AxisKind.REQUEST),
        ("After batch {i}: {m} MB", "memory_bytes", AxisKind.STEP),
    ],
)
def test_number_among_the_words_says_when(
    tmp_path: Path, line: str, metric: str, kind: AxisKind
) -> None:
    recording = read_log(tmp_path, [line.format(i=5 * i, m=700 + i) for i in range(RUNS)])
    series = series_of(recording, metric)
    assert series.axis.kind is kind
    np.testing.assert_allclose(series.x, [5 * i for i in range(RUNS)])
    np.testing.assert_allclose(series.y, [(700 + i) * MB for i in range(RUNS)])
    assert len(recording.series) == 1


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("pool.memory_in_use({d}) {m}00000", ("pool_memory_in_use_0", "pool_memory_in_use_1")),
        ("smi GPU-{d} memory (MB) {m}", ("gpu_0_memory_bytes", "gpu_1_memory_bytes")),
        ("card {d}: {m} MB", ("card_0_bytes", "card_1_bytes")),
        ("cuda:{d} reserved {m}MB", ("cuda_0_reserved_bytes", "cuda_1_reserved_bytes")),
    ],
)
def test_devices_in_one_log_are_kept_apart(
    tmp_path: Path, line: str, names: tuple[str, str]
) -> None:
    def reading(device: int, i: int) -> str:
        return line.format(d=device, m=(500 + 9 * i) if device else 900)

    for joint in ("\n", " "):  # on lines of their own, or side by side
        rows = [f"iter {i} {reading(0, i)}{joint}{reading(1, i)}" for i in range(RUNS)]
        recording = read_log(tmp_path, rows)
        steady, growing = (series_of(recording, name) for name in names)
        assert np.unique(steady.y[np.isfinite(steady.y)]).size == 1
        seen = growing.y[np.isfinite(growing.y)]
        assert seen.size == RUNS
        assert (np.diff(seen) > 0).all()


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("[Worker {w}] batch {i} RSS: {m}MB", "worker"),
        ("replica={w} iter={i} RSS={m} MB", "worker"),
        ("[GPU {w}] it {i} RSS {m} MB", "gpu"),
    ],
)
def test_lines_of_several_workers_are_kept_apart(tmp_path: Path, line: str, label: str) -> None:
    rows = [line.format(w=w, i=i, m=400 * (w + 1)) for i in range(RUNS) for w in range(2)]
    recording = read_log(tmp_path, rows)
    for w in range(2):
        assert set(series_of(recording, "rss_bytes", f"{label} {w}").y) == {400 * (w + 1) * MB}


def test_total_with_a_unit_of_its_own_is_no_reading(tmp_path: Path) -> None:
    rows = [f"batch={i} mem={3 + i / 100:.2f}GB / 14.2GB" for i in range(RUNS)]
    assert [s.metric for s in read_log(tmp_path, rows).series] == ["mem_bytes"]


def test_what_was_added_is_no_reading(tmp_path: Path) -> None:
    rows = [f"cycle {i}: rss {700 + i} MB ({'-+'[i % 2]}{100 + i} MB)" for i in range(RUNS)]
    assert [s.metric for s in read_log(tmp_path, rows).series] == ["rss_bytes"]


def test_where_something_begins_is_no_count(tmp_path: Path) -> None:
    rows = [f"step {i}: 25 blocks read from {9000 + 40 * i}; RSS {700} MB" for i in range(RUNS)]
    recording = read_log(tmp_path, rows)
    assert not any(
        (s.y >= 9000).any() and s.unit != series_of(recording, "rss_bytes").unit
        for s in recording.series
    )


def test_zone_behind_the_time_is_no_part_of_a_name(tmp_path: Path) -> None:
    rows = [f"2024-03-01T10:{i:02d}:00Z rss_mb={700 + i}" for i in range(RUNS)]
    assert [s.metric for s in read_log(tmp_path, rows).series] == ["rss_bytes"]


def test_words_of_other_scripts_stand_against_their_numbers(tmp_path: Path) -> None:
    rows = [f"第{i}轮 内存占用: {700 + i} MB" for i in range(RUNS)]
    (series,) = read_log(tmp_path, rows).series
    np.testing.assert_allclose(series.y, [(700 + i) * MB for i in range(RUNS)])


def test_episodes_are_positions(tmp_path: Path) -> None:
    rows = [f"Episode {10 * i} reward 20.5 memory {700 + i}MB" for i in range(RUNS)]
    assert series_of(read_log(tmp_path, rows), "memory_bytes").x.tolist() == list(range(0, 300, 10))


def test_what_there_is_in_all_and_what_was_tried_are_no_readings(tmp_path: Path) -> None:
    rows = [
        f"step {i}: total: 64.0GB, used: {9 + i / 10:.1f}GB; tried to allocate {20 + i} MB"
        for i in range(RUNS)
    ]
    assert [s.metric for s in read_log(tmp_path, rows).series] == ["used_bytes"]
