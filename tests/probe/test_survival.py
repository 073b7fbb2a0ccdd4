"""Nothing that happens to memdiag, the disk or the process's limits ever reaches the program."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time

import pytest

from memdiag.capture.probelink.ring_reader import Kind

# More of them with `make kills`.
_KILLS = int(os.environ.get("MEMDIAG_KILLS", "20"))
SESSION = "import sys, os\nsession = sys.modules['_memdiag_probe'].listener\n"


def test_nothing_written_is_lost_at_sigkill(watched, python) -> None:
    code = (
        SESSION + "n = 0\n"
        "sys.stdin.readline()\n"
        "while True:\n"
        "    n += 1\n"
        "    session.step(n)\n"
        "    sys.stdout.write('%d\\n' % n)\n"
        "    sys.stdout.flush()\n"
    )
    chance = random.Random(0)
    for _ in range(_KILLS):
        with watched.start(python, "-c", code) as target:
            target.stdin.write("go\n")
            target.stdin.flush()
            for _ in range(chance.randrange(1, 400)):
                said = int(target.stdout.readline())
            target.kill()
            said = max([said, *map(int, target.stdout.read().split("\n")[:-1])])
        assert target.returncode == -signal.SIGKILL
        seen = [e.step for e in watched.events() if e.process.pid == target.pid]
        assert seen[: said + 1] == list(range(1, len(seen[: said + 1]) + 1))
        assert len(seen) >= said
    assert watched.reader.lost == 0


def test_program_outlives_its_channel(watched, python) -> None:
    code = (
        SESSION + "session.step(1)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "for n in range(10000): session.step(n)\n"
        "pid = os.fork()\n"
        "session.step(1)\n"
        "if pid == 0: os._exit(0)\n"
        "print('fine', os.waitpid(pid, 0)[1], flush=True)\n"
    )
    with watched.start(python, "-c", code) as target:
        assert target.stdout.readline() == "ready\n"
        shutil.rmtree(watched.directory)
        out, _ = target.communicate("go\n", timeout=60)
    assert (out, target.returncode) == ("fine 0\n", 0)


@pytest.mark.parametrize(
    "limit",
    [
        "RLIMIT_FSIZE, (0, 0)",
        "RLIMIT_FSIZE, (100000, 100000)",
        *(f"RLIMIT_NOFILE, ({number}, {number})" for number in (4, 5, 6, 8)),
    ],
)
def test_program_outlives_a_full_disk_and_a_lack_of_descriptors(watched, python, limit) -> None:
    program = (
        "import sys\n"
        "session = getattr(sys.modules.get('_memdiag_probe'), 'listener', None)\n"
        "if session:\n"
        "    for n in range(9999): session.step(n)\n"
        "print('fine')\n"
    )
    code = (
        "import os, resource, sys\n"
        f"resource.setrlimit(resource.{limit})\n"
        f"os.execv(sys.executable, [sys.executable, '-c', {program!r}])"
    )
    with_us, without = watched.run(python, "-c", code), watched.run_without(python, "-c", code)
    assert (with_us.stdout, with_us.stderr) == (without.stdout, without.stderr)
    assert with_us.returncode == without.returncode


def test_steps_go_on_after_the_program_closed_all_descriptors(watched, python) -> None:
    code = (
        SESSION + "session.step(1)\n"
        "os.closerange(3, 4096)\n"
        "for n in range(900): os.open('/proc/self/status', os.O_RDONLY)\n"
        "for n in range(2, 300): session.step(n)\n"
    )
    assert watched.run(python, "-c", code).stderr == ""
    events = [e for e in watched.events() if e.kind is Kind.STEP]
    assert [event.step for event in events] == list(range(1, 300))
    sizes = [event.rss_bytes for event in events if event.rss_bytes is not None]
    assert len(sizes) > 20
    assert all(1 << 20 < size < 1 << 30 for size in sizes)


def test_files_of_the_program_stay_open_when_it_forks(watched, python, tmp_path) -> None:
    written = tmp_path / "log"
    code = (
        SESSION + "session.step(1)\n"
        "os.closerange(3, 4096)\n"
        f"fds = [os.open({str(written)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND) "
        "for _ in range(40)]\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    session.step(2)\n"
        "    import gc; gc.collect()\n"
        "    for fd in fds: os.write(fd, b'x')\n"
        "    os._exit(0)\n"
        "sys.exit(os.waitpid(pid, 0)[1])\n"
    )
    done = watched.run(python, "-c", code)
    assert (done.stderr, done.returncode) == ("", 0)
    assert written.read_text() == "x" * 40


def test_signal_handlers_may_tag_in_the_midst_of_a_tag(watched, python) -> None:
    code = (
        SESSION + "import signal\n"
        "count = 0\n"
        "def handler(*_):\n"
        "    global count\n"
        "    count += 1\n"
        "    session.counter('from handler', count)\n"
        "signal.signal(signal.SIGALRM, handler)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\n"
        "n = 0\n"
        "while count < 100:\n"
        "    n += 1\n"
        "    session.step(n)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "print(n)\n"
    )
    done = watched.run(python, "-c", code)
    assert done.stderr == ""
    counters = [e.value for e in watched.events() if e.kind is Kind.COUNTER]
    assert len(counters) >= 5
    # On a slow machine the next signal may interrupt the handler before it has told its count.
    assert sorted(counters) == list(range(int(min(counters)), int(max(counters)) + 1))


def test_what_a_signal_handler_raises_reaches_the_program(watched, python) -> None:
    code = (
        SESSION + "import signal\n"
        "class Alarm(BaseException): pass\n"
        "def handler(*_): raise Alarm\n"
        "signal.signal(signal.SIGALRM, handler)\n"
        "try:\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
        "    while True: session.step(1)\n"
        "except Alarm: print('raised')\n"
    )
    assert watched.run(python, "-c", code).stdout == "raised\n"


def test_tag_at_the_recursion_limit_raises_nothing_of_ours(watched, python) -> None:
    code = (
        SESSION + "def down(n):\n"
        "    try: return down(n + 1)\n"
        "    except RecursionError:\n"
        "        session.step(n)\n"
        "        raise\n"
        "try: down(0)\n"
        "except RecursionError as error: print(type(error).__name__)\n"
    )
    assert watched.run(python, "-c", code).stdout == "RecursionError\n"


def test_children_without_a_word_cost_no_file(watched, python) -> None:
    code = SESSION + ("for _ in range(50):\n    if os.fork() == 0: os._exit(0)\n    os.wait()\n")
    began_s = time.monotonic()
    assert watched.run(python, "-c", code).returncode == 0
    assert time.monotonic() - began_s < 30
    assert len(list(watched.directory.iterdir())) == 1


def test_before_torch_is_there_only_a_thread_that_waits_and_no_slow_module(watched) -> None:
    code = (
        "import sys\n"
        "with open('/proc/self/stat') as file: print(file.read().split()[19])\n"
        "slow = {'threading', 'ctypes', 'typing', 'inspect', 'mmap', 'collections', 're'}\n"
        "print(sorted(slow & set(sys.modules)))\n"
    )
    child = (
        f"import os, sys; os.spawnv(os.P_WAIT, sys.executable, [sys.executable, '-c', {code!r}])"
    )
    alone = "1\n[]\n"
    for command in (["-S", "-c", code], ["-c", child]):
        assert watched.run_without(sys.executable, *command).stdout == alone
        assert watched.run(sys.executable, *command).stdout == alone
    assert watched.run_without(sys.executable, "-c", code).stdout == alone
    # The process that memdiag itself starts: whether it computes is known after two seconds.
    assert watched.run(sys.executable, "-c", code).stdout == "2\n[]\n"


def test_ring_is_no_slow_growth_of_the_process(watched, python) -> None:
    code = SESSION + (
        "for n in range(4096):\n    if n % 100 == 0: session.measure_next()\n    session.step(n)\n"
    )
    watched.run(python, "-c", code)
    told = [e.rss_bytes for e in watched.events() if e.kind is Kind.STEP and e.step > 50]
    sizes = [size for size in told if size is not None]
    assert len(sizes) > 10
    assert max(sizes) - min(sizes) < 100_000
