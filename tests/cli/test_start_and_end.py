"""A program is judged by its own work: not by its imports, nor by what Python frees at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memdiag.recording.read import read
from memdiag.values.measurements import Series

MB = 1e6
PROGRAM = """
import numpy
import parts

class Leaves:
    def __init__(self):
        self.held = bytearray(b"x" * 150_000_000)

    def __del__(self):
        self.held = None
        parts.wait(1.0)

def work(rounds):  # (no loop: an iteration would be a step)
    parts.wait(0.1)
    return rounds and work(rounds - 1)

leaves = Leaves()
work(20)
"""
PARTS = """
from time import sleep as wait
kept = []
def fill(rounds):
    kept.append(bytearray(b"x" * 5_000_000))
    wait(0.1)
    return rounds and fill(rounds - 1)
fill(15)
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("work")
    (where / "parts.py").write_text(PARTS)
    (where / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "memdiag", "run", "--quiet", "--output", "found.csv"]
    command += ["--fail-on", "never", "--", sys.executable, "program.py"]
    subprocess.run(command, cwd=where, check=True, timeout=60)
    return where / "found.csv"


def resident(recording: Path, process: str) -> Series:
    (series,) = (
        one
        for one in read(str(recording)).series
        if one.metric == "rss_bytes" and one.process == process
    )
    return series


@pytest.mark.parametrize("process", ["main", "tree"])
def test_neither_imports_nor_tear_down_are_judged(recording: Path, process: str) -> None:
    known = {one.process for one in read(str(recording)).series}
    if process not in known:
        pytest.skip("a tree of one process")
    y = resident(recording, process).y
    assert y[0] > 75 * MB  # (what the imports hold)
    assert y[-1] > 0.9 * y.max()
    assert len(y) >= 10


def test_the_file_holds_all_that_was_read(recording: Path) -> None:
    recording.with_suffix(".meta.json").rename(recording.with_name("aside"))
    y = resident(recording, "main").y
    recording.with_name("aside").rename(recording.with_suffix(".meta.json"))
    assert y[0] < 50 * MB
    assert y[-1] < y.max() - 100 * MB
