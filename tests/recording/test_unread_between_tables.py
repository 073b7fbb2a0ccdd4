"""Tables that come again, and amounts of memory in the lines between them."""

from __future__ import annotations

from pathlib import Path

from logs import read_log, series_of

from memdiag.analysis.diagnose import diagnose
from memdiag.values.verdict import Reason, Verdict

N = 12
DAYS = [f"{9 if n % 2 else 8}:59:{n:02}.000 CEST Mon Sep {10 + n} 2024" for n in range(N)]


def processes(used: int, held: int, clock: str) -> list[str]:
    return [
        "sw1#show clock",
        clock.zfill(12),
        f"Processor Pool Total: 1712340332 Used:  {used} Free: {1712340332 - used}",
        " PID TTY  Allocated      Freed    Holding    Getbufs",
        f" 212   0  {held + 67493088:9}   67493088  {held:9}          0",
        " 381   0   48112712   32114715   15880801          0",
    ]


def test_what_is_held_is_read_and_not_the_sum_of_what_was_allocated(tmp_path: Path) -> None:
    screens = [processes(416681027, 33746544 + n * 10**7, day) for n, day in enumerate(DAYS)]
    recording = read_log(tmp_path, [line for screen in screens for line in screen])
    series = series_of(recording, "holding_memory", "pid 212")
    assert series.y.tolist() == [33746544 + n * 10**7 for n in range(N)]
    assert not any("allocated" in one.metric for one in recording.series)


def test_times_with_a_date_in_words_do_not_go_back(tmp_path: Path) -> None:
    screens = [processes(416681027, 33746544 + n * 10**7, day) for n, day in enumerate(DAYS)]
    recording = read_log(tmp_path, [line for screen in screens for line in screen])
    x = series_of(recording, "holding_memory", "pid 212").x
    assert (x[1:] > x[:-1]).all()
    assert x[-1] - x[0] > 10 * 86400


def test_times_of_day_that_go_back_count_as_no_time(tmp_path: Path) -> None:
    clocks = [f"0{9 if n % 2 else 8}:59:{n:02}" for n in range(N)]
    screens = [processes(416681027, 33746544 + n * 10**7, day) for n, day in enumerate(clocks)]
    series = series_of(
        read_log(tmp_path, [line for screen in screens for line in screen]),
        "holding_memory",
        "pid 212",
    )
    assert series.y.tolist() == [33746544 + n * 10**7 for n in range(N)]
    assert series.axis.name == "tick"


def test_flat_rows_do_not_show_that_an_amount_between_them_is_flat(tmp_path: Path) -> None:
    flat = [processes(416681027 + n * 10**7, 33746544, day) for n, day in enumerate(DAYS)]
    recording = read_log(tmp_path, [line for screen in flat for line in screen])
    assert "not read, in the lines between the tables: Free" in str(recording.notes)
    found = diagnose(recording)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.deciding is not None
    assert found.deciding.reason is Reason.UNREAD_CELLS


def test_cells_beside_their_names_are_read_in_their_order(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(N)
        for line in (
            f" System pool information   Snapshot taken: {10 + n}.09.2024 07:00:00",
            "",
            " Tag  Type     Allocs            Frees            Diff   Bytes            Per Alloc",
            "",
            f" VfdX Nonp    12660548 (  5)    12206107 (  7)    454441     {72710704 + n} (0)  160",
            " EtwB Nonp    19608479 (  8)    19606215 (  4)      2264     20381696 (0)   9000",
            "",
        )
    ]
    series = [one for one in read_log(tmp_path, lines).series if one.metric == "memory_bytes"]
    assert {one.process: one.y[-1] for one in series} == {"VfdX": 72710715, "EtwB": 20381696}
