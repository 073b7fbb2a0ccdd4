"""If no framework reports steps, the iterations of the program's loop are counted exactly."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from interpreters import interpreters

from memdiag.capture.probelink.channel import ChannelReader, prepare
from memdiag.capture.probelink.ring_reader import Event, Kind
from memdiag.probe.loop_steps import FrameworkSteps

PROGRAM = Path(__file__).parent / "programs" / "loops.py"
SOURCE = PROGRAM.read_text().splitlines()
KERAS = """
class callbacks:
    class CallbackList:
        def on_train_begin(self, logs=None): pass
        on_train_end = on_test_begin = on_test_end = on_train_begin
        on_predict_begin = on_predict_end = on_train_begin
        def on_epoch_begin(self, epoch, logs=None): pass
        def on_train_batch_end(self, batch, logs=None): pass
"""
COUNTED = 40
# Programs with one loop all the time.
SHAPES = (
    "for_in_function",
    "while_test",
    "while_true",
    "with_handlers",
    "epochs",
    "pipeline",
    "coroutine",
    "thread",
    "comprehension",
    "recursion",
    "resumed",
    "hot_inside",
    "tool_in_use",
)
OTHERS = (
    "preparation",
    "library_takes_over",
    "evaluates",
    "tags_take_over",
    "forks",
    "detaches",
    "tools_are_taken",
)
# Python 3.12 and later have sys.monitoring. All but the newest are slow tests.
COUNTING = [
    version for version in sorted(interpreters()) if tuple(map(int, version.split("."))) >= (3, 12)
]
pytestmark = pytest.mark.timeout(240)


@dataclass
class Run:
    """The output of a program, and the events of its probe."""

    returncode: int
    output: str
    events: list[Event]

    def pairs(self) -> list[tuple[int, int | None]]:
        """The program's own count and the probe's, at the same moments."""
        return [(int(e.value or 0), e.step) for e in self.events if e.name == "own"]

    def offsets(self) -> list[int]:
        """Differences between the program's count and the probe's, without repetitions."""
        counted = [own - step for own, step in self.pairs() if step is not None]
        return [offset for offset, _ in groupby(counted)]

    def notes(self) -> list[str]:
        return [e.name for e in self.events if e.kind is Kind.NOTE]


@pytest.fixture(scope="module")
def fake_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with modules named numpy and keras."""
    directory = tmp_path_factory.mktemp("lib")
    (directory / "numpy.py").write_text("ndarray = int\n")
    (directory / "keras.py").write_text(KERAS)
    return directory


@pytest.fixture(
    scope="module",
    params=[*(pytest.param(v, marks=pytest.mark.slow) for v in COUNTING[:-1]), *COUNTING[-1:]],
)
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, fake_modules: Path
) -> dict[str, Run]:
    """All programs, run at the same time: they mostly wait."""
    python = interpreters()[request.param]
    started = {}
    for name in SHAPES + OTHERS:
        directory = tmp_path_factory.mktemp(f"channel-{name}")
        directory.chmod(0o700)
        if name == "detaches":  # with a watcher, which holds this lock
            lock = (directory / "watcher").open("w")
            flock(lock, LOCK_EX)
        started[name] = ChannelReader(directory), _start(python, name, directory, fake_modules)
    events: dict[str, list[Event]] = {name: [] for name in started}
    until_s = time.monotonic() + 60
    while any(p.poll() is None for _, p in started.values()) and time.monotonic() < until_s:
        for name, (reader, _) in started.items():
            events[name] += reader.drain()
        time.sleep(0.2)
    found = {}
    for name, (reader, process) in started.items():
        process.kill()
        output, _ = process.communicate()
        found[name] = Run(process.returncode, output, events[name] + reader.drain())
        reader.close()
    lock.close()
    return found


