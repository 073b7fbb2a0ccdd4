"""Functions given to `memdiag.on_pressure` run at a step of the main thread."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from interpreters import interpreters, versions

import memdiag
from memdiag import tags
from memdiag.capture.probelink.ring_reader import Kind
from memdiag.cli.options.actions import Level
from memdiag.probe.ring_format import PRESSURE_SUFFIXES

# Steps until "end" is typed; each line that is typed is printed after the step that follows it.
PROGRAM = """
import sys, threading, time
import memdiag
sys.stderr = sys.stdout
typed = []
def read():
    for line in sys.stdin:
        typed.append(line.strip())
threading.Thread(target=read, daemon=True).start()
in_main = threading.main_thread().ident
@memdiag.on_pressure("critical")
def save():
    print("saved", threading.get_ident() == in_main, flush=True)
    memdiag.step(n)  # a step within the function is not another reason to call it
@memdiag.on_pressure("warn")
def fails():
    raise ValueError("no disk")
@memdiag.on_pressure("leak")
def ends():
    raise SystemExit(3)
n = 0
print("ready", flush=True)
while "end" not in typed:
    n += 1
    memdiag.step(n)
    time.sleep(0.005)
print("end")
"""
PROJECT = str(Path(memdiag.__file__).parents[1])


class Job:
    """A program under watch, and its channel as memdiag uses it."""

    def __init__(self, watched, program: str, python: str = sys.executable) -> None:
        self._watched = watched
        watched.environ = {**watched.environ, "PYTHONPATH": PROJECT}
        self.process = watched.start(python, "-c", program)
        assert self.process.stdout is not None
        self.wait_for("ready")
        until_s = time.monotonic() + 60
        while not self._watched.reader.processes() and time.monotonic() < until_s:
            self._watched.reader.drain()

    def wait_for(self, line: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == line

    def reaches(self, level: str) -> None:
        self._watched.reader.set_pressure({level})

    def leaves(self) -> None:
        self._watched.reader.set_pressure(())

    def end(self) -> str:
        """What else the program prints."""
        return self.process.communicate("end\n", timeout=60)[0]

    def notes(self) -> list[str]:
        return [event.name for event in self._watched.reader.drain() if event.kind is Kind.NOTE]


@pytest.fixture
def job(watched, request: pytest.FixtureRequest) -> Iterator[Job]:
    version = getattr(request, "param", None)
    one = Job(watched, PROGRAM, interpreters()[version] if version else sys.executable)
    yield one
    one.process.kill()
    one.process.communicate()


@pytest.mark.parametrize("job", versions(), indirect=True)
def test_function_is_called_once_for_each_crossing_in_the_main_thread(job: Job) -> None:
    job.reaches("critical")
    job.wait_for("saved True")
    job.reaches("critical")  # as before: it was not left
    job.leaves()
    job.reaches("critical")
    job.wait_for("saved True")
    assert job.end() == "end\n"
    notes = [note for note in job.notes() if "on_pressure" in note]
    assert len(notes) == 2
    assert "on_pressure('critical'): save was called at step " in notes[0]


def test_process_that_starts_while_memory_is_at_a_level_learns_of_it(watched, job: Job) -> None:
    job.reaches("critical")
    job.wait_for("saved True")
    second = Job(watched, PROGRAM)
    until_s = time.monotonic() + 60
    while len(watched.reader.processes()) < 2 and time.monotonic() < until_s:
        watched.reader.drain()
    job.reaches("critical")
    second.wait_for("saved True")
    assert (second.end(), job.end()) == ("end\n", "end\n")


def test_exception_is_logged_and_the_program_continues(job: Job) -> None:
    job.reaches("warn")
    until_s = time.monotonic() + 60
    while not (notes := job.notes()) and time.monotonic() < until_s:
        time.sleep(0.01)
    assert any("fails failed (ValueError)" in note for note in notes)
    printed = job.end()
    assert "on_pressure('warn'): fails failed; the training continues" in printed
    assert "ValueError: no disk" in printed
    assert printed.endswith("end\n")


def test_system_exit_ends_the_program(job: Job) -> None:
    job.reaches("leak")
    assert job.process.wait(timeout=60) == 3


def test_level_that_was_left_before_it_was_seen_calls_nothing(watched) -> None:
    program = PROGRAM.replace("while", "sys.stdin.readline()\nwhile").replace(
        "threading.Thread(target=read, daemon=True).start()", ""
    )
    program = program.replace('while "end" not in typed', "while n < 200")
    one = Job(watched, program)
    one.reaches("critical")
    one.leaves()
    # What the heartbeat has seen before it was removed is due; else nothing is.
    assert one.end() in {"end\n", "saved True\nend\n"}
    assert not list(watched.directory.glob("*-pressure"))


def test_nothing_is_called_and_nothing_is_imported_without_memdiag_watching() -> None:
    program = (
        "import sys; before = set(sys.modules); import memdiag\n"
        "@memdiag.on_pressure('critical')\ndef save(): print('called')\n"
        "for n in range(1000): memdiag.step(n)\n"
        "print(sorted(set(sys.modules) - before), save.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": PROJECT},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['memdiag', 'memdiag.tags'] save\n"


def test_probe_that_is_attached_later_finds_what_was_registered(tmp_path: Path) -> None:
    program = """
import sys, time, memdiag
@memdiag.on_pressure("critical")
def save():
    print("saved", flush=True)
    sys.exit(0)
held = bytearray(60_000_000)
print("ready", flush=True)
n = 0
while True:
    n += 1
    memdiag.step(n)
    time.sleep(0.01)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": PROJECT},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    watch = ["watch", "--pid", str(process.pid), "--attach", "--critical-at", "30MB"]
    done = subprocess.run(
        [sys.executable, "-m", "memdiag", *watch, "--duration", "30"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
    )
    if process.poll() is None:
        process.kill()
    out = process.communicate(timeout=60)[0]
    if done.returncode == 4:
        pytest.skip("attaching is not permitted here")
    assert out == "saved\n", done.stderr


@pytest.mark.torch
def test_training_without_tags_is_called_at_its_first_steps(watched) -> None:
    """Steps of torch are not recorded at first, for the program may tag its own."""
    pytest.importorskip("torch")
    program = """
import sys, time, torch, memdiag
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters())
saved = []
memdiag.on_pressure("critical")(lambda: saved.append(n))
def train():
    model(torch.ones(4)).backward()
    optimizer.step()
n = 0
train()
print("ready", flush=True)
sys.stdin.readline()
while not saved and n < 190:  # they are recorded from 200 on
    n += 1
    train()
    time.sleep(0.01)
print(saved == [n])
"""
    one = Job(watched, program)
    one.reaches("critical")
    assert one.end() == "True\n"


@pytest.mark.parametrize("bad", ["", "crit", None, 3])
def test_unknown_level_is_an_error_of_the_program(bad: object) -> None:
    with pytest.raises(ValueError, match="level must be one of"):
        memdiag.on_pressure(bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        memdiag.on_pressure("warn")(None)  # type: ignore[type-var]


def test_both_sides_know_the_same_levels() -> None:
    assert set(tags._LEVELS) == set(PRESSURE_SUFFIXES) == {level.value for level in Level}
