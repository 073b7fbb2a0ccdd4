"""`memdiag.record()`: this process is recorded by another one, and goes on as before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from terminals import MEMDIAG

LEAK = """
import memdiag, time
kept = []
with memdiag.record(interval=0.05) as rec:
    for step in range(100):
        kept.append(bytearray(1_000_000))
        with memdiag.phase("eval" if step % 10 == 0 else "train"):
            time.sleep(0.01)
        memdiag.step(step)
print(rec.path)
print(rec.diagnosis.growth.per_step.bytes)
"""


def run(
    program: str, directory: Path, *before: str, status: int = 0, **environ: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*before, sys.executable, "-W", "error", "-c", program],
        cwd=directory,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == status, done.stderr
    return done


def rows(path: Path) -> list[dict[str, str]]:
    header, *lines = path.read_text().splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


def test_block_is_recorded_with_its_steps_and_phases(tmp_path: Path) -> None:
    done = run(LEAK, tmp_path)
    path, growth = done.stdout.split()
    (directory,) = (tmp_path / ".memdiag/runs").iterdir()
    assert Path(path) == directory / "recording.csv"
    assert float(growth) == pytest.approx(1e6, rel=0.1)
    found = rows(Path(path))
    steps = [int(row["step"]) for row in found if row["step"]]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, 99)
    assert {row["phase"] for row in found} >= {"train"}
    assert any(row["malloc_bytes"] for row in found)
    assert done.stderr == ""


def test_list_judges_the_run_and_keeps_its_report(tmp_path: Path) -> None:
    run(LEAK, tmp_path)
    (directory,) = (tmp_path / ".memdiag/runs").iterdir()
    report = directory / "report.json"
    assert not report.exists()
    command = [*MEMDIAG, "list", "--json"]
    (listed,) = json.loads(subprocess.check_output(command, cwd=tmp_path))["runs"]
    kept = json.loads(report.read_text())
    assert listed["verdict"] == kept["verdict"]
    analyze = [*MEMDIAG, "analyze", "--json", listed["recording"]]
    done = subprocess.run(analyze, cwd=tmp_path, capture_output=True, text=True, check=False)
    again = json.loads(done.stdout)
    del again["exit_code"]
    assert kept == again
    (shown,) = json.loads(subprocess.check_output(command, cwd=tmp_path))["runs"]
    assert shown == {**listed, "size_bytes": listed["size_bytes"] + report.stat().st_size}


def test_children_are_recorded_and_the_one_that_records_is_not(tmp_path: Path) -> None:
    done = run(
        """
import memdiag, os, subprocess, sys
with memdiag.record(interval=0.02, output="r.csv") as rec:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1.5)"])
    child.wait()
print(os.getpid(), child.pid)
""",
        tmp_path,
    )
    own, child = done.stdout.split()
    assert {row["pid"] for row in rows(tmp_path / "r.csv")} == {own, child}


def test_program_is_as_before_when_the_block_has_ended(tmp_path: Path) -> None:
    done = run(
        """
import gc, memdiag, os, sys, threading

def state():
    hooks = [type(hook).__name__ for hook in sys.meta_path]
    probe = sys.modules.get("_memdiag_probe")
    return dict(os.environ), hooks, len(gc.callbacks), getattr(probe, "listener", None)

before = state()
for n in range(2):
    with memdiag.record(interval=0.02, output=f"{n}.csv"):
        for step in range(20):
            memdiag.step(step)
        assert sys.modules["_memdiag_probe"].listener is not None
    assert state() == before, state()
print(threading.active_count())
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no children")
""",
        tmp_path,
    )
    assert done.stdout.split("\n")[:2] == ["1", "no children"]
    assert {row["step"] for row in rows(tmp_path / "1.csv")} & {"19"}, "the second one has steps"


def test_exception_of_the_block_passes_and_the_recording_is_complete(tmp_path: Path) -> None:
    done = run(
        """
import memdiag, time
with memdiag.record(output="r.csv"):
    time.sleep(0.3)
    raise KeyError("mine")