def _start(python: str, name: str, channel: Path, lib: Path) -> subprocess.Popen[str]:
    environ = prepare({"PYTHONPATH": str(lib)}, channel)
    return subprocess.Popen(
        [python, str(PROGRAM), name],
        env=environ,
        cwd=PROGRAM.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def line_of(name: str) -> int:
    return next(n for n, line in enumerate(SOURCE, 1) if line.endswith(f"# step:{name}"))


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_of_loop_is_found_and_counted_exactly(runs, name) -> None:
    run = runs[name]
    assert (run.output, run.returncode) == ("True\n", 0)
    assert len(run.offsets()) == 1
    assert run.pairs()[-1][1] >= 39
    (note,) = run.notes()
    lines = {line_of(name), line_of("batches")} if name == "coroutine" else {line_of(name)}
    found = re.fullmatch(
        r"steps: iterations of the loop at loops\.py:(\d+)"
        r" \([\d.]+ m?s each, counted from [\d.]+ s on\)",
        note,
    )
    assert found is not None
    assert int(found[1]) in lines


def test_steps_begin_at_1_again_in_a_training_after_a_preparation(runs) -> None:
    run = runs["preparation"]
    assert (run.output, run.returncode) == ("True\n", 0)
    first, end, second = run.notes()
    assert "of the loop at loops.py:" in first
    assert end.startswith("steps: until ")
    assert f"loops.py:{line_of('preparation')} " in second
    steps = [e.step for e in run.events if e.kind is Kind.STEP]
    assert [later for earlier, later in pairwise(steps) if later < earlier] == [1]
    again = [own - step for own, step in run.pairs() if step is not None and step < COUNTED]
    assert len(set(again)) == 1


def test_framework_that_reports_steps_later_has_priority(runs) -> None:
    run = runs["library_takes_over"]
    assert (run.output, run.returncode) == ("True\n", 0)
    assert len(run.offsets()) == 1
    steps = [e.step for e in run.events if e.kind is Kind.STEP]
    assert steps[-1] == 5
    assert [e.auto for e in run.events if e.kind is Kind.STEP][-1]


def test_a_loop_has_the_steps_once_those_of_a_framework_are_long_over(runs) -> None:
    run = runs["evaluates"]
    assert (run.output, run.returncode) == ("True\n", 0)
    (note,) = run.notes()
    assert f"loops.py:{line_of('evaluates')} " in note
    assert 12 in [e.step for e in run.events if e.kind is Kind.STEP]
    late = {own - step for own, step in run.pairs()[-COUNTED // 2 :] if step is not None}
    assert len(late) == 1
    assert run.pairs()[-1][1] >= COUNTED - 1


@pytest.mark.parametrize(
    ("counts", "are_over"),
    [
        ([*range(30), *[30] * 45], True),  # 30 s of training, 45 s without
        ([*range(30), *[30] * 25], False),  # a validation
        ([5] * 45, False),  # few steps: how long one takes is not known
        ([*range(0, 300, 10), *[300] * 9], False),
    ],
)
def test_when_the_steps_of_a_framework_are_over(counts, are_over) -> None:
    steps = FrameworkSteps()
    found = []
    for second, count in enumerate(counts, start=100):
        steps.update(count, float(second))
        found.append(steps.is_over)
    assert any(found) is are_over


def test_tags_have_priority_and_end_the_counting(runs) -> None:
    run = runs["tags_take_over"]
    assert (run.output, run.returncode) == ("True\n", 0)
    assert [e.step for e in run.events if e.kind is Kind.STEP][-2:] == [1000, 1001]
    assert run.notes()[-1].startswith("steps: until ")


@pytest.mark.parametrize("value", ["0", "off"])
def test_environment_variable_disables_the_counting(watched, fake_modules, value) -> None:
    code = "import sys, numpy\nprint(*(sys.monitoring.get_tool(tool) for tool in range(6)))\n"
    env = {"PYTHONPATH": str(fake_modules), "MEMDIAG_LOOP_STEPS": value}
    done = watched.run(interpreters()[COUNTING[-1]], "-c", code, env=env)
    assert (done.stdout, done.stderr) == ("None None None None None None\n", "")


def test_forked_child_has_no_events_and_counts_nothing(runs) -> None:
    run = runs["forks"]
    assert (run.output, run.returncode) == ("True\n", 0)
    parent = run.events[0].process
    own = [(e.value, e.step) for e in run.events if e.name == "own" and e.process == parent]
    assert {value - step for value, step in own if step is not None} == {run.offsets()[0]}
    assert {e.step for e in run.events if e.process != parent} == {None}


def test_no_events_are_left_after_detaching(runs) -> None:
    run = runs["detaches"]
    assert (run.output, run.returncode) == ("True\n", 0)


def test_without_a_free_tool_there_are_no_steps(runs) -> None:
    run = runs["tools_are_taken"]
    assert (run.output, run.returncode) == ("True\n", 0)
    assert run.offsets() == []
    assert run.notes() == []
