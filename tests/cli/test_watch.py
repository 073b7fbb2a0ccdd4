"""`memdiag watch`: measures a running process, changes nothing, always reports."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import MEMDIAG, PATIENCE_S, python

_SLEEPS = "print('ready', flush=True); input(); print('over')"


def watch(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*MEMDIAG, "watch", *arguments],
        cwd=directory,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.fixture
def target():
    with subprocess.Popen(
        python(_SLEEPS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        if process.poll() is None:
            process.communicate("\n")


def wait_for_rows(path: Path, count: int = 8) -> None:
    while not path.exists() or len(path.read_text().splitlines()) < count:
        os.sched_yield()


def ending(directory: Path) -> str:
    return json.loads((directory / "r.meta.json").read_text())["ending"]["why"]


def test_it_ends_when_the_process_ends(target, tmp_path):
    watching = watch(tmp_path, "--pid", str(target.pid), "-o", "r.csv")
    wait_for_rows(tmp_path / "r.csv")
    out, _ = target.communicate("\n")
    assert out == "over\n"
    stdout, stderr = watching.communicate(timeout=PATIENCE_S)
    assert watching.returncode in (0, 3)
    assert stdout == ""
    assert stderr.rstrip().endswith(" r.csv")
    assert ending(tmp_path) == "the process has ended"


def test_ctrl_c_ends_the_watch_with_the_verdicts_code_and_not_the_process(target, tmp_path):
    watching = watch(tmp_path, "--pid", str(target.pid), "-o", "r.csv")
    wait_for_rows(tmp_path / "r.csv")
    watching.send_signal(signal.SIGINT)
    _, stderr = watching.communicate(timeout=PATIENCE_S)
    assert watching.returncode in (0, 3)
    assert stderr.rstrip().endswith(" r.csv")
    assert "Ctrl-C" in ending(tmp_path)
    assert target.poll() is None


def test_duration_ends_the_watch_and_not_the_process(target, tmp_path):
    watching = watch(tmp_path, "--pid", str(target.pid), "--duration", "0.5", "-o", "r.csv")
    watching.communicate(timeout=PATIENCE_S)
    assert "--duration" in ending(tmp_path)
    assert target.poll() is None


def test_json_has_stdout_to_itself(target, tmp_path):
    options = ["--duration", "0.5", "--json", "--json-file", "f.json"]
    watching = watch(tmp_path, "--pid", str(target.pid), "-o", "r.csv", *options)
    out, err = watching.communicate(timeout=PATIENCE_S)
    document = json.loads(out)
    assert document["exit_code"] == watching.returncode
    assert document == json.loads((tmp_path / "f.json").read_text())
    assert err.rstrip().endswith(" r.csv")


def test_the_process_is_never_stopped(target, tmp_path):
    watching = watch(tmp_path, "--pid", str(target.pid), "--duration", "1", "-o", "r.csv")
    wait_for_rows(tmp_path / "r.csv")
    target.stdin.write("\n")
    target.stdin.flush()
    assert target.stdout.readline() == "over\n"
    watching.communicate(timeout=PATIENCE_S)


def test_steps_are_seen_where_the_process_was_started_under_run(tmp_path):
    program = """
import memdiag, os, time
print(os.getpid(), flush=True)
n = 0
while not os.path.exists("stop"):
    time.sleep(0.01); memdiag.step(n); n += 1
"""
    running = subprocess.Popen(
        [*MEMDIAG, "run", "-q", "-o", "run.csv", "--", *python(program)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    pid = running.stdout.readline().strip()
    watching = watch(tmp_path, "--pid", pid, "--duration", "1", "-o", "r.csv")
    watching.communicate(timeout=PATIENCE_S)
    (tmp_path / "stop").touch()
    running.communicate(timeout=PATIENCE_S)
    header, *rows = (tmp_path / "r.csv").read_text().splitlines()
    step = header.split(",").index("step")
    assert len({row.split(",")[step] for row in rows}) > 10


def refusal(directory: Path, pid: int) -> str:
    watching = watch(directory, "--pid", str(pid))
    stdout, stderr = watching.communicate(timeout=PATIENCE_S)
    assert watching.returncode == 4
    assert stdout == ""
    assert "Traceback" not in stderr
    assert "hint: " in stderr
    assert list(directory.glob(".memdiag/runs/*")) == []
    return stderr


def test_no_such_process(tmp_path):
    gone = subprocess.Popen(python("pass"))
    gone.wait()
    assert f"process {gone.pid} does not exist" in refusal(tmp_path, gone.pid)
    assert "process 0 does not exist" in refusal(tmp_path, 0)


def test_a_zombie(tmp_path):
    zombie = subprocess.Popen(python("pass"))
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    assert f"watch its parent, process {os.getpid()}" in refusal(tmp_path, zombie.pid)
    zombie.wait()


@pytest.mark.skipif(not Path("/proc/2/stat").exists(), reason="no kernel threads to be seen")
def test_a_kernel_thread(tmp_path):
    if " (kthreadd) " not in Path("/proc/2/stat").read_text():
        pytest.skip("no kernel threads to be seen")
    assert "kernel thread" in refusal(tmp_path, 2)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may watch everybody")
def test_another_users_process(tmp_path):
    assert "belongs to user root" in refusal(tmp_path, 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_users_process_seen_by_nobody(tmp_path):
    program = (
        "import os\n"
        "from memdiag.capture.process.attach import attach, this_table\n"
        "from memdiag.errors import CannotWatch\n"
        "os.setuid(65534)\n"
        "try: attach(1, this_table())\n"
        "except CannotWatch as error: print(error.message, '|', error.remedy)\n"
    )
    told = subprocess.run(python(program), capture_output=True, text=True, check=True).stdout
    assert "belongs to user root" in told
    assert "sudo -u root" in told


def test_memdiag_does_not_watch_itself(tmp_path):
    program = (
        "import os, sys; from memdiag.cli.app import main;"
        "sys.argv = ['memdiag', 'watch', '--pid', str(os.getpid())]; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 4
    assert "memdiag itself" in done.stderr
