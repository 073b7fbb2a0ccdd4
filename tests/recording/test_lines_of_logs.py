"""What lines of logs share, whatever wrote them: brackets, slashes, marks, clocks, encodings."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError
from memdiag.values.measurements import AxisKind, Unit

N = 12


def test_lines_that_look_like_a_table_without_numbers_are_a_log(tmp_path: Path) -> None:
    lines = [
        f"2024-05-02 10:{n:02}:07,120 | DEBUG | app.memory:17 | GET /x after={90 + n}MB took=3ms"
        for n in range(N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.y[:2].tolist() == [90e6, 91e6]
    assert series.axis.kind is AxisKind.SECONDS


@pytest.mark.parametrize("name", ["message", "@message", "_raw"])
def test_messages_in_a_table_are_lines_of_a_log(tmp_path: Path, name: str) -> None:
    rows = [f'2024-05-02 10:{n:02}:07,17,"GET /x, rss {90 + n} MB"' for n in range(N)]
    recording = read_log(tmp_path, [f"@timestamp,pid,{name}", *rows])
    (series,) = recording.series
    assert series.y[:2].tolist() == [90e6, 91e6]
    assert np.diff(series.x).tolist() == [60] * (N - 1)
    assert any("messages" in note for note in recording.notes)


def test_what_a_jvm_says_of_its_memory_is_read_by_its_names(tmp_path: Path) -> None:
    lines = [
        f"10:{n:02}:00 heap init = 26843(26K) used = {90000 + n}(87K) committed = 900000(878K)"
        for n in range(N)
    ]
    series = series_of(read_log(tmp_path, lines), "used_bytes")
    assert series.y[:2].tolist() == [90000, 90001]


def test_the_number_of_a_thread_in_brackets_is_no_count(tmp_path: Path) -> None:
    lines = [
        f"2024-05-02 10:{n:02}:07 INFO [Memory] (pool-thread-{n * 5 % 7}) heap used={90 + n} MB"
        for n in range(N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.y[:2].tolist() == [90e6, 91e6]


def test_an_open_bracket_has_a_name_of_its_own(tmp_path: Path) -> None:
    lines = [f"  {50 * n}/900 rows written (RSS {300 + n} MB, 7 rows/s)" for n in range(1, N)]
    (series,) = read_log(tmp_path, lines).series
    assert (series.column, series.y[0], series.x[1]) == ("RSS (bytes)", 301e6, 100)


def test_a_name_before_an_open_bracket_stays_if_it_is_of_memory(tmp_path: Path) -> None:
    lines = [f"step {n} Java Heap (reserved {900 + n} MB)" for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert series.column == "Java Heap (reserved (bytes)"


def test_slashes_stand_between_the_parts_of_a_line(tmp_path: Path) -> None:
    lines = [f"배치 {n}회차 완료 / 메모리: {900 + n}MB / 스레드: 7개" for n in range(1, N)]
    (series,) = read_log(tmp_path, lines).series
    assert (series.column, series.y[0], series.x[0]) == ("메모리 (bytes)", 901e6, 1)
    assert series.axis.kind is AxisKind.STEP


def test_a_slash_between_two_names_of_two_values_stays(tmp_path: Path) -> None:
    lines = [f"step {n} / mem used / total: {5 + n} / 90 GB / loss: 0.1" for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert series.y[:2].tolist() == [5e9, 6e9]


def test_a_limit_with_a_point_between_thousands_does_not_decide_on_commas(tmp_path: Path) -> None:
    lines = [f"08.{n + 10} step {n} ram 1.0{n + 10},5 MB (queue: {n % 3})" for n in range(N)]
    (series,) = read_log(tmp_path, [*lines, "The machine has 2.048 MB."]).series
    assert series.y[:2].tolist() == [1010.5e6, 1011.5e6]


@pytest.mark.parametrize("clock", ["kl. 08.{:02}", "kl 8:{:02}", "klo 8.{:02}"])
def test_a_clock_behind_an_abbreviation_is_one(tmp_path: Path, clock: str) -> None:
    lines = [f"{clock.format(n * 3)}  hukommelse {400 + n},5 MB" for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert np.diff(series.x).tolist() == [180] * (N - 1)
    assert series.y[0] == 400.5e6


@pytest.mark.parametrize("unit", ["MiB", "KiB"])
def test_what_is_available_stands_behind_what_top_says_of_swap(tmp_path: Path, unit: str) -> None:
    lines = [
        f"10:{n:02}:00\n{unit} Mem :  9000.0 total,  800.0 free,  {300 + n}.0 used,  50.0 cache\n"
        f"{unit} Swap:   2048.0 total,   2048.0 free,      0.0 used.  {8000 - n}.2 avail Mem "
        for n in range(N)
    ]
    found = {one.column: one for one in read_log(tmp_path, lines).series}
    assert np.nanmax(found["mem avail (bytes)"].y) == 8000.2 * (1 << (20 if unit == "MiB" else 10))


def test_a_size_behind_a_count_is_a_size(tmp_path: Path) -> None:
    lines = [f"step {n} Process 7: {90 + n} nodes malloced for {700 + n} KB" for n in range(N)]
    found = {one.column: one for one in read_log(tmp_path, lines).series}
    assert found["nodes malloced for (bytes)"].y[0] == 700e3
    assert found["nodes"].y[0] == 90


def test_a_number_behind_a_preposition_at_the_start_is_a_position(tmp_path: Path) -> None:
    lines = [f"on {5000 * n}: rss {900 + n} MB, 4% hits" for n in range(1, N)]
    (series,) = read_log(tmp_path, lines).series
    assert series.x[:2].tolist() == [5000, 10000]


def test_a_mail_is_decoded(tmp_path: Path) -> None:
    head = ["From: a@example.com", "Content-Transfer-Encoding: quoted-printable", ""]
    lines = [f"10:{n:02} jobs=3D{n} mem=3D{n + 70}=\n0MB queue=3D5" for n in range(N)]
    (series,) = read_log(tmp_path, [*head, *lines]).series
    assert series.y[:2].tolist() == [700e6, 710e6]


def test_the_key_of_an_object_names_its_columns(tmp_path: Path) -> None:
    steps = list(range(0, 10 * N, 10))
    columns = {
        "loss": {"steps": steps, "values": [0.5] * N},
        "host.rss_mb": {"steps": steps, "values": [300 + n for n in range(N)]},
    }
    (series,) = read_log(tmp_path, json.dumps(columns, indent=1)).series
    assert (series.y[0], series.x[1]) == (300e6, 10)


def test_a_dictionary_of_lists_is_read(tmp_path: Path) -> None:
    values = {"loss": [0.5] * N, "rss_mb": [300.5 + n for n in range(N)]}
    (series,) = read_log(tmp_path, ["so far:", str(values)]).series
    assert series.y[:2].tolist() == [300.5e6, 301.5e6]


def test_names_with_blanks_may_be_apart_from_their_numbers(tmp_path: Path) -> None:
    rows = [f"      {n:2}       41.{n % 7}          {20 + n}.5" for n in range(1, N)]
    lines = ["  Chapter 5.", "", " Epoch    Time (min)    Peak RAM (GB)", "", *rows, "", "5"]
    (series,) = read_log(tmp_path, lines).series
    assert (series.axis.kind, series.y[0]) == (AxisKind.EPOCH, 21.5e9)


def test_a_header_of_words_that_comes_again_is_one(tmp_path: Path) -> None:
    lines = [
        f"-- {n}\nJobId State ResidentSize Disk\n71    2     {40960 * n}   9" for n in range(1, N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.y[:2].tolist() == [40960, 81920]


@pytest.mark.parametrize("behind", [" +0000 UTC", " +0100 CET", " +0000 UTC m=+0.013"])
def test_times_as_go_prints_them(tmp_path: Path, behind: str) -> None:
    rows = [f"2024-03-11 09:{n:02}:00{behind},{900 + n}" for n in range(N)]
    (series,) = read_log(tmp_path, ["time,rss_mb", *rows]).series
    assert np.diff(series.x).tolist() == [60] * (N - 1)


def test_samples_with_times_of_their_own_are_in_the_order_of_time(tmp_path: Path) -> None:
    lines = [
        f'container_memory_working_set_bytes{{container="{name}"}} {at + n} {1730790000000 + ms}'
        for n in range(N)
        for name, at, ms in (("a", 4096, 60000 * n + 9000), ("b", 40960, 60000 * n))
    ]
    found = read_log(tmp_path, lines).series
    assert {one.axis.kind for one in found} == {AxisKind.SECONDS}
    for one in found:
        assert np.diff(one.x[np.isfinite(one.y)]).tolist() == [60] * (N - 1)


@pytest.mark.parametrize(
    "piece",
    [
        *(" / a: 1", "kl. ", "on 1: ", "MiB Swap: 0.", "x - (RSS ", "'a': [", "INFO a.", "ps h "),
        *("nvidia-smi ", "docker stats ", "pprof ", "sleep ", "every "),
    ],
)
def test_what_repeats_in_one_line_takes_no_time(tmp_path: Path, piece: str) -> None:
    text = piece * ((1 << 20) // len(piece))
    started = time.perf_counter()
    for content in (text, f"step 1 rss 3 MB\n{text}\n" * 2):
        try:
            read_log(tmp_path, content)
        except Exception:
            continue
    assert time.perf_counter() - started < 20


@pytest.mark.parametrize(
    "command",
    [
        "$ while sleep 20; do ps --no-headers -o etimes,rss,pcpu -p 7; done",
        "$ while sleep 20; do ps -o etimes,rss,pcpu -p 7 --no-headers; done",
        "watch: ps -p 7 -o etimes,rss,pcpu --no-header",
    ],
)
def test_ps_without_headers_names_its_columns(tmp_path: Path, command: str) -> None:
    rows = [f"  {20 * n}  {84000 + n} 7{n % 9}.1" for n in range(N)]
    series = series_of(read_log(tmp_path, [command, *rows]), "rss_bytes")
    assert (series.x[1], series.y[0]) == (20, 84000 * 1024)


@pytest.mark.parametrize("word", ["handled", "processed", "Served"])
def test_a_count_of_what_is_done_is_a_position(tmp_path: Path, word: str) -> None:
    """Also on a line of its own, above an object as Node prints it."""
    lines = [f"12:00:{n:02} {word} {1000 * n} requests, rss: {84 + n} MB" for n in range(N)]
    apart = [
        line
        for n in range(N)
        for line in (
            f"12:00:{n:02} {word} {1000 * n} messages",
            "{",
            f"  rss: {84000512 + n},",
            "}",
        )
    ]
    for content in (lines, apart):
        (series,) = read_log(tmp_path, content).series
        assert series.axis.kind is AxisKind.REQUEST
        assert np.diff(series.x).tolist() == [1000] * (N - 1)


def test_a_speed_is_no_part_of_the_name_behind_it(tmp_path: Path) -> None:
    lines = [
        f"2024-03-11 08:{n:02}:49 - INFO - step {100 * n} 21.3 samples/s mem {2000 + n}MB"
        for n in range(N)
    ]
    (series,) = read_log(tmp_path, ["08:00 Namespace(batch=32, lr=3e-4)", *lines]).series
    assert (series.axis.kind, series.x[1], series.y[1]) == (AxisKind.STEP, 100, 2001e6)


def _ps(pipe: str) -> str:
    return f"me@box:~$ while sleep 60; do ps -o pid,rss,etime,cmd -p 7 {pipe}; done"


@pytest.mark.parametrize(
    "pipe",
    [
        *("| tail -1", "|tail -n 1", "| tail -n +2", "| sed 1d", "| sed -n '2p'", "| grep -v PID"),
        *("| awk 'NR>1'", '| awk "NR==2"', "| grep '[p]ython' | sort -k2 | head -1"),
        *("| sed '1d' | tee -a log", "--no-headers | sed 's/^ *//'"),
    ],
)
@pytest.mark.parametrize("front", ["", "2025-02-24 16:{:02}:04 ", "17404137{:02} "])
def test_ps_behind_whose_header_is_left_out(tmp_path: Path, pipe: str, front: str) -> None:
    rows = [f"{front.format(n)}  7 {84000 + n}    59:{n:02} python 3.py" for n in range(N)]
    later = [f"{front.format(59)} 7 {85000 + n} 01:00:{n:02} python 3.py" for n in range(N)]
    lines = ["[1] 17342", _ps(pipe), *rows, *(later if not front else ()), "^C", "me@box:~$ ls"]
    series = series_of(read_log(tmp_path, lines), "rss_bytes")
    assert series.y[:N].tolist() == [1024 * (84000 + n) for n in range(N)]
    assert series.axis.kind is AxisKind.SECONDS
    assert set(np.diff(series.x[:N])) == {60 if " 16:" in front else 1}


@pytest.mark.parametrize(
    ("command", "row"),
    [
        (_ps("| tail -1 | awk '{print $2, $1, $3, $4}'"), "{} 7 01:03 python"),
        (_ps("| tail -1 | cut -c3-"), "7 {} 01:03 python"),
        (_ps("| wc -l"), "7 {} 01:03 python"),
        (_ps("| tail -1"), "3 7 {} 01:03 python"),  # a count in front
        (_ps("| tail -1"), "7 {} 512 python train.py"),
        ("$ ps -o pid,rss,cmd -p 7 | tail -1", "3 7 {} python train.py"),
        ("$ ps -o rss,vsz -p 7 | tail -1\n$ ps -o vsz,rss -p 7 | tail -1", "512 {}"),
        ("$ ps -o rss=,cmd= -p 7 | sed 's/python/7/'", "{} 7"),
    ],
)
def test_columns_that_the_command_does_not_show_are_refused(
    tmp_path: Path, command: str, row: str
) -> None:
    with pytest.raises(ReadError):
        read_log(tmp_path, [command, *(row.format(84000 + n) for n in range(N))])


def test_ps_of_several_processes_without_its_header(tmp_path: Path) -> None:
    lines = ["$ while sleep 9; do date; ps -eo rsz,pid,args | grep [w]ork; done"]
    for n in range(N):
        lines += [f"Mon Feb 24 16:{n:02}:04 CET 2025", f"{900 + n} 71 work a", f"{700} 72 work b"]
    series = read_log(tmp_path, lines).series
    assert [one.process for one in series] == ["work a", "work b"]
    assert series[0].y.tolist() == [1024 * (900 + n) for n in range(N)]
    assert np.diff(series[0].x).tolist() == [60] * (N - 1)


def test_lines_by_epoch_are_read_beside_those_by_iteration(tmp_path: Path) -> None:
    """`json_stats` of PySlowFast: the resident memory is in the lines of epochs alone."""
    lines = []
    for epoch in range(1, N + 1):
        for iteration in (200, 400):
            lines.append(
                f'json_stats: {{"_type": "train_iter", "epoch": "{epoch}/50", '
                f'"gpu_mem": "11.83G", "iter": "{iteration}/620", "lr": 0.1}}'
            )
        lines.append(
            f'json_stats: {{"RAM": "{36 + epoch}.50/503.58G", "_type": "train_epoch", '
            f'"epoch": "{epoch}/50", "gpu_mem": "11.83G", "lr": 0.1}}'
        )
    recording = read_log(tmp_path, lines)
    (ram,) = [one for one in recording.series if "gpu" not in one.metric]
    assert ram.y[~np.isnan(ram.y)].tolist() == [(36.5 + epoch) * 1e9 for epoch in range(1, N + 1)]


def test_a_number_with_a_unit_of_its_own_has_not_that_of_another(tmp_path: Path) -> None:
    """Seconds of CPU beside a working set in MB, whose name is not known."""
    lines = [f"16:{n:02}:01  WS(MB) 2,31{n % 7}.5  CPU(s) {12 + 29 * n}.0" for n in range(20)]
    with pytest.raises(ReadError):
        read_log(tmp_path, lines)


@pytest.mark.parametrize("verb", ["occupies", "occupying", "holding", "Utilizing", "consume"])
def test_a_size_behind_a_verb_of_use_is_memory_beside_counts(tmp_path: Path, verb: str) -> None:
    lines = []
    for n in range(30):
        lines += [
            f"2025-03-01 10:{n:02d}:00 done in {20 + n % 7}ms allocations: {4000 + n % 5 * 900}",
            f"2025-03-01 10:{n:02d}:10 watchdog: {verb} {500 + n}.5 MB",
        ]
    found = {one.unit: one for one in read_log(tmp_path, lines).series}
    memory = found[Unit.BYTES]
    assert memory.y[np.isfinite(memory.y)].tolist() == [(500.5 + n) * 1e6 for n in range(30)]
