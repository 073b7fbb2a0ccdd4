"""USS and PSS of a tree: processes take turns, within a budget."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping

from process_tables import FakeClock, FakeTable

from memdiag.capture.process.linux_procfs import ProcTable
from memdiag.capture.process.memory_details import DetailSource
from memdiag.capture.process.tree import TREE, Process, ProcessId
from memdiag.values.measurements import Unavailable


class Busy(FakeTable):
    """Reading a process takes this much CPU time."""

    def __init__(self, took_s: float) -> None:
        super().__init__()
        self.took_s = took_s
        self.asked: list[int] = []

    def details(self, process: ProcessId) -> Mapping[str, int | Unavailable] | None:
        self.asked.append(process.pid)
        until_s = time.thread_time() + self.took_s
        while time.thread_time() < until_s:
            pass
        resident = self.resident_bytes(process)
        if not isinstance(resident, int):
            return None
        return {"uss_bytes": 1, "pss_bytes": resident // 4, "swap_bytes": 0}


def tree_of(table: FakeTable, number: int) -> list[Process]:
    return [Process(id=table.spawn(pid, rss=4000), name="python") for pid in range(10, 10 + number)]


def test_a_cheap_tree_that_changes_has_its_sums_at_each_round() -> None:
    table, clock = FakeTable(), FakeClock()
    processes = tree_of(table, 3)
    source = DetailSource(table, clock=clock)
    for number in range(5):
        table.grow(10, 4000 + number)
        assert source.read(processes)[TREE]["pss_bytes"] == 12_000 + number
        clock.s += 1.0


def test_an_idle_tree_has_them_half_as_often_and_one_process_at_each_round() -> None:
    table, clock = FakeTable(), FakeClock()
    processes = tree_of(table, 3)
    tree, alone = DetailSource(table, clock=clock), DetailSource(table, clock=clock)
    rounds = []
    for _ in range(7):
        rounds.append(TREE in tree.read(processes))
        assert TREE in alone.read(processes[:1])
        clock.s += 1.0
    assert rounds == [True, True, False, True, False, True, False]


def test_expensive_processes_take_turns_and_the_sums_follow_each_turn_of_all() -> None:
    table, clock = Busy(0.03), FakeClock()
    processes = tree_of(table, 3)
    source = DetailSource(table, clock=clock)
    rounds = []
    for number in range(9):
        table.grow(10, 4000 + 4 * number)
        rounds.append(source.read(processes))
        clock.s += 60.0
    assert table.asked == [10, 11, 12] * 3
    assert [TREE in found for found in rounds] == [False, False, True] * 3


def test_readings_stay_within_their_share_of_the_time() -> None:
    table, clock = Busy(0.01), FakeClock()
    processes = tree_of(table, 4)
    source = DetailSource(table, clock=clock)
    for _ in range(200):
        source.read(processes)
        clock.s += 1.0
    spent_s = 0.01 * len(table.asked)
    assert 0.003 * 200 / 2 < spent_s < 0.003 * 200 + 0.3 + 0.1


def test_a_first_minute_has_readings_from_its_beginning_to_its_end() -> None:
    table, clock = Busy(0.005), FakeClock()
    processes = tree_of(table, 3)
    source = DetailSource(table, clock=clock)
    known = []
    for second in range(60):
        if TREE in source.read(processes):
            known.append(second)
        clock.s += 1.0
    assert len(known) >= 20
    assert sum(second >= 30 for second in known) >= 8


def test_a_process_that_has_just_started_is_read_first() -> None:
    table, clock = FakeTable(), FakeClock()
    processes = tree_of(table, 2)
    source = DetailSource(table, clock=clock)
    source.read(processes)
    clock.s += 1.0
    processes.append(Process(id=table.spawn(30, rss=8000), name="python"))
    found = source.read(processes)
    assert next(iter(found)) == processes[-1].id
    assert found[TREE]["pss_bytes"] == 16_000


def test_sums_leave_out_a_process_that_has_ended() -> None:
    table, clock = FakeTable(), FakeClock()
    processes = tree_of(table, 2)
    source = DetailSource(table, clock=clock)
    source.read(processes)
    clock.s += 1.0
    table.kill(11)
    found = source.read(processes)
    assert found[TREE]["pss_bytes"] == 4000


def test_pages_of_a_forked_child_are_counted_once() -> None:
    """The child of a process with 64 MB shares them until it writes."""
    program = (
        "import os, sys\n"
        "kept = bytearray(b'x') * (64 << 20)\n"
        "child = os.fork()\n"
        "if child: print(child, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        child = int(parent.stdout.readline())
        table = ProcTable()
        try:
            found = [table.find(parent.pid), table.find(child)]
            processes = [one for one in found if one is not None]
            sums = DetailSource(table).read(processes)[TREE]
            resident = [table.resident_bytes(one.id) for one in processes]
        finally:
            table.close()
            parent.stdin.close()
    assert len(processes) == 2
    pss, total = sums["pss_bytes"], sum(one for one in resident if isinstance(one, int))
    assert isinstance(pss, int)
    assert total - pss >= 60 << 20