""",
        tmp_path,
        status=1,
    )
    assert done.stderr.endswith("KeyError: 'mine'\n")
    assert json.loads((tmp_path / "r.meta.json").read_text())["complete"]


def test_forked_child_does_not_end_the_recording(tmp_path: Path) -> None:
    run(
        """
import memdiag, os, time
with memdiag.record(interval=0.02, output="r.csv"):
    child = os.fork()
    if child == 0:
        pass  # leaves the block first
    else:
        os.waitpid(child, 0)
        for step in range(10):
            memdiag.step(step)
            time.sleep(0.02)
if child == 0:
    os._exit(0)
""",
        tmp_path,
    )
    assert "9" in {row["step"] for row in rows(tmp_path / "r.csv")}


def test_recording_ends_with_a_program_that_is_killed(tmp_path: Path) -> None:
    run(
        """
import memdiag, os, signal, time
with memdiag.record(interval=0.02, output="r.csv"):
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
""",
        tmp_path,
        status=-9,
    )
    deadline_s = time.monotonic() + 60
    while not json.loads((tmp_path / "r.meta.json").read_text())["complete"]:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    assert len(rows(tmp_path / "r.csv")) > 5


def test_modules_beside_the_program_do_not_replace_those_of_memdiag(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('of the program')")
    run("import memdiag\nwith memdiag.record(output='r.csv'): pass", tmp_path)
    assert (tmp_path / "r.csv").exists()


def test_recorder_that_cannot_start_is_an_error_in_words(tmp_path: Path) -> None:
    done = run(
        """
import memdiag, sys
for python in (None, "/nosuch/python", "/bin/true"):
    sys.executable = python
    try:
        with memdiag.record():
            print("entered")
    except memdiag.CaptureError as error:
        print(error)
""",
        tmp_path,
    )
    assert "entered" not in done.stdout
    assert "the Python of this process is unknown" in done.stdout
    assert "No such file" in done.stdout
    assert "the process that records has ended: it has printed nothing" in done.stdout
    assert not (tmp_path / ".memdiag").exists()


def test_diagnosis_so_far(tmp_path: Path) -> None:
    run(
        """
import memdiag, time
recorder = memdiag.record(interval=0.02)
try:
    recorder.diagnosis
except memdiag.UsageError as error:
    print(error)
with recorder as rec:
    time.sleep(2.5)
    assert rec.diagnosis.verdict in ("inconclusive", "stable", "warmup")
    assert rec.diagnosis is not rec.diagnosis
assert rec.diagnosis is rec.diagnosis
""",
        tmp_path,
    )


def test_under_memdiag_run_the_probe_is_shared(tmp_path: Path) -> None:
    outer = [*MEMDIAG, "run", "-q", "--fail-on", "never", "-o", "outer.csv", "--"]
    run(
        """
import memdiag, time
with memdiag.record(interval=0.02, output="inner.csv"):
    for step in range(20):
        memdiag.step(step)
        time.sleep(0.02)
for step in range(20, 40):
    memdiag.step(step)
    time.sleep(0.02)
""",
        tmp_path,
        *outer,
    )
    inner, outer_steps = (
        {int(row["step"]) for row in rows(tmp_path / name) if row["step"]}
        for name in ("inner.csv", "outer.csv")
    )
    assert max(inner) == 19
    assert max(outer_steps) > 19  # (on a busy machine the last steps may have no reading)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ("interval='1ms'", "UsageError", "must be at least 0.01s"),
        ("explain='perhaps'", "UsageError", "choose from auto, always, never"),
        ("output='there.csv'", "UsageError", "there.csv already exists"),
        ("output='no/such/place.csv'", "UsageError", "cannot be written"),
        ("output='x.txt'", "UsageError", "must end in .csv or .parquet"),
    ],
)
def test_what_cannot_be_recorded_is_an_error(tmp_path, arguments, error, text) -> None:
    (tmp_path / "there.csv").write_text("precious")
    done = run(
        f"""
import memdiag
try:
    with memdiag.record({arguments}):
        print("entered")
except memdiag.{error} as error:
    print(error)
""",
        tmp_path,
    )
    assert text in done.stdout
    assert "entered" not in done.stdout
    assert (tmp_path / "there.csv").read_text() == "precious"
