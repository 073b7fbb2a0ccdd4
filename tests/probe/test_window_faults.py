"""A failure within a window of lines is unnoticed by the program: each function of it is made to
fail, one after the other."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from interpreters import share
from sabotage import functions, sabotaged

import memdiag.probe
from memdiag.probe import ring_format

PROBE = Path(memdiag.probe.__file__).parent
STARTS = Path(__file__).parent / "programs" / "sabotaged_starts.py"
FILES = (
    "known_places.py",
    "line_events.py",
    "line_window.py",
    "line_windows.py",
    "size_log.py",
    "watched_place.py",
)
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


@pytest.mark.parametrize("file", FILES)
def test_failure_in_a_window_is_unnoticed(tmp_path: Path, any_python: str, file: str) -> None:
    shutil.copytree(PROBE, tmp_path / "probe", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "numpy.py").write_text("ndarray = int\n")
    names = share([name for path, name in functions(PROBE) if path == file], any_python)
    (tmp_path / "variants").mkdir()
    for name in names:
        variant = tmp_path / "variants" / name
        variant.mkdir()
        (variant / "source.py").write_text(sabotaged((PROBE / file).read_text(), name))
    subprocess.run(
        [any_python, "-S", STARTS, tmp_path, file],
        env={
            "PYTHONPATH": os.pathsep.join([str(tmp_path / "probe" / "inject"), str(tmp_path)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            ring_format.EXPLAIN_VARIABLE: "always",
        },
        check=True,
        timeout=390,
    )
    ends = {
        name: tuple(
            (tmp_path / "variants" / name / part).read_text()
            for part in ("stdout", "stderr", "status")
        )
        for name in names
    }
    expected = ("0\n", "to stderr\n", "7")
    assert {name: end for name, end in ends.items() if end != expected} == {}
