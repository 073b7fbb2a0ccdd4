"""Which of several loops counts as the steps, and how the report says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest

from memdiag.capture.probelink.probe_notes import Notes
from memdiag.probe.loop_steps import LoopSteps
from memdiag.probe.loops import BAR, LIBRARY, OWN, Loop, best, merge, running
from memdiag.probe.ring_format import NAME_BYTES

MAIN, OTHER = 1, 2
WHILE = """
def run(n):
    while n:
        n -= 1
        if n % 3:
            continue
        while n % 7:
            n -= 1
            if n % 2:
                continue
            n -= 1
        n -= 1
"""


def code_of(source: str, path: str = "train.py") -> CodeType:
    return next(c for c in compile(source, path, "exec").co_consts if isinstance(c, CodeType))


CODE = code_of("def run():\n    for _ in range(3):\n        pass\n")


@pytest.fixture
def loop() -> Callable[..., Loop]:
    def make(
        period_s: float,
        *,
        depth: int = 0,
        owner: int = OWN,
        thread: int = MAIN,
        times: int = 20,
        until_s: float = 100.0,
    ) -> Loop:
        made = Loop(CODE, 0, depth, thread, owner)
        for n in range(times, 0, -1):
            made.count(until_s - (n - 1) * period_s)
        return made

    return make


def test_outermost_loop_with_iterations_of_a_fitting_length_is_the_step(loop) -> None:
    epochs, batches, layers = loop(1.4), loop(0.014, depth=1), loop(0.006, depth=2)
    assert best([layers, batches, epochs], MAIN) is batches


def test_programs_files_come_before_libraries_and_the_main_thread_before_others(loop) -> None:
    library, own = loop(0.01, owner=LIBRARY), loop(0.01, depth=5, thread=OTHER)
    assert best([library, own], MAIN) is own
    main = loop(0.01, depth=7)
    assert best([library, own, main], MAIN) is main
    bar = loop(0.01, depth=9, owner=BAR, thread=OTHER)
    assert best([library, own, main, bar], MAIN) is bar


def test_short_and_then_long_iterations_are_taken_where_nothing_fits(loop) -> None:
    short, long = loop(0.001, depth=1), loop(5.0)
    assert best([short, long], MAIN) is short
    assert best([long], MAIN) is long
    assert best([loop(70.0), loop(0.0001)], MAIN) is None


def test_loop_that_neither_jumps_nor_is_on_a_stack_has_ended(loop) -> None:
    ended, sampled, slow = loop(0.01), loop(0.01), loop(5.0)
    sampled.active_s = 103.0
    assert running([ended, sampled, slow], 104.0) == [sampled, slow]


def test_iterations_that_are_too_short_are_not_watched_but_a_steps_are_for_a_while() -> None:
    watched, step = Loop(CODE, 0, 0, MAIN, OWN), Loop(CODE, 0, 0, MAIN, OWN)
    recorded: list[float] = []
    step.on_iteration = lambda _, now_s: recorded.append(now_s)
    assert [watched.count(100 + n * 1e-5) for n in range(20)].index(True) == 16
    assert not any(step.count(100 + n * 1e-5) for n in range(1000))
    assert len(recorded) == 1000


def test_two_heads_of_a_while_are_one_loop_and_an_inner_while_is_another() -> None:
    code = code_of(WHILE)
    dis = pytest.importorskip("dis")
    jumps = [
        (i.offset, i.argval) for i in dis.get_instructions(code) if "JUMP_BACKWARD" in i.opname
    ]
    if not jumps:
        pytest.skip("this Python's loops jump back by other instructions")
    made: dict[int, Loop] = {}
    for at, head in jumps:
        loop = made.setdefault(head, Loop(code, head, 0, MAIN, OWN))
        loop.end = max(loop.end, at)
        loop.count(float(at))
    merge(made.values(), has_one_head=lambda _: False)
    lines = {loop.line() for loop in made.values() if loop.into is None}
    assert lines == {3, 7}
    counted = sum(loop.n + loop.extra for loop in made.values() if loop.into is None)
    assert counted == len(jumps)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("{here}/jobs/train.py", "jobs/train.py"),
        ("/elsewhere/train.py", "/elsewhere/train.py"),
        ("/usr/lib/python3/site-packages/sklearn/base.py", "sklearn/base.py"),
        ("/" + "long/" * 40 + "train.py", ".../" + "long/" * 4 + "train.py"),
        ("/" + "x" * 40 + ".py", ".../" + "x" * 27 + ".py"),
    ],
)
def test_place_is_relative_where_it_can_be_and_short(path, shown) -> None:
    code = CODE.replace(co_filename=path.format(here=Path.cwd()))
    place = Loop(code, 0, 0, MAIN, OWN).place()
    assert place.rpartition(":")[0] == f"iterations of the loop at {shown}"


def test_a_note_of_a_loop_fits_into_its_record(loop, monkeypatch) -> None:
    found = loop(0.12, times=9)
    found.code = CODE.replace(co_filename="/" + "long/" * 40 + "train.py")
    found.total = 1_000_000
    notes: list[str] = []
    steps = LoopSteps(None, -1234.5, lambda _: False)  # type: ignore[arg-type]
    monkeypatch.setattr(steps, "_note", notes.append)
    steps._select(found, 0.0)
    assert "train.py:1 (120 ms each, 1000000 in all, counted from " in notes[0]
    assert len(f"steps: {notes[0]}") < NAME_BYTES


def test_place_is_harmless_on_a_terminal() -> None:
    code = CODE.replace(co_filename="/x/\x1b[31mtrain\n.py")
    notes = Notes()
    notes.take(f"steps: {Loop(code, 0, 0, MAIN, OWN).place()}", "main")
    (sentence,) = notes.sentences()
    assert sentence.isprintable()
    assert "\\x1b[31mtrain\\n.py" in sentence


def test_batches_go_on_after_an_evaluation_that_is_shorter_than_they_ran(loop) -> None:
    steps = LoopSteps(None, 0.0, lambda _: False)  # type: ignore[arg-type]
    epochs, batches = loop(30.0, times=1), loop(0.02, depth=1, times=1000)
    steps.add(epochs)
    steps.add(batches)
    epochs.code = code_of("def epochs(): pass\n")
    for now_s, continues in ((101.0, True), (110.0, True), (121.0, False)):
        epochs.active_s = now_s
        assert steps._continues(batches, running([epochs, batches], now_s), now_s) is continues
    epochs.active_s = 0.0
    assert not steps._continues(batches, [], 110.0)


def test_a_loop_that_seems_slower_than_the_one_around_it_is_not_the_step(loop) -> None:
    steps = LoopSteps(None, 0.0, lambda _: False)  # type: ignore[arg-type]
    bar, inner = loop(0.0001, owner=BAR, times=999), loop(0.07)
    inner.head, inner.end = 40, 80
    steps.add(bar)
    steps.add(inner)
    for now_s in (100.0, 102.5):
        bar.active_s = inner.active_s = now_s
        steps._choose(now_s)
    assert steps._selected is None
