"""A process that is stopped and called into goes on as if there had been nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memdiag.capture.probelink.elf_symbols import exported, mapped_files
from memdiag.capture.probelink.ptrace import Refused, Tracee, is_supported

CALLS = 60


def _is_forbidden() -> bool:
    try:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as target:
            with Tracee(target.pid, patience_s=3.0):
                pass
            target.communicate()
    except OSError:
        return True
    return False


pytestmark = pytest.mark.skipif(
    not is_supported() or _is_forbidden(), reason="nothing may be traced here"
)


@contextmanager
def running(program: str) -> Iterator[subprocess.Popen[str]]:
    """A program that says "ready", and ends with its input."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as target:
        assert target.stdout is not None
        assert target.stdout.readline() == "ready\n"
        try:
            yield target
        finally:
            if target.poll() is None:
                target.kill()


def libc(pid: int, name: str) -> int:
    file = next(file for file in mapped_files(pid) if "/libc." in file.name)
    return exported(file, frozenset({name}))[name]


def call_often(pid: int, name: str = "getpid") -> None:
    function = libc(pid, name)
    for _ in range(CALLS):
        with Tracee(pid, patience_s=3.0) as tracee:
            room = tracee.map_room(4096)
            tracee.write(room, b"x")
            result = tracee.call(function)
        assert name != "getpid" or result == pid


WAITS = {
    "sleep": "import time\nwait = lambda: time.sleep(0.002)",
    "lock": "import threading\nlock = threading.Lock(); lock.acquire()\n"
    "wait = lambda: lock.acquire(timeout=0.002)",
    "select": "import select\nwait = lambda: select.select([], [], [], 0.002)",
    "poll": "import select\npoll = select.poll()\nwait = lambda: poll.poll(2)",
    "epoll": "import select\nepoll = select.epoll()\nwait = lambda: epoll.poll(0.002)",
    "pipe": "import os, threading\nr, w = os.pipe()\n"
    "wait = lambda: (threading.Timer(0.001, os.write, (w, b'x')).start(), os.read(r, 1))",
    "child": "import subprocess\nwait = lambda: subprocess.run(['true'], check=True)",
    "computing": "wait = lambda: sum(range(1000))",
}


@pytest.mark.parametrize("how", sorted(WAITS))
def test_system_call_that_was_interrupted_goes_on(how: str) -> None:
    program = (
        "import sys, threading\n"
        f"{WAITS[how]}\n"
        "over = []\n"
        "threading.Thread(target=lambda: over.append(sys.stdin.read())).start()\n"
        "print('ready', flush=True)\n"
        "while not over: wait()\n"
        "print('well', flush=True)\n"
    )
    with running(program) as target:
        call_often(target.pid)
        out, err = target.communicate(timeout=30)
    assert (out, err, target.returncode) == ("well\n", "", 0)


def test_floating_point_registers_are_put_back() -> None:
    program = (
        "import math, sys, threading\n"
        "over = []\n"
        "threading.Thread(target=lambda: over.append(sys.stdin.read())).start()\n"
        "def work():\n"
        "    x = 0.5\n"
        "    for n in range(20000): x = math.fma(x, 1.5, 0.1) % 1.0 if hasattr(math, 'fma') "
        "else (x * 1.5 + 0.1) % 1.0\n"
        "    return x\n"
        "expected = work()\n"
        "print('ready', flush=True)\n"
        "results = {work()}\n"
        "while not over: results.add(work())\n"
        "print(results == {expected}, flush=True)\n"
    )
    with running(program) as target:
        call_often(target.pid, "drand48")
        out, err = target.communicate(timeout=30)
    assert (out, err) == ("True\n", "")


def test_no_signal_is_lost_or_doubled() -> None:
    # A byte for each delivery: Python's own handlers run once for several that come together.
    program = (
        "import os, signal, sys\n"
        "told, tell = os.pipe()\n"
        "os.set_blocking(tell, False)\n"
        "signal.set_wakeup_fd(tell)\n"
        "signal.signal(signal.SIGRTMIN, lambda *_: None)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "print(len(os.read(told, 9999)), flush=True)\n"
    )
    sender = (
        "import os, signal, sys, time\n"
        "for _ in range(500):\n"
        "    os.kill(int(sys.argv[1]), signal.SIGRTMIN)\n"
        "    time.sleep(0.0002)\n"
    )
    with running(program) as target:
        with subprocess.Popen([sys.executable, "-c", sender, str(target.pid)]) as sending:
            call_often(target.pid)
            assert sending.wait(timeout=30) == 0
        out, err = target.communicate("\n", timeout=30)
    assert (out, err) == ("500\n", "")


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_stopped_process_is_refused_and_stays_stopped() -> None:
    with running("print('ready', flush=True); input()") as target:
        os.kill(target.pid, signal.SIGSTOP)
        os.waitpid(target.pid, os.WUNTRACED)
        with pytest.raises(Refused, match="stopped by SIGSTOP"), Tracee(target.pid, patience_s=3.0):
            pass
        until_s = time.monotonic() + 10  # the kernel takes a moment to stop it again
        while state(target.pid) != "T" and time.monotonic() < until_s:
            time.sleep(0.001)
        assert state(target.pid) == "T"
        os.kill(target.pid, signal.SIGCONT)
        target.communicate("\n", timeout=30)
        assert target.returncode == 0


def test_call_to_nowhere_fails_and_the_process_goes_on() -> None:
    with running("print('ready', flush=True); print(input())") as target:
        with (
            pytest.raises(Refused, match="SIGSEGV"),
            Tracee(target.pid, patience_s=3.0) as tracee,
        ):
            tracee.call(16)
        out, err = target.communicate("well\n", timeout=30)
    assert (out, err, target.returncode) == ("well\n", "", 0)


def test_process_that_is_killed_meanwhile_is_no_hang_and_no_crash() -> None:
    for _ in range(20):
        with running("print('ready', flush=True); input()") as target:
            pause = libc(target.pid, "pause")
            with pytest.raises((Refused, OSError)):
                kill_in_call(target, pause)
            assert target.wait(timeout=30) == -signal.SIGKILL


def kill_in_call(target: subprocess.Popen[str], function: int) -> None:
    with Tracee(target.pid, patience_s=3.0) as tracee:
        target.kill()
        tracee.call(function)
