"""A failure within a window of lines is unnoticed by the program: each function of it that
runs is made to fail, one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from interpreters import share
from sabotage import functions
from sabotaged_probes import PROBE, ends_of_variants

from memdiag.probe import ring_format

FILES = (
    "known_places.py",
    "line_events.py",
    "line_window.py",
    "line_windows.py",
    "size_log.py",
    "watched_place.py",
)
_PARTS = 2  # each in a fraction of a test's time limit
TRAINING = """
import sys, time
import numpy
session = sys.modules["_memdiag_probe"].listener
class Net:
    def __init__(self):
        self.outputs = []
def produce():
    kept = []
    while True:
        kept.append(bytearray(2000))
        yield len(kept)
def train():
    net, source, history, last = Net(), produce(), [], None
    until, n, wrong = time.monotonic() + 1.6, 0, 0
    while time.monotonic() < until:
        n += 1
        net.outputs.append(bytearray(3000))
        history = history + [bytearray(2500)]
        last = (last, bytearray(2000))
        wrong += next(source) != n or len(history) != len(net.outputs) or last is None
        session.step(n)
        time.sleep(0.002)
    print(wrong)
"""
PROGRAM = """
import sys, train
train.train()
sys.stderr.write("to stderr\\n")
sys.exit(7)
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.mark.parametrize("part", range(_PARTS))
def test_failure_in_a_window_is_unnoticed(tmp_path: Path, any_python: str, part: int) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "numpy.py").write_text("ndarray = int\n")
    names = [(file, name) for file, name in functions(PROBE) if file in FILES]
    ends = ends_of_variants(
        tmp_path,
        any_python,
        share(names, any_python)[part::_PARTS],
        {"PYTHONPATH": str(tmp_path), ring_format.EXPLAIN_VARIABLE: "always"},
        timeout_s=390,
        at_once=3,
    )
    assert ends
    expected = ("0\n", "to stderr\n", "7")
    assert {of: end for of, end in ends.items() if end != expected} == {}
