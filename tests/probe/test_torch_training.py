"""What the hooks see becomes steps and phases; the training itself never changes."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from time import monotonic

import pytest

from memdiag.capture.probelink.channel import ChannelReader
from memdiag.capture.probelink.ring_reader import Kind
from memdiag.probe import torch_training as training_module
from memdiag.probe.session import Session
from memdiag.probe.torch_training import TorchTraining

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.delitem(sys.modules, "memdiag")  # the program has not imported it
    return Session(str(tmp_path))


@pytest.fixture
def reader(tmp_path: Path) -> ChannelReader:
    return ChannelReader(tmp_path)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [monotonic() + 1e6]  # whatever is next to be measured is due
    monkeypatch.setattr(training_module, "monotonic", lambda: clock[0])
    return clock


def iterate(training: TorchTraining, now: list[float], took_s: float, times: int = 1) -> None:
    for _ in range(times):
        training.fetch_begins()
        training.fetch_ended(got_one=True)
        training.backward_begins()
        training.backward_ended()
        training.optimizer_begins()
        now[0] += took_s
        training.optimizer_ended("A")


def phases(reader: ChannelReader) -> list[str]:
    return [phase for phase, _ in groupby(event.phase for event in reader.drain())]


def test_long_iterations_are_looked_into(session, reader, now) -> None:
    training = TorchTraining(session)
    training.iterations.optimizer_made("A")
    iterate(training, now, 0.3, times=20)
    reader.drain()
    iterate(training, now, 0.3)
    parts = ["data", "train/forward", "train/backward", "train/forward", "train/optimizer"]
    assert phases(reader) == [*_with_ends(parts), "train/forward"]


def _with_ends(parts: list[str]) -> list[str]:
    """Between two phases there is an event at which the one has ended and the other not begun."""
    return [phase for part in parts for phase in ("", part)] + [""]


def test_short_iterations_are_not(session, reader, now) -> None:
    training = TorchTraining(session)
    training.iterations.optimizer_made("A")
    iterate(training, now, 0.001, times=20)
    reader.drain()
    iterate(training, now, 0.001, times=5)
    events = reader.drain()
    assert [(event.kind, event.phase) for event in events] == [(Kind.STEP, "train")] * 5


def test_evaluation_lasts_until_the_model_trains_again(session, reader, now) -> None:
    training = TorchTraining(session)
    training.iterations.optimizer_made("A")
    iterate(training, now, 0.001, times=3)
    evaluating = True
    training.evaluation_begins(lambda: evaluating)
    for _ in range(3):
        training.fetch_begins()
        training.fetch_ended(got_one=True)
    evaluating = False
    iterate(training, now, 0.001)
    assert phases(reader) == ["init", "", "train", "", "eval", "", "train"]


def test_backward_ends_what_was_taken_for_an_evaluation(session, reader, now) -> None:
    training = TorchTraining(session)
    training.iterations.optimizer_made("A")
    iterate(training, now, 0.001, times=3)
    training.evaluation_begins(lambda: True)
    training.backward_begins()
    training.backward_ended()
    assert phases(reader)[-3:] == ["eval", "", "train"]


def test_model_loaded_in_evaluation_mode_is_no_evaluation(session, reader, now) -> None:
    training = TorchTraining(session)
    training.evaluation_begins(lambda: True)
    assert phases(reader) == ["init"]


def test_checkpoint_returns_to_the_phase_before(session, reader, now) -> None:
    training = TorchTraining(session)
    training.iterations.optimizer_made("A")
    iterate(training, now, 0.001, times=3)
    training.checkpoint_ended(training.checkpoint_begins())
    assert phases(reader)[-5:] == ["train", "", "checkpoint", "", "train"]


def passes(training: TorchTraining, *data: str, times: int = 1) -> None:
    """So many passes over each of these data sets, side by side, four batches each."""
    for _ in range(times):
        for batch in range(4):
            for one in data:
                training.fetch_begins()
                training.fetch_ended(got_one=True, begins=None if batch else one)
            training.optimizer_begins()
            training.optimizer_ended("A")
        training.fetch_begins()
        training.fetch_ended(got_one=False)


def epochs(reader: ChannelReader) -> list[tuple[int | None, float | None]]:
    return [(e.step, e.value) for e in reader.drain() if e.kind is Kind.COUNTER]


def test_passes_over_the_training_data_are_epochs(session, reader, now) -> None:
    training = TorchTraining(session)
    for _ in range(3):  # for the mean, say: there is nothing to be trained yet
        training.fetch_begins()
        training.fetch_ended(got_one=True, begins="pictures")
    training.iterations.optimizer_made("A")
    passes(training, "pictures", "texts", times=2)
    training.evaluation_begins(lambda: True)
    training.fetch_begins()
    training.fetch_ended(got_one=True, begins="others")
    training.backward_begins()
    training.backward_ended()
    training.evaluation_begins(lambda: False)
    passes(training, "pictures")
    assert epochs(reader) == [(None, 1), (4, 2), (8, 3)]


def test_an_epoch_whose_first_batch_is_fetched_ahead_is_one(session, reader, now) -> None:
    training = TorchTraining(session)
    training.iterations.optimizer_made("A")
    passes(training, "pictures")
    for trained in (False, True):
        training.evaluation_begins(lambda: True)
        training.fetch_begins()
        training.fetch_ended(got_one=True, begins="pictures")
        if trained:
            training.backward_begins()
            training.backward_ended()
        training.fetch_begins()
        training.fetch_ended(got_one=False)
    passes(training, "pictures")
    assert [value for _, value in epochs(reader)] == [1, 2, 3]


def test_epochs_that_the_program_tells_win(session, reader, now) -> None:
    training = TorchTraining(session)
    training.iterations.optimizer_made("A")
    session.counter("epoch", 7)
    passes(training, "pictures", times=3)
    assert [value for _, value in epochs(reader)] == [7]


def test_tags_of_the_program_win_over_what_the_hooks_see(session, reader, now) -> None:
    training = TorchTraining(session)
    training.iterations.optimizer_made("A")
    iterate(training, now, 0.001, times=3)
    session.phase_begin("mine")
    session.step(1000)
    iterate(training, now, 0.001, times=3)
    session.phase_end("mine")
    iterate(training, now, 0.001, times=3)
    events = reader.drain()
    steps = [event.step for event in events if event.kind is Kind.STEP]
    assert steps == [1, 2, 3, 1000]
    assert events[-1].step == 1000
    assert events[-1].phase == ""
    own = [event.phase for event in events if event.step == 1000]
    assert set(own) == {"mine", ""}


def test_steps_in_quick_succession_are_told_at_the_latest_with_what_follows(
    session, reader
) -> None:
    training = TorchTraining(session)
    training.optimizer_made("A")
    for _ in range(3000):
        training.optimizer_begins()
        training.optimizer_ended("A")
    session.counter("copies", 1)
    events = reader.drain()
    steps = [event.step for event in events if event.kind is Kind.STEP]
    assert steps == sorted(set(steps))
    assert len(steps) < 3000
    assert steps[-1] == 3000
    assert (events[-1].kind, events[-1].step) == (Kind.COUNTER, 3000)


def test_last_steps_are_told_at_the_end(session, reader) -> None:
    training = TorchTraining(session)
    training.optimizer_made("A")
    for _ in range(3000):
        training.optimizer_ended("A")
    session.record_exit()
    assert [event.step for event in reader.drain() if event.kind is Kind.STEP][-1] == 3000


def test_steps_that_have_become_slow_are_measured_again_soon(session, reader, now) -> None:
    training = TorchTraining(session)
    step_state = training.step_state
    training.iterations.optimizer_made("A")
    iterate(training, now, 0.001, times=300)
    assert step_state.sole == "A"
    step_state.due_s = now[0] + 0.25
    training.sole_stepped(now[0])
    assert 1 < step_state.check_clock_at - step_state.reached <= 64
    session.check_clock_next()
    assert step_state.check_clock_at <= step_state.reached


@pytest.mark.torch
def test_backward_is_the_frameworks_own_while_nothing_is_to_be_heard_in_it(watched) -> None:
    pytest.importorskip("torch")
    code = (
        "import torch\n"
        "def own(): return not hasattr(torch.autograd.backward, '__wrapped__')\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "def train(n):\n"
        "    for _ in range(n):\n"
        "        model(torch.ones(1, 2)).sum().backward()\n"
        "        optimizer.step()\n"
        "before = own()\n"
        "train(5)\n"
        "training = own()\n"
        "model.eval()\n"
        "evaluating = own()\n"
        "model.train()\n"
        "train(5)\n"
        "print(before, training, evaluating, own())\n"
    )
    done = watched.run(sys.executable, "-c", code)
    assert (done.stdout, done.stderr) == ("False True False True\n", "")
    steps = [event.step for event in watched.events() if event.kind is Kind.STEP]
    assert steps == list(range(1, 11))


def test_program_that_imports_memdiag_is_given_time_to_tag(
    session, reader, now, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "memdiag", object())
    training = TorchTraining(session)
    training.iterations.optimizer_made("A")
    iterate(training, now, 0.001, times=203)
    assert [e.step for e in reader.drain() if e.kind is Kind.STEP] == [201, 202, 203]


@pytest.mark.torch
@pytest.mark.slow
def test_training_is_the_same_with_and_without_us(watched) -> None:
    pytest.importorskip("torch")
    program = str(PROGRAMS / "phases.py")
    with_us = watched.run(sys.executable, program)
    without = watched.run_without(sys.executable, program)
    assert with_us.stdout == without.stdout
    assert with_us.returncode == without.returncode == 1
    assert with_us.stderr == without.stderr
    steps = [event.step for event in watched.events() if event.kind is Kind.STEP]
    assert steps == list(range(1, 31))


@pytest.mark.slow
@pytest.mark.torch
def test_phases_of_a_real_training_are_told(watched) -> None:
    pytest.importorskip("torch")
    watched.run(sys.executable, str(PROGRAMS / "phases.py"), "0.16")  # just above DETAILED_FROM_S
    events = watched.events()
    seen = [phase for phase, _ in groupby(e.phase for e in events) if phase]
    coarse = [name for name, _ in groupby(phase.partition("/")[0] for phase in seen)]
    outside_of_training = [name for name in coarse if name not in ("data", "train")]
    assert outside_of_training == ["init", *["eval", "checkpoint", "eval"] * 3]
    assert {"data", "train/forward", "train/backward", "train/optimizer"} <= set(seen)
    told = [(e.step, e.name, e.value) for e in events if e.kind is Kind.COUNTER]
    assert told == [(None, "epoch", 1), (10, "epoch", 2), (20, "epoch", 3)]


@pytest.mark.torch
@pytest.mark.slow
def test_compiled_graphs_are_the_same_with_and_without_us(watched) -> None:
    pytest.importorskip("torch")
    program = str(PROGRAMS / "compiled.py")
    with_us = watched.run(sys.executable, program, timeout=110)
    without = watched.run_without(sys.executable, program, timeout=110)
    assert with_us.stdout == without.stdout
    assert with_us.stdout.endswith("full graph\n")


@pytest.mark.torch
@pytest.mark.slow
def test_steps_that_are_compiled_count_and_the_probe_is_not_compiled_with_them(watched) -> None:
    pytest.importorskip("torch")
    program = str(PROGRAMS / "compiled_training.py")
    with_us = watched.run(sys.executable, program, env={"TORCH_LOGS": "dynamo"}, timeout=110)
    without = watched.run_without(sys.executable, program, timeout=110)
    assert with_us.stdout == without.stdout
    assert "start tracing" in with_us.stderr
    assert "_memdiag_probe" not in with_us.stderr
    assert "recompile_limit" not in with_us.stderr
    steps = [event.step for event in watched.events() if event.kind is Kind.STEP]
    assert len(steps) > 10
    assert steps[-1] in range(190, 201)
