"""`memdiag.explain()` in a program whose environment lacks packages that memdiag needs."""

from __future__ import annotations

from pathlib import Path

import memdiag

ROOT = str(Path(memdiag.__file__).parents[1])
PROGRAM = """
import sys, time
sys.modules["psutil"] = None
import numpy, memdiag
rows = [bytearray(100_000) for _ in range(50)]
time.sleep(1)
print(memdiag.explain())
"""


def test_the_probe_answers_alone(watched, any_python, tmp_path) -> None:
    (tmp_path / "numpy.py").write_text("ndarray = int\n")
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = watched.run(any_python, "-c", PROGRAM, env=env)
    assert done.stderr == ""
    assert "50 bytearray: 5.0 MB, rows" in done.stdout
    assert "memdiag.explain() needs memdiag's packages" in done.stdout


def test_without_a_probe_it_says_what_is_missing(watched, python, tmp_path) -> None:
    (tmp_path / "numpy.py").write_text("ndarray = int\n")
    done = watched.run_without(python, "-c", PROGRAM, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert (done.stderr, done.returncode) == ("", 0)
    assert "psutil" in done.stdout
