"""Work in a child process is awaited as long as it computes."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from memdiag.cli.measurement import judge_process
from memdiag.cli.measurement.judge_process import apart
from memdiag.cli.measurement.live_verdict import in_thread


@pytest.fixture(autouse=True)
def forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child is not created where polars has threads, as it may have in a process of tests."""
    monkeypatch.setattr(judge_process, "_NOT_FORKED", "")


def test_answer_of_the_child_is_the_result() -> None:
    assert apart(lambda: 7, patience_s=20.0) == 7


def test_child_that_waits_forever_is_given_up() -> None:
    assert apart(lambda: time.sleep(600) or 7, patience_s=0.2) is None


def test_child_that_computes_forever_is_given_up() -> None:
    def forever() -> int:
        while True:
            pass

    assert apart(forever, patience_s=0.2) is None


@pytest.mark.skipif(sys.platform != "linux", reason="reads the CPU time of a child")
def test_child_that_gets_little_of_the_processor_is_awaited() -> None:
    def interrupted() -> int:
        for _ in range(60):
            time.sleep(0.01)
        return 7

    assert apart(interrupted, patience_s=0.2) == 7


def test_child_that_ends_without_an_answer_has_none() -> None:
    assert apart(lambda: os._exit(1), patience_s=20.0) is None


def test_a_thread_that_judges_does_not_leave_its_locks_to_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import that another thread has begun when the child is forked never ends there."""
    (tmp_path / "slowly_imported.py").write_text(
        "import sys, time\nsys.begun.set()\ntime.sleep(0.3)\nVALUE = 7\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    begun = threading.Event()
    monkeypatch.setattr(sys, "begun", begun, raising=False)

    def value() -> int:
        return int(importlib.import_module("slowly_imported").VALUE)

    in_thread(lambda: importlib.import_module("slowly_imported"))
    assert begun.wait(60)
    assert apart(value, patience_s=2.0) == 7
