"""A long recording keeps few rows, and every row that matters."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from memdiag.recording.native import writer as writing
from memdiag.recording.native.atomic_file import RecordingFiles
from memdiag.recording.native.downsampling import Downsampler
from memdiag.recording.native.writer import Writer
from memdiag.values.measurements import Sample

DAY_S = 86_400
Shape = Callable[[int], tuple[float, str, int]]


def _samples(seconds: int, shape: Shape, **more: object) -> Iterator[Sample]:
    for at_s in range(seconds):
        rss, phase, step = shape(at_s)
        yield Sample(
            at_s=at_s, pid=1, process="main", step=step, phase=phase, readings={"rss_bytes": rss}
        )


def _kept(seconds: int, shape: Shape, cut_every: int = 0) -> list[Sample]:
    """The samples that stay of a day sampled once a second."""
    downsampler = Downsampler(interval_s=1.0)
    kept: list[Sample] = []
    waiting: list[Sample] = []
    for sample in _samples(seconds, shape):
        downsampler.add(sample)
        waiting.append(sample)
        if cut_every and len(waiting) == cut_every:
            flags = downsampler.cut(sample.at_s)
            kept += [s for s, wanted in zip(waiting, flags, strict=True) if wanted]
            waiting = []
    flags = downsampler.cut(seconds)
    return kept + [s for s, wanted in zip(waiting, flags, strict=True) if wanted]


def _noise(scale: float) -> Callable[[int], float]:
    rng = random.Random(1)
    table = [rng.gauss(0, scale) for _ in range(4099)]
    return lambda at: table[at % 4099]


def test_a_day_shrinks_and_keeps_its_ends() -> None:
    noise = _noise(1e6)
    kept = _kept(DAY_S, lambda at: (5e9 + noise(at), "", at // 3))
    assert len(kept) < DAY_S / 4
    assert (kept[0].at_s, kept[-1].at_s) == (0, DAY_S - 1)


def test_the_first_minutes_are_kept_whole() -> None:
    kept = _kept(DAY_S, lambda at: (5e9, "", at))
    assert [s.at_s for s in kept[:200]] == list(range(200))


def test_nothing_happening_leaves_two_rows_per_bucket() -> None:
    kept = _kept(DAY_S, lambda at: (5e9, "train", 0))
    assert len(kept) < 4000


def test_every_peak_and_every_trough_stays() -> None:
    noise = _noise(1e5)
    peaks, troughs = {40_000, 61_234, 80_001}, {50_000, 70_707}

    def shape(at: int) -> tuple[float, str, int]:
        extra = 1e9 if at in peaks else -1e9 if at in troughs else 0
        return 5e9 + noise(at) + extra, "", 0

    times = {s.at_s for s in _kept(DAY_S, shape)}
    assert peaks | troughs <= times


def test_jumps_keep_the_row_before_them() -> None:
    noise = _noise(1e5)
    kept = _kept(DAY_S, lambda at: (5e9 + noise(at) + (at // 7200) * 1e8, "", 0))
    times = {s.at_s for s in kept}
    for jump in range(7200, DAY_S, 7200):
        assert {jump - 1, jump} <= times


def test_rare_phases_keep_each_of_their_changes() -> None:
    """An evaluation every half hour, between two phases that alternate every second."""
    noise = _noise(1e6)

    def shape(at: int) -> tuple[float, str, int]:
        phase = "eval" if at % 1800 < 20 else ("forward", "backward")[at % 2]
        return 5e9 + noise(at), phase, at // 2

    times = {s.at_s for s in _kept(DAY_S, shape)}
    for begin in range(1800, DAY_S, 1800):
        assert {begin - 1, begin} <= times


def test_floors_of_steps_stay_where_steps_are_long() -> None:
    """Steps of ten minutes, whose lowest reading lies somewhere within."""
    noise = _noise(1e6)
    floors = {at - at % 600: at for at in range(123, DAY_S, 600)}

    def shape(at: int) -> tuple[float, str, int]:
        low = -(1e8 + at * 1e3) if at in floors.values() else 0
        return 5e9 + noise(at) + low, "", at // 600

    assert set(floors.values()) <= {s.at_s for s in _kept(DAY_S, shape)}


def test_a_leak_keeps_its_slope() -> None:
    noise = _noise(5e6)
    kept = _kept(DAY_S, lambda at: (5e9 + noise(at) + at * 1e4, "", at // 3))
    slope = np.polyfit([s.at_s for s in kept], [s.readings["rss_bytes"] for s in kept], 1)[0]
    assert abs(slope / 1e4 - 1) < 0.01


def test_cutting_in_between_loses_nothing_that_matters() -> None:
    noise = _noise(1e5)
    kept = _kept(DAY_S, lambda at: (5e9 + noise(at) + (at // 7200) * 1e8, "", 0), cut_every=5000)
    times = [s.at_s for s in kept]
    assert all(a < b for a, b in pairwise(times))
    assert len(times) < DAY_S / 4
    for jump in range(7200, DAY_S, 7200):
        assert jump in times


def test_processes_that_come_and_go_leave_no_trace_in_memory() -> None:
    downsampler = Downsampler(interval_s=0.1)
    for n in range(5000):
        downsampler.add(Sample(at_s=n, pid=n, process=f"worker {n}", readings={"rss_bytes": n}))
        if n % 500 == 499:
            assert set(downsampler.cut(n)) == {1}
    assert downsampler.processes < 200


def test_a_growing_file_is_downsampled_and_stays_a_table(
    tmp_path: Path, monkeypatch: object
) -> None:
    """Four processes for six hours at one sample per second."""
    monkeypatch.setattr(writing, "_COMPACT_BYTES", 1 << 20)  # type: ignore[attr-defined]
    path = tmp_path / "run.csv"
    writer = Writer(RecordingFiles(path, force=False), about={}, interval_s=1.0)
    noise = _noise(1e6)
    largest = 0
    for at in range(6 * 3600):
        for pid in range(4):
            rss = int(5e9 + noise(at + 13 * pid)) + (10**9 if at == 9000 else 0)
            readings: dict[str, int | float] = {"rss_bytes": rss}
            if at > 5000:
                readings["late"] = at
            writer.add(
                [Sample(at_s=at, pid=pid, process=f"rank {pid}", readings=readings, step=at)]
            )
        writer.flush()
        largest = max(largest, path.stat().st_size)
    writer.close()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert largest < 4e6
    assert len(rows) < 6 * 3600 * 4 * 0.6
    assert all(None not in row and None not in row.values() for row in rows)
    for pid in range(4):
        own = [row for row in rows if row["pid"] == str(pid)]
        assert [float(row["at_s"]) for row in own] == sorted(float(row["at_s"]) for row in own)
        assert max(own, key=lambda row: int(row["rss_bytes"]))["at_s"] == "9000.0000"
        assert own[-1]["at_s"] == f"{6 * 3600 - 1}.0000"
        assert all(bool(row["late"]) == (float(row["at_s"]) > 5000) for row in own)


def test_full_recordings_keep_every_row(tmp_path: Path, monkeypatch: object) -> None:
    monkeypatch.setattr(writing, "_COMPACT_BYTES", 1 << 12)  # type: ignore[attr-defined]
    path = tmp_path / "run.csv"
    writer = Writer(RecordingFiles(path, force=False), about={}, interval_s=1.0, full=True)
    writer.add(list(_samples(5000, lambda at: (5, "", 0))))
    writer.close()
    assert path.read_bytes().count(b"\n") == 5001


def test_of_helpers_by_the_ten_thousand_the_largest_of_a_time_stay() -> None:
    downsampler = Downsampler(interval_s=0.1)
    helpers = 20_000
    rows = []
    for number in range(helpers):
        for tick in range(3):
            at_s = number * 0.4 + tick * 0.1
            rss = 1e6 + number % 100 + (5e9 if number % 5000 == 4321 else 0)
            sample = Sample(
                at_s=at_s,
                pid=number,
                process=f"cc1 {number}",
                readings={"rss_bytes": rss},
                young=True,
            )
            downsampler.add(sample)
            rows.append(sample)
        assert downsampler.processes < 600
    keep = downsampler.cut(helpers * 0.4 + 5)
    kept = [sample for sample, wanted in zip(rows, keep, strict=True) if wanted]
    assert len(kept) < len(rows) / 4
    assert {s.pid for s in kept if s.readings["rss_bytes"] > 1e9} == {4321, 9321, 14321, 19321}


def test_few_helpers_stay_with_their_ends() -> None:
    downsampler = Downsampler(interval_s=0.1)
    for number in range(6):
        for tick in range(3):
            at_s = number * 60 + tick * 0.1
            reading = {"rss_bytes": 1e6 + tick}
            downsampler.add(
                Sample(at_s=at_s, pid=number, process="x", readings=reading, young=True)
            )
    keep = downsampler.cut(400)
    assert all(keep[first] and keep[first + 2] for first in range(0, 18, 3))
