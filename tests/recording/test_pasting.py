"""What pasting leaves around a log, and listings that are no logs at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log

from memdiag.errors import ReadError
from memdiag.values.measurements import AxisKind

RUNS = 24
MB, MIB = 1e6, 2.0**20


LINES = [f"step {i}: rss {600 + i} MB" for i in range(RUNS)]
CSV = ["step,rss_mb", *(f"{i},{600 + i}" for i in range(RUNS))]


@pytest.mark.parametrize("lines", [LINES, CSV], ids=["log", "csv"])
@pytest.mark.parametrize(
    ("before", "mark", "after"),
    [
        ("```console\n", "", "```\n"),
        ("<details>\n<summary>2 of 3 GB</summary>\n\n```\n", "", "```\n\n</details>\n"),
        ("", "> ", ""),
        ("me@host:~/job$ python train.py --budget 9000 MB\n", "", "me@host:~/job$ \n"),
        ("(env) $ python train.py\n$ ./train.sh 12 MB\n", "", ""),
        (">>> for i in range(24):\n...     print(rss_mb() + 4000)\n...\n", "", ">>> \n"),
        ("PS C:\\jobs> python train.py\r\n", "\x1b[32m", "\x1b[0m"),
    ],
    ids=["fence", "details", "quote", "prompt", "commands", "python", "colours"],
)
def test_what_pasting_adds_is_no_part_of_the_log(
    tmp_path: Path, lines: list[str], before: str, mark: str, after: str
) -> None:
    text = before + "".join(f"{mark}{line}\n" for line in lines) + after
    (series,) = read_log(tmp_path, text).series
    assert series.metric == "rss_bytes"
    assert series.axis.kind is AxisKind.STEP
    np.testing.assert_allclose(series.y, [(600 + i) * MB for i in range(RUNS)])


def test_query_of_the_driver_below_its_command_keeps_its_times(tmp_path: Path) -> None:
    text = "me@box:~$ nvidia-smi --query-gpu=timestamp,memory.used --format=csv -l 5\n"
    text += "timestamp, memory.used [MiB]\n"
    text += "".join(f"2024/02/03 11:{i:02d}:05.250, {4000 + i} MiB\n" for i in range(RUNS))
    (series,) = read_log(tmp_path, text).series
    assert series.axis.kind is AxisKind.SECONDS
    np.testing.assert_allclose(series.y, [(4000 + i) * MIB for i in range(RUNS)])


def test_date_between_the_pods_is_no_pod(tmp_path: Path) -> None:
    text = "".join(
        f"Fri Mar  8 0{i}:30:00 UTC 2024\nNAME   CPU(cores)   MEMORY(bytes)\n"
        f"job-7   {800 + i}m   {3000 + i}Mi\n"
        for i in range(9)
    )
    (series,) = read_log(tmp_path, text).series
    assert series.process == "job-7"
    assert series.x.tolist() == [3600.0 * i for i in range(9)]
    np.testing.assert_allclose(series.y, [(3000 + i) * MIB for i in range(9)])


def test_remarks_behind_figures_do_not_hide_them(tmp_path: Path) -> None:
    cells = ("610 MB", "630 MB (**+20 MB**)", "0.66 GB / 8 GB", "680 MB ✅", "700 MB [peak]")
    text = "| moment | RSS |\n| --- | --- |\n"
    text += "".join(f"| after part {i} | {cell} |\n" for i, cell in enumerate(cells))
    (series,) = read_log(tmp_path, text).series
    np.testing.assert_allclose(series.y, [610 * MB, 630 * MB, 660 * MB, 680 * MB, 700 * MB])


def test_spans_of_time_in_words_are_times(tmp_path: Path) -> None:
    spans = ("0h", "~30 min", "1h 15m", "2 hours", "0d3h", "T+4h", "1 day, 2h")
    text = "| Uptime | RSS |\n|---|---|\n"
    text += "".join(f"| {span} | {500 + i} MB |\n" for i, span in enumerate(spans))
    (series,) = read_log(tmp_path, text).series
    assert series.x.tolist() == [0, 1800, 4500, 7200, 10800, 14400, 93600]


def test_runs_below_each_other_are_kept_apart_by_their_names(tmp_path: Path) -> None:
    text = "| Setup | Step | RSS (MB) |\n| --- | --- | --- |\n"
    for level, setup in enumerate(("plain", "fused", "offloaded")):
        text += "".join(f"| {setup} | {i} | {500 * level + 700} |\n" for i in range(6))
    recording = read_log(tmp_path, text)
    assert {s.process: set(s.y) for s in recording.series} == {
        "plain": {700 * MB},
        "fused": {1200 * MB},
        "offloaded": {1700 * MB},
    }


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (
            "Line #    Mem usage    Increment   Line Contents\n" + "=" * 48 + "\n"
            "     7     39.1 MiB     39.1 MiB   @profile\n"
            "     8                             def fit():\n"
            "     9     41.5 MiB      2.4 MiB       a = load()\n"
            "    10     80.0 MiB     38.5 MiB       b = train(a)\n"
            "    11     81.0 MiB      1.0 MiB       c = test(b)\n",
            "mprof",
        ),
        (
            (
                "[ Top 5 ]\n"
                "/app/cache.py:31: size=812 KiB (+640 KiB), count=9120 (+7000), average=91 B\n"
                "/app/model.py:12: size=201 KiB (+10.2 KiB), count=1200 (+90), average=172 B\n"
                "<string>:4: size=49 KiB (+0 B), count=160 (+0), average=312 B\n"
                "/app/data.py:88: size=12 KiB (+0 B), count=32 (+0), average=384 B\n"
            ),
            "tracemalloc",
        ),
        (
            (
                "    types |   # objects |   total size\n"
                "========= | =========== | ============\n"
                "     list |        8123 |      3.02 MB\n"
                "     dict |        5210 |      2.90 MB\n"
                "      str |       41822 |      2.51 MB\n"
                "      set |         122 |    101.33 KB\n"
            ),
            "memdiag run",
        ),
        (
            (
                "==77== LEAK SUMMARY:\n"
                "==77==    definitely lost: 96 bytes in 3 blocks\n"
                "==77==    indirectly lost: 24 bytes in 1 blocks\n"
                "==77==      possibly lost: 2,304 bytes in 7 blocks\n"
                "==77==    still reachable: 41,960 bytes in 310 blocks\n"
            ),
            "definitely lost",
        ),
    ],
    ids=["by line", "by site", "by type", "lost"],
)
def test_listing_of_one_moment_gets_no_verdict(tmp_path: Path, text: str, remedy: str) -> None:
    with pytest.raises(ReadError, match="one moment") as told:
        read_log(tmp_path, text)
    assert remedy in str(told.value.remedy)


def test_processes_of_one_moment_are_no_restarts_of_one(tmp_path: Path) -> None:
    rows = "".join(f"{4000 - 7 * n}   {9.5 - n / 10:.2f}   server::worker\n" for n in range(6))
    with pytest.raises(ReadError, match="one row per process"):
        read_log(tmp_path, "PID   MEM(GB)   COMMAND\n" + rows)
