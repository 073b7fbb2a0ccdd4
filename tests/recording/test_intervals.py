"""Readings without times, where a command or a sentence says how far apart they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log

from memdiag.recording.parsing.intervals import interval_s
from memdiag.values.measurements import AxisKind

N = 12


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docker stats, one snapshot a minute:", 60),
        ("`nvidia-smi` every hour, cut a little", 3600),
        ("kubectl top, every 2 h", 7200),
        ("sampled every 2.5 s while it runs", 2.5),
        ("I noted it once per minute", 60),
        ("$ for i in $(seq 36); do jcmd 1 GC.class_histogram | tail -1; sleep 600; done", 600),
        ("while true\ndo\n  docker stats --no-stream\n  sleep 5m\ndone", 300),
        ("watch -n2 'free -m'", 2),
        ("nvidia-smi -i 0 --query-gpu=memory.used --format=csv,noheader -l 10", 10),
        ("every 10 s at first, then every 5 min", None),
        ("a checkpoint every 100 steps, after each epoch, every second run", None),
        ("import time\nfor x in data:\n    time.sleep(5)", None),
        ("it went to sleep 5 times", None),
        ("", None),
    ],
)
def test_the_interval_that_a_text_says(text: str, expected: float | None) -> None:
    assert interval_s(text) == expected


_LOOP = (
    "$ while true; do docker stats --no-stream --format '{{.Name}} {{.MemUsage}}'; sleep 30; done"
)


@pytest.mark.parametrize(
    ("lines", "apart_s"),
    [
        ([_LOOP, *(f"train  {800 + n}MiB / 62.7GiB" for n in range(N))], 30),
        (
            [
                "docker stats, every 10 min:",
                "",
                "NAME    CPU %   MEM USAGE / LIMIT    MEM %",
                *(f"train   101.2%  {800 + n}MiB / 62.7GiB   1.93%" for n in range(N)),
            ],
            600,
        ),
        (
            [
                "Resident memory of the daemon, in MB.",
                "I noted it once a day:",
                *map(str, range(800, 800 + N)),
            ],
            86400,
        ),
        (
            [
                "$ for i in $(seq 12); do jcmd 1 GC.class_histogram | tail -1; sleep 60; done",
                *(f"Total     {3479451 + n}      {212246528 + n}" for n in range(N)),
            ],
            60,
        ),
    ],
)
def test_readings_that_are_only_counted_are_so_far_apart(
    tmp_path: Path, lines: list[str], apart_s: float
) -> None:
    recording = read_log(tmp_path, lines)
    for series in recording.series:
        assert series.axis.kind is AxisKind.SECONDS
        assert np.diff(series.x).tolist() == [apart_s] * (N - 1)
    assert f"readings are taken to be {apart_s} s apart, as the text says" in recording.notes


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            ["a checkpoint every 10 min:", *(f"step {n} rss {800 + n} MB" for n in range(N))],
            id="they have steps",
        ),
        pytest.param(
            ["docker stats, every 10 min:"]
            + [f"{name}  101.2%  {800 + n}MiB / 62.7GiB" for n in range(N) for name in ("a", "b")],
            id="of several containers",
        ),
    ],
)
def test_what_says_its_own_position_keeps_it(tmp_path: Path, lines: list[str]) -> None:
    for series in read_log(tmp_path, lines).series:
        has_steps = series.axis.kind is AxisKind.STEP
        assert has_steps or np.diff(series.x).tolist() == [600] * (N - 1)


def test_the_user_says_what_counts(tmp_path: Path) -> None:
    lines = [_LOOP, *(f"train  {800 + n}MiB / 62.7GiB" for n in range(N))]
    (series,) = read_log(tmp_path, lines, x_is=AxisKind.EPOCH).series
    assert series.axis.kind is AxisKind.EPOCH
