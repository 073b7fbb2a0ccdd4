"""Epochs beside steps: how long one is, in logs and in our own recordings."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log

from memdiag.values.measurements import AxisKind, Recording, Series


def _only(recording: Recording) -> Series:
    (series,) = recording.series
    return series


def test_epochs_beside_steps_tell_how_long_one_is(tmp_path: Path) -> None:
    rows = (f"{n},{n // 25},{5000 + n}\n" for n in range(100))
    series = _only(read_log(tmp_path, "step,epoch,rss_mb\n" + "".join(rows)))
    assert (series.axis.kind, series.x_per_epoch) == (AxisKind.STEP, 25)
    rows = (f"{10 * n},{n / 25:.2f},{5000 + n}\n" for n in range(100))
    series = _only(read_log(tmp_path, "step,epoch,rss_mb\n" + "".join(rows)))
    assert series.x_per_epoch == pytest.approx(250)


def test_epochs_of_our_own_recordings_are_no_counter_and_hold_for_all_processes(
    tmp_path: Path,
) -> None:
    lines = ["at_s,step,phase,pid,process,rss_bytes,epoch"]
    for n in range(60):
        step = "" if n == 0 else n
        if n % 20 == 0:
            lines.append(f"{n}.5,{step},train,1,main,,{1 + n // 20}")
        for process, rss in (("main", 1000 + n), ("tree", 2000 + n)):
            lines.append(f"{n}.6,{step},train,1,{process},{rss},")
    recording = read_log(tmp_path, "\n".join(lines) + "\n")
    assert {(s.metric, s.process, s.x_per_epoch) for s in recording.series} == {
        ("rss_bytes", "main", 20),
        ("rss_bytes", "tree", 20),
    }
