"""What the benchmark of culprits reads from its programs, and how it judges an answer."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import culprits
from _culprit_runs import Outcome, of_walks, own_line, slope_of
from _culprit_truths import Truth, all_truths, counting, marked

PROGRAM = """\
def train(data):
    kept = []
    for x in data:  # <- step
        kept.append(
            x + 1
        )  # <- kept here
"""


def truth(**fields: object) -> Truth:
    known = {"name": "p", "set": "first", "style": "torch", "kind": ("tensors",)}
    return Truth(**known | {"holder": ("kept", "train|Loop"), "stored": frozenset({4}), **fields})


def judged(outcome: Outcome, **fields: object) -> culprits.Judged:
    return culprits.Judged(truth=truth(**fields), outcome=outcome)


def test_marker_stands_for_all_lines_of_its_statement() -> None:
    assert marked(PROGRAM, "kept here") == {4, 5, 6}
    assert marked(PROGRAM, "made here") == set()


def test_steps_are_counted_at_the_marked_loop() -> None:
    counted = []
    names = {"count_step": lambda: counted.append(1)}
    exec(counting(PROGRAM), names)  # noqa: S102
    names["train"]([1, 2, 3])
    assert len(counted) == 3


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("list 'kept', local of train()", True),
        ("attribute kept of Loop", True),
        ("list 'kept'", False),
        ("list 'not_kept', local of train()", False),
    ],
)
def test_holder_is_right_with_all_its_words(text: str, right: bool) -> None:
    assert truth().holder_named(text) == right


def test_line_that_makes_is_right_only_where_nothing_stores() -> None:
    made = Outcome(program="p", tool="memdiag", line=9)
    assert not judged(made, made=frozenset({9})).line_right
    assert judged(made, made=frozenset({9}), stored=frozenset()).line_right
    assert culprits.peer_cell(truth(made=frozenset({9})), {"p": made}) == "no: 9"
    of_other = Outcome(program="p", tool="memray", lists={"diff": [9]})
    assert culprits.peer_cell(truth(made=frozenset({9})), {"p": of_other}) == "yes, made, diff"


def test_bytes_per_step_are_right_within_their_bar() -> None:
    said = Outcome(program="p", tool="memdiag", line=4, bytes_per_step=1140.0)
    assert judged(said, bytes_per_step=1000.0).bytes_right
    assert not judged(said, bytes_per_step=980.0).bytes_right


def test_culprit_on_a_program_that_does_not_leak_is_reported() -> None:
    named = Outcome(program="p", tool="memdiag", verdict="warmup", culprits=1)
    row = judged(named, kind=())
    assert row.standing == "NAMED"
    assert not all(right for _, right in culprits.figures([row]))


def test_slope_is_of_the_second_half_of_the_steps() -> None:
    sizes = [5000.0 * step if step < 50 else 250_000 + 100 * step for step in range(101)]
    readings = "".join(f"{step} {int(size)}\n" for step, size in enumerate(sizes))
    assert slope_of(readings) == pytest.approx(100, rel=0.01)
    assert slope_of("") == 0.0


def test_own_line_is_the_innermost_of_the_program() -> None:
    stack = [("/lib/torch.py", 3), ("/tmp/x/p.py", 4), ("/tmp/x/p.py", 9)]
    assert own_line(truth(), stack) == 4
    assert own_line(truth(), stack[:1]) == 0


def test_walks_alone_know_no_line_that_was_seen_to_run() -> None:
    lines = [{"line": 7, "hits": 3}, {"line": 9, "hits": 0}]
    holder = {"unit": "items", "lines": lines, "makers": [{"line": 4}]}
    process = {"holders": [holder], "native": [{}], "allocated": [{}], "watched_steps": 45}
    assert of_walks({"notes": [], "holders": [process | {"watched_s": 0.5}]}) == {
        "notes": [],
        "holders": [
            {
                "holders": [{"unit": "items", "lines": [{"line": 9, "hits": 0}], "makers": []}],
                "native": [],
                "allocated": [],
                "watched_steps": 0,
                "watched_s": 0.0,
            }
        ],
    }


def test_bar_of_the_walks_is_that_of_the_holder() -> None:
    right = Outcome(program="p", tool="walks", holder="list `kept`, local of train()")
    wrong = Outcome(program="q", tool="walks")
    truths = [truth(), truth(name="q")]
    lines = [*culprits.other_figures(truths, [right, wrong])]
    assert [met for text, met in lines if "holder" in text] == [False]
    assert all(met for _, met in culprits.other_figures(truths[:1], [right]))


def test_without_an_option_the_bars_are_the_same() -> None:
    outcome = Outcome(program="p", tool="auto", verdict="leak", kind="tensors")
    lines = dict(culprits.other_figures([truth()], [outcome]))
    assert lines["* line right: 0 of 1 (0%; bar: 90%) MISSED"] is False
    assert lines["* kind right: 1 of 1 (100%; bar: 95%)"] is True


def test_all_programs_are_known_and_marked() -> None:
    for one in all_truths().values():
        ast.parse(counting(one.path.read_text(encoding="utf-8")))
        assert bool(one.lines) == one.leaks == bool(one.holder), one.name
