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
    assert recording.notes[0].endswith(f"over elapsed time (s), {apart_s} s apart as the text says")


def test_each_container_is_looked_at_so_often(tmp_path: Path) -> None:
    rows = [f"{name}  101.2%  {800 + n}MiB / 62.7GiB" for n in range(N) for name in ("a", "b")]
    for series in read_log(tmp_path, ["docker stats, every 10 min:", *rows]).series:
        assert np.diff(series.x).tolist() == [600] * (N - 1)


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        pytest.param(
            ["a checkpoint every 10 min:", *(f"step {n} rss {800 + n} MB" for n in range(N))],
            AxisKind.STEP,
            id="steps",
        ),
        pytest.param(
            ["We restart every 10 min.", "", "| model | RSS (MB) |", "|---|---|"]
            + [f"| {'abcdefghijkl'[n]} | {800 + n} |" for n in range(N)],
            AxisKind.INDEX,
            id="of several things",
        ),
    ],
)
def test_readings_that_say_where_or_what_they_are_keep_it(
    tmp_path: Path, lines: list[str], kind: AxisKind
) -> None:
    (series,) = read_log(tmp_path, lines).series
    assert series.axis.kind is kind


def test_the_user_says_what_counts(tmp_path: Path) -> None:
    lines = [_LOOP, *(f"train  {800 + n}MiB / 62.7GiB" for n in range(N))]
    (series,) = read_log(tmp_path, lines, x_is=AxisKind.EPOCH).series
    assert series.axis.kind is AxisKind.EPOCH
