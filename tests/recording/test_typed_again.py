"""Commands that are typed again and again, and leave rows of a monitor without their header."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError

MIB = 2**20
PROMPT = "(pt) me@ws3:~/det$ "
NAME = "|   {} NVIDIA GeForce RTX 3090        Off | 00000000:01:00.0 Off |                  N/A |"
PROCESS = "|    0   N/A  N/A     40912      C   python                     {}MiB |"


def row(mib: int, total: int = 24576) -> str:
    return f"| 58%   68C    P2   295W / 350W |  {mib}MiB / {total}MiB |    91%      Default |"


def typed(command: str, *printed: Sequence[str]) -> list[str]:
    lines = [line for rows in printed for line in (PROMPT + command, *rows)]
    return ["$ nohup python train.py > out.log &", "[1] 40912", *lines, PROMPT]


def test_rows_of_one_gpu_below_commands_are_read(tmp_path: Path) -> None:
    used = [13289 + 431 * at for at in range(12)]
    lines = typed("nvidia-smi | grep MiB", *([row(mib), PROCESS.format(mib - 9)] for mib in used))
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [mib * MIB for mib in used]


def test_rows_of_several_gpus_are_told_apart_by_their_order_or_names(tmp_path: Path) -> None:
    used = [(13289 + at, 400 + 9 * at) for at in range(12)]
    ordered = typed("nvidia-smi | grep MiB", *([row(a), row(b)] for a, b in used))
    named = typed(
        "nvidia-smi | grep -A1 RTX",
        *([NAME.format(0), row(a), "--", NAME.format(1), row(b)] for a, b in used),
    )
    for lines in (ordered, named):
        both = read_log(tmp_path, lines).series
        found = [series.y.tolist() for series in both]
        assert found == [[a * MIB for a, _ in used], [b * MIB for _, b in used]]


def test_rows_of_a_loop_are_read_if_they_are_of_one_gpu(tmp_path: Path) -> None:
    used = [13289 + 31 * at for at in range(40)]
    (series,) = read_log(tmp_path, [row(mib) for mib in used]).series
    assert series.y.tolist() == [mib * MIB for mib in used]


@pytest.mark.parametrize(
    "rows",
    [
        [row(13289 + 5 * at) for at in range(8)],  # one print of eight GPUs
        [row(mib) for at in range(20) for mib in (13289 + at, 400 + at)],
        [row(9000 + at, 24576 - at % 2) for at in range(40)],
        typed("nvidia-smi | grep MiB", *([row(9000)] * (1 + n % 2) for n in range(12))),
    ],
    ids=["once", "turns", "totals", "uneven"],
)
def test_rows_of_gpus_that_cannot_be_told_apart_are_refused(
    tmp_path: Path, rows: list[str]
) -> None:
    with pytest.raises(ReadError):
        read_log(tmp_path, rows)


def test_steps_between_the_rows_stay_the_axis(tmp_path: Path) -> None:
    lines = [line for at in range(12) for line in (f"step {at}, loss 2.1", row(9000 + at))]
    (series,) = read_log(tmp_path, lines).series
    assert series.x.tolist() == list(range(12))


def test_rows_of_docker_without_their_header_are_read(tmp_path: Path) -> None:
    rows = [
        f"3f2a9c1b7d4e   train   101.2%   1.{at}GiB / 62.7GiB   1.93%   1.2kB / 0B   0B / 0B   12"
        for at in range(10, 30)
    ]
    lines = typed("docker stats --no-stream | grep train", *([one] for one in rows))
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == pytest.approx([(1 + at / 100) * 2**30 for at in range(10, 30)])


def test_the_machine_of_free_without_its_header_is_no_total(tmp_path: Path) -> None:
    rows = [f"Mem:   64214   {21000 + 90 * at}   4000   200   39000   42000" for at in range(12)]
    recording = read_log(tmp_path, typed("free -m | grep Mem", *([one] for one in rows)))
    used = series_of(recording, "host_used_bytes")
    assert used.y.tolist() == [(21000 + 90 * at) * MIB for at in range(12)]
