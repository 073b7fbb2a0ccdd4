"""Whatever happens to memdiag, COMMAND runs to its end and keeps its status."""

import shlex
import signal
import subprocess
import time

import psutil
import pytest
from terminals import MEMDIAG, PATIENCE_S, python

FAILING = ["0", "3", "4", "126", "130", "255"]


@pytest.mark.parametrize("how", ["full", "closed", "pipe"])
def test_stderr_that_nobody_reads_does_not_change_the_status(how, tmp_path):
    redirected = {"full": "2>/dev/full", "closed": "2>&-", "pipe": "2>&1 >&3 | true"}[how]
    for code in ("0", "4"):
        command = shlex.join(
            [*MEMDIAG, "run", "--inconclusive", "pass", "--", "sh", "-c", f"echo out; exit {code}"]
        )
        script = f"exec 3>&1; {{ {command}; echo $? >status; }} {redirected}"
        done = subprocess.run(
            ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (tmp_path / "status").read_text() == f"{code}\n", how
        assert done.stdout.startswith("out\n")


@pytest.mark.parametrize("code", FAILING)
def test_status_of_the_command_is_kept_if_no_memory_is_left_to_judge(code, tmp_path):
    limited = "import resource, os, sys\n"
    limited += "resource.setrlimit(resource.RLIMIT_AS, (400 << 20,) * 2)\n"
    limited += "os.execv(sys.argv[1], sys.argv[1:])\n"
    command = [*python(limited), *MEMDIAG, "run", "-q", "--inconclusive", "pass", "--"]
    done = subprocess.run(
        [*command, "sh", "-c", f"sleep 0.5; exit {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == int(code)
    assert "Traceback" not in done.stderr


def test_command_runs_to_its_end_if_measuring_fails_from_the_start(tmp_path):
    """No more processes, threads or descriptors for this user: measuring is what gives way."""
    limited = "import resource, os, sys\n"
    limited += "resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))\n"
    limited += "os.execv(sys.argv[1], sys.argv[1:])\n"
    command = [*python(limited), *MEMDIAG, "run", "-q", "--", "sh", "-c", "echo out; exit 7"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout) == (7, "out\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_command_that_is_left_running_is_named(tmp_path):
    program = "import signal, sys, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    program += "print('ready', flush=True)\ntime.sleep(60)\n"
    with subprocess.Popen(
        [*MEMDIAG, "run", "-q", "--", *python(program)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as memdiag:
        assert memdiag.stdout is not None
        assert memdiag.stdout.readline() == "ready\n"
        (child,) = (p for p in psutil.Process(memdiag.pid).children() if "python" in p.name())
        for _ in range(3):
            memdiag.send_signal(signal.SIGINT)
            time.sleep(0.2)
        try:
            memdiag.wait(timeout=PATIENCE_S)
        finally:
            child.kill()
        _, said = memdiag.communicate()
    assert f"left running (pid {child.pid})" in said
