"""The lines at which memory grows are seen, and the program sees nothing of it."""

from __future__ import annotations

import json
import os
import time
from _thread import get_ident
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memdiag.probe import line_window, ring_format
from memdiag.probe.line_window import LineWindow
from memdiag.probe.places import Places
from memdiag.probe.unnamed import Unnamed

PROGRAM = Path(__file__).parent / "programs" / "growing.py"
SOURCE = PROGRAM.read_text().splitlines()
SHAPES = [
    "method",
    "alias",
    "heap",
    "put",
    "stack",
    "attributes",
    "slots",
    "rebuilt",
    "chain",
    "partials",
    "text",
    "closure",
    "generator",
    "in_library",
    "around_steps",
    "coroutine",
    "long_steps",
    "replaced_items",
    "delegated",
]
pytestmark = pytest.mark.timeout(120)


def test_a_window_lasts_no_longer_than_it_may() -> None:
    window = LineWindow(Places(), Unnamed(), [], None, get_ident(), lambda: 0, 0.05)
    assert window.begin() == ""
    try:
        until = time.monotonic() + 0.2  # a call that is checked late
        while time.monotonic() < until:
            pass
        assert 0.0 < window.lasted_s <= 0.05
    finally:
        window.close()


@pytest.fixture
def run(watched, any_python, tmp_path):
    """Runs a shape of the program with windows; its output, and what the probe wrote."""
    (tmp_path / "numpy.py").write_text("ndarray = int\n")

    def run(shape: str, *, status: int = 0) -> tuple[str, dict[str, Any]]:
        end = watched.run(
            any_python,
            str(PROGRAM),
            shape,
            str(watched.directory),
            env={"PYTHONPATH": str(tmp_path), ring_format.EXPLAIN_VARIABLE: "always"},
            timeout=100,
        )
        assert (end.returncode, end.stderr) == (status, "")
        # (A forked child has a file of its own.)
        files = sorted(watched.directory.glob("*.holders"), key=lambda file: file.stat().st_size)
        return end.stdout, json.loads(files[-1].read_text()) if files else {}

    return run


def marked(shape: str) -> int:
    return next(n for n, text in enumerate(SOURCE, 1) if text.endswith(f"# {shape}"))


def watched_lines(document: dict[str, Any]) -> list[tuple[int, int]]:
    """(hits, line) of the place that grows most, the most frequent first."""
    lines = [line for place in document["places"][:1] for line in place["watched"]]
    assert all(file == str(PROGRAM) for file, *_ in lines)
    return sorted(((hits, line) for _, line, _, hits in lines), reverse=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_line_that_adds_is_seen(run, shape) -> None:
    _, document = run(shape)
    hits, line = watched_lines(document)[0]
    assert line == marked(shape)
    assert hits >= 3


def test_of_lines_that_add_as_often_the_one_that_adds_most_comes_first(run) -> None:
    _, document = run("unequal")
    (_, first, *_), (_, second, *_) = document["places"][0]["watched"]
    assert (first, second) == (marked("unequal"), marked("unequal") - 1)


def test_the_line_is_seen_where_no_step_is_reported(run) -> None:
    _, document = run("untagged")
    hits, line = watched_lines(document)[0]
    assert (line, hits >= 3) == (marked("untagged"), True)


def test_a_function_with_too_many_lines_is_not_followed(run) -> None:
    _, document = run("long_function")
    assert document["window"]["steps"]
    assert {line for _, line in watched_lines(document)} <= {marked("long_function")}


def test_lines_of_other_threads(run, any_python) -> None:
    _, document = run("other_thread")
    lines = watched_lines(document)
    if document["window"]["all_threads"]:
        assert lines[0][1] == marked("other_thread")
    else:
        assert "3.12" not in any_python


@pytest.mark.parametrize(
    ("files", "may_run"),
    [
        (["STD/threading.py", "/x/site-packages/tqdm/_monitor.py"], False),
        (["STD/threading.py", "/x/site-packages/numpy/vectorize.py", "/x/train.py"], True),
        (["STD/concurrent/futures/thread.py", "/x/site-packages/numpy/fft.py"], True),
        (["STD/multiprocessing/pool.py", "/x/site-packages/numpy/fft.py"], True),
        (["STD/threading.py", "STD/socketserver.py"], True),
        (["STD/threading.py", "/x/train.py", "<_memdiag_probe>"], True),
        (["<_memdiag_probe>", "STD/gc.py"], False),
    ],
)
def test_threads_that_may_run_the_program(files: list[str], may_run: bool) -> None:
    frame: Any = None
    for file in files:
        name = line_window.__package__ if file == "<_memdiag_probe>" else "other"
        frame = SimpleNamespace(
            f_code=SimpleNamespace(co_filename=file.replace("STD", str(Path(os.__file__).parent))),
            f_globals={"__package__": name},
            f_back=frame,
        )
    assert line_window._may_run_program(frame) is may_run


def test_nothing_of_a_window_is_left(run) -> None:
    output, document = run("unnoticed")
    assert document["window"]["steps"]
    first = output.partition("{")[0].strip()
    assert output.startswith("None {None} 0 {")
    assert output.count("(['config', 'first', 'second'], ") + output.count("(['first'], ") == 1, (
        first
    )


def test_a_debugger_keeps_its_trace_function(run, watched) -> None:
    output, document = run("debugged")
    assert output == "True True\n"
    assert not document["window"]["steps"]
    notes = [event.name for event in watched.events() if event.name]
    assert any("a debugger or a coverage tool traces the program" in note for note in notes)


def test_a_debugger_that_begins_within_a_window(run) -> None:
    assert run("takes_over")[0] == "True True\n"


def test_exceptions_of_signal_handlers_are_the_programs(run) -> None:
    output, document = run("alarms")
    assert output == "0 True True\n"
    assert document["window"]["steps"]


def test_they_are_the_programs_in_calls_of_the_main_thread(run) -> None:
    # (On a busy machine the handler interrupts each of these, and no window ends.)
    assert run("untagged_alarms")[0] == "0 True True\n"


def test_forked_children_are_not_followed(run) -> None:
    assert run("forks")[0] == "child None False\n0\nTrue\n"


def test_a_program_ends_within_a_window(run) -> None:
    assert run("exits", status=3)[0] == ""


TRAINING = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Dropout(0.1), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
def train():
    losses = []
    for step in range(12000):
        x = torch.randn(32, 16)
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)  # here
    return losses
losses = train()
print(losses[-1].item().hex(), sum(p.double().sum().item() for p in net.parameters()).hex())
"""


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.timeout(400)
def test_a_seeded_training_ends_with_the_same_bits(watched, python, tmp_path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "train.py"
    program.write_text(TRAINING)
    alone = watched.run_without(python, str(program), timeout=200)
    env = {ring_format.EXPLAIN_VARIABLE: "always"}
    followed = watched.run(python, str(program), env=env, timeout=200)
    assert (followed.stdout, followed.stderr) == (alone.stdout, "")
    (file,) = watched.directory.glob("*.holders")
    document = json.loads(file.read_text())
    (lines,) = [one["watched"] for one in document["places"] if one["path"][-1][1] == "losses"]
    number = TRAINING.splitlines().index("        losses.append(loss)  # here") + 1
    assert [(line, hits >= 3) for _, line, _, hits in lines] == [(number, True)]
