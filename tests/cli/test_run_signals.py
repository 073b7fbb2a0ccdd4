"""Signals and job control reach the target as they would without memdiag."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import CONCLUSION, MEMDIAG, PATIENCE_S, Terminal, python, recordings

# Tells every SIGINT and SIGTERM it gets, and goes on until its third line of input or SIGQUIT.
_TELLS = """
import signal, sys, time
def tell(number, frame):
    print("got", signal.Signals(number).name, flush=True)
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(s, tell)
print("ready", flush=True)
while True:
    try:
        line = sys.stdin.readline()
    except InterruptedError:
        continue
    if not line or line == "end\\n":
        break
print("over", flush=True)
sys.exit(5)
"""


def run(*command: str, **more) -> subprocess.Popen:
    more = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.Popen(
        [*MEMDIAG, "run", "--quiet", "--", *command], text=True, start_new_session=True, **more
    )


def until(process: subprocess.Popen, line: str) -> None:
    while True:
        found = process.stdout.readline()
        assert found, f"{line!r} never came"
        if found.strip() == line:
            return


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGINT"])
def test_a_signal_to_memdiag_alone_is_passed_on_once(name, tmp_path):
    process = run(*python(_TELLS), cwd=tmp_path)
    until(process, "ready")
    process.send_signal(getattr(signal, name))
    until(process, f"got {name}")
    out, _ = process.communicate("end\n", timeout=PATIENCE_S)
    assert out == "over\n"
    assert process.returncode == (130 if name == "SIGINT" else 5)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGINT"])
def test_a_signal_to_the_whole_group_comes_once(name, tmp_path):
    process = run(*python(_TELLS), cwd=tmp_path)
    until(process, "ready")
    os.killpg(process.pid, getattr(signal, name))
    until(process, f"got {name}")
    out, _ = process.communicate("end\n", timeout=PATIENCE_S)
    assert out == "over\n"


def test_a_target_ended_by_a_signal_gives_128_plus_its_number(tmp_path):
    process = run(*python("import time; print('ready'); time.sleep(99)"), cwd=tmp_path)
    until(process, "ready")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert re.search(CONCLUSION, err)


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc")
def test_ignored_signals_stay_ignored_and_no_signal_is_blocked(tmp_path):
    program = "print(open('/proc/self/status').read())"
    # glibc ignores its own two signals (32, 33) in whatever posix_spawn starts.
    internal = 0x180000000

    def masks(*before: str) -> dict[str, int]:
        status = subprocess.run(
            ["nohup", *before, *python(program)],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        lines = (line.partition(":")[::2] for line in status.splitlines())
        return {k: int(v, 16) & ~internal for k, v in lines if k in ("SigBlk", "SigIgn")}

    alone = masks()
    assert alone["SigIgn"] & 1 << (signal.SIGHUP - 1)
    assert masks(*MEMDIAG, "run", "-q", "--") == alone


def test_ctrl_c_reaches_the_target_once_and_gives_130(tmp_path):
    command = [*MEMDIAG, "run", "-o", "r.csv", "--", *python(_TELLS)]
    with Terminal(command, directory=tmp_path) as terminal:
        terminal.until("ready")
        terminal.type("\x03")
        terminal.until("got SIGINT")
        terminal.type("end\n")
        assert terminal.finish() == 130
        assert terminal.screen.count(b"got SIGINT") == 1
        assert re.search(CONCLUSION.encode(), terminal.screen)
    assert (tmp_path / "r.csv").exists()


def test_ctrl_c_ends_a_plain_program_and_the_loop_around_it(tmp_path):
    program = "import time; print('ready'); time.sleep(99)"
    script = 'for i in 1 2 3; do "$@"; echo "status $?"; done; echo after'
    command = ["bash", "-c", script, "-", *MEMDIAG, "run", "-q", "--", *python(program)]
    with Terminal(command, directory=tmp_path) as terminal:
        terminal.until("ready")
        terminal.type("\x03")
        assert terminal.finish() == 130
        assert b"after" not in terminal.screen
        assert re.search(CONCLUSION.encode(), terminal.screen)


def test_the_third_ctrl_c_leaves_a_target_alone_that_ignores_it(tmp_path):
    program = (
        "import os, signal, sys, time\n"
        "def tell(*_): print('no', flush=True)\n"
        "signal.signal(signal.SIGINT, tell)\n"
        "print('pid', os.getpid(), 'ready', flush=True)\n"
        "while True: time.sleep(0.1)"
    )
    command = [*MEMDIAG, "run", "-q", "--", *python(program)]
    with Terminal(command, directory=tmp_path) as terminal:
        pid = int(terminal.until(r"pid (\d+) ready").group(1))
        try:
            # Two that come before memdiag looked are one to it; a person presses again as well.
            for pressed in range(1, 20):
                terminal.type("\x03")
                terminal.until("(no.*)" * pressed)
                if b"press Ctrl-C again to leave it running" in terminal.screen:
                    break
            if re.search(CONCLUSION.encode(), terminal.screen) is None:
                terminal.type("\x03")
            terminal.until(CONCLUSION)
            assert terminal.process.wait(PATIENCE_S) == 130
            os.kill(pid, 0)
        finally:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc")
def test_ctrl_z_stops_both_and_fg_continues_both(tmp_path):
    memdiag = " ".join([*MEMDIAG, "run", "-o", "r.csv", "--"])
    (tmp_path / "target.py").write_text(_TELLS)
    with Terminal(["bash", "--norc", "-i"], directory=tmp_path, environ={"PS1": "PROMPT "}) as term:
        term.until("PROMPT")
        term.type(f"{memdiag} {sys.executable} -u target.py\n")
        term.until("ready")
        term.type("\x1a")
        term.until("Stopped")
        term.until("Stopped.*PROMPT")
        term.type("jobs -l; ps -o stat= -t $(tty) | grep -c T\n")
        term.until(r"\n2\r")
        term.type("fg\n")
        term.until(r"fg\r\n.*target.py")
        term.type("end\n")
        term.until("over")
        term.until(CONCLUSION)
        term.type("echo status $?\n")
        term.until("status 5")
        term.type("exit\n")
        term.finish()


def test_sigkill_of_memdiag_leaves_the_target_running_and_the_recording_readable(tmp_path):
    process = run(*python(_TELLS), cwd=tmp_path)
    until(process, "ready")
    (path,) = recordings(tmp_path)
    while len(path.read_text().splitlines()) < 8:
        os.sched_yield()
    process.kill()
    process.wait()
    process.stdin.write("end\n")
    process.stdin.flush()
    until(process, "over")  # ended in its own way, long after memdiag
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()
    rows = path.read_text().splitlines()
    assert all(row.count(",") == rows[0].count(",") for row in rows[:-1])
    found = subprocess.run(
        [*MEMDIAG, "analyze", "--json", str(path)], capture_output=True, text=True, check=False
    )
    assert found.returncode in (0, 3), found.stderr
