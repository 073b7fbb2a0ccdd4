"""Processes as a tree by parent."""

from __future__ import annotations

from memdiag.report.sections.process_tree import indented, ordered

JOB = {
    "main": {"pid": 1, "parent_pid": 0},
    "rank0": {"pid": 3, "parent_pid": 2},
    "sh 2": {"pid": 2, "parent_pid": 1},
    "rank0 worker 0": {"pid": 4, "parent_pid": 3},
}


def test_each_process_is_below_its_nearest_parent_with_readings() -> None:
    shown = ordered(["rank0 worker 0", "rank0", "main", "tree"], JOB)
    assert list(shown.items()) == [("tree", 0), ("main", 1), ("rank0", 2), ("rank0 worker 0", 3)]
    without_main = ordered(["rank0", "rank0 worker 0"], JOB)
    assert without_main == {"rank0": 0, "rank0 worker 0": 1}


def test_a_recording_that_says_nothing_of_parents_has_one_level() -> None:
    assert ordered(["a", "b", "tree"], {"a": {"pid": "x"}, "b": {"parent_pid": [1]}}) == {
        "tree": 0,
        "a": 1,
        "b": 1,
    }


def test_a_circle_of_parents_is_shown_once() -> None:
    circle = {"a": {"pid": 1, "parent_pid": 2}, "b": {"pid": 2, "parent_pid": 1}}
    own = {"c": {"pid": 3, "parent_pid": 3}}
    assert ordered(["a", "b", "c"], {**circle, **own}) == {"c": 0, "a": 0, "b": 1}


def test_a_chain_of_thousands_is_shown() -> None:
    chain = {str(pid): {"pid": pid, "parent_pid": pid - 1} for pid in range(1, 2000)}
    assert ordered([*chain], chain)["1999"] == 1998
    assert len(indented("x", 1998)) < 20
