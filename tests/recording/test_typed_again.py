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


DOCKER = "docker stats --no-stream --format "
LIMIT = "62.79GiB"
GIB = [6.412 + at / 8 for at in range(12)]


@pytest.mark.parametrize("prompt", [PROMPT, "$ ", "[root@srv4 asr]# ", "PS C:\\job> "])
@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("NAME        MEM USAGE / LIMIT", "asr-train   {gib:.3f}GiB / {limit}"),
        ("MEM USAGE / LIMIT     NAME", "{gib:.3f}GiB / {limit}   asr-train"),
        (
            "NAME        CPU %     MEM USAGE / LIMIT     NET I/O",
            "asr-train   99.31%    {gib:.3f}GiB / {limit}   1.2GB / 9.81GB",
        ),
        ("MEM USAGE / LIMIT", "{gib:.3f}GiB / {limit}"),
    ],
    ids=["name", "behind", "traffic", "alone"],
)
def test_columns_that_docker_was_told_to_print_are_read(
    tmp_path: Path, prompt: str, header: str, row: str
) -> None:
    command = f'{prompt}{DOCKER}"table {{{{.Name}}}}\\t{{{{.MemUsage}}}}"'
    printed = ((command, header, row.format(gib=gib, limit=LIMIT)) for gib in GIB)
    (series,) = read_log(tmp_path, [line for lines in printed for line in lines]).series
    assert series.y.tolist() == pytest.approx([gib * 2**30 for gib in GIB])


def test_containers_below_one_header_are_told_apart(tmp_path: Path) -> None:
    printed = (
        [
            "NAME        MEM USAGE / LIMIT",
            f"asr         {gib:.3f}GiB / {LIMIT}",
            f"web  1GiB / {LIMIT}",
        ]
        for gib in GIB
    )
    lines = typed(DOCKER + '"table {{.Name}}\\t{{.MemUsage}}"', *printed)
    found = {one.process: one.y.tolist() for one in read_log(tmp_path, lines).series}
    assert found == {"asr": pytest.approx([gib * 2**30 for gib in GIB]), "web": [2**30] * 12}


@pytest.mark.parametrize("gib", [6.412, 0.5])
def test_memory_that_stays_beside_its_limit_is_no_limit(tmp_path: Path, gib: float) -> None:
    row = f"asr-train   {gib}GiB / {LIMIT}"
    lines = typed(DOCKER + "...", *[["NAME        MEM USAGE / LIMIT", row]] * 12)
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == pytest.approx([gib * 2**30] * 12)


def test_the_format_of_docker_names_the_amounts_below_it(tmp_path: Path) -> None:
    used = typed(DOCKER + "'{{.MemUsage}}' asr", *([f"{gib:.3f}GiB / {LIMIT}"] for gib in GIB))
    share = typed(DOCKER + "'{{.MemPerc}}' asr", *([f"{gib:.2f}%"] for gib in GIB))
    assert read_log(tmp_path, used).series[0].y.tolist() == pytest.approx(
        [gib * 2**30 for gib in GIB], rel=1e-3
    )
    assert read_log(tmp_path, share).series[0].y[0] == 6.41


@pytest.mark.parametrize(
    ("command", "header", "row"),
    [
        ("docker stats --format '{{.NetIO}}'", "", "{gib:.3f}GB / 9.81GB"),
        ("docker stats --format 'table ...'", "NAME   NET I/O", "asr    {gib:.3f}GB / 9.81GB"),
        ("docker stats --format 'table ...'", "NAME   BLOCK I/O", "asr    {gib:.3f}GB / 9.81GB"),
        ("docker images", "REPOSITORY   TAG      SIZE", "asr          latest   {gib:.3f}GB"),
    ],
)
def test_other_sizes_that_docker_prints_are_refused(
    tmp_path: Path, command: str, header: str, row: str
) -> None:
    printed = ([header, row.format(gib=gib)] for gib in GIB)
    with pytest.raises(ReadError):
        read_log(tmp_path, typed(command, *printed))


@pytest.mark.parametrize(
    ("options", "row"),
    [("", "trainer-0   990m   {}Mi   "), (" -A", "ml   trainer-0   990m   {}Mi   ")],
)
def test_rows_of_pods_without_their_header_are_read(tmp_path: Path, options: str, row: str) -> None:
    rows = ([row.format(4000 + 9 * at)] for at in range(12))
    lines = typed(f"kubectl top pod{options} | grep trainer", *rows)
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [(4000 + 9 * at) * MIB for at in range(12)]
