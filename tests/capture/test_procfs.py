import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from memdiag.capture.process.linux_procfs import ProcTable, parse_rollup, parse_stat

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.fixture
def table():
    table = ProcTable()
    yield table
    table.close()


@pytest.fixture
def child():
    process = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    yield process
    process.communicate()


def test_a_name_with_parentheses_blanks_and_newlines_is_read_whole():
    tail = b"S 1 2 3 4 5 4194304 " + b"0 " * 12 + b"777 0 0\n"
    stat = parse_stat(b"42 (a) b\n(c) " + tail)
    assert (stat.name, stat.parent, stat.started) == ("a) b\n(c", 1, 777)


def test_rollup_counts_private_pages_as_uss():
    raw = b"5560-7ffd ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss: 300 kB\nPss_Dirty: 5 kB\n"
    raw += b"Private_Clean: 10 kB\nPrivate_Dirty: 20 kB\nSwap: 7 kB\nSwapPss: 7 kB\n"
    assert parse_rollup(raw) == {
        "uss_bytes": 30 * 1024,
        "pss_bytes": 300 * 1024,
        "swap_bytes": 7 * 1024,
    }


def test_readings_agree_with_psutil(table, child):
    process = table.find(child.pid)
    other = psutil.Process(child.pid).memory_full_info()
    assert table.resident_bytes(process.id) == pytest.approx(other.rss, rel=0.05)
    details = table.details(process.id)
    assert details["uss_bytes"] == pytest.approx(other.uss, rel=0.05)
    assert details["pss_bytes"] == pytest.approx(other.pss, rel=0.05)


def test_a_child_is_found_and_gone_once_it_ended(table, child):
    assert child.pid in set(table.children(os.getpid()))
    process = table.find(child.pid)
    child.communicate()
    assert table.find(child.pid) is None
    assert table.resident_bytes(process.id) is None
    assert table.details(process.id) is None


def test_a_zombie_is_no_live_process(table):
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert table.stat(process.pid).dead
        assert table.find(process.pid) is None
    finally:
        process.wait()


def test_a_birth_anywhere_is_noticed(table):
    before = table.births()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    assert table.births() != before


@pytest.mark.alone
def test_the_newborn_of_a_family_are_told_and_its_threads_and_strangers_are_not(table):
    program = """
import os, sys, threading
input()
threading.Thread(target=sys.stdin.read).start()
if os.fork() == 0:
    grandchild = os.fork()
    if grandchild == 0:
        os.execlp("cat", "cat")
    print(os.getpid(), grandchild, flush=True)
    os.waitpid(grandchild, 0)
    os._exit(0)
os.wait()
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        since = table.births()
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as stranger:
            parent.stdin.write(b"\n")
            parent.stdin.flush()
            child, grandchild = map(int, parent.stdout.readline().split())
            until = table.births()
            if until - since > 60:
                pytest.skip("others start too many processes here")
            told = table.born_to([parent.pid], since, until)
            assert list(told.born) == [child, grandchild]
            assert list(table.born_to([os.getpid()], since, until).born) == [stranger.pid]
            stranger.stdin.close()
        parent.stdin.close()
    gone = table.born_to([parent.pid], since, until)
    assert list(gone.born) == []
    assert {child, grandchild} <= set(gone.unseen)


def test_of_very_many_newborn_nothing_is_told(table):
    assert table.born_to([os.getpid()], 1, 100_000) is None
    assert table.born_to([os.getpid()], 30_000, 5) is None


def test_descriptors_are_given_back(table, child):
    before = set(Path("/proc/self/fd").iterdir())
    process = table.find(child.pid)
    table.forget(process.id)
    assert set(Path("/proc/self/fd").iterdir()) <= before


def test_without_a_kept_descriptor_the_reading_is_the_same(table, child, monkeypatch):
    monkeypatch.setattr("memdiag.capture.process.linux_procfs.KEPT_DESCRIPTORS", 0)
    process = table.find(child.pid)
    by_path = table.resident_bytes(process.id)
    monkeypatch.undo()
    table.find(child.pid)
    assert by_path == table.resident_bytes(process.id) > 0
