"""What only a library holds is found in programs without steps, too."""

from __future__ import annotations

import json

import pytest

from memdiag.probe import loop_steps, ring_format

PROGRAM = """
import glob, json, logging, os, sys, time
import numpy  # a pretended one: a program that imports it is measured

def is_found():
    for file in glob.glob(os.path.join(sys.argv[1], "*.holders")):
        with open(file) as stream:
            places = json.load(stream)["places"]
        return any("loggerDict" in [name for _, name, *_ in one["path"]] for one in places)

def keep(number):
    logging.getLogger("row%d" % number).kept = bytearray(30000)

number, until = 0, time.monotonic() + 60
while time.monotonic() < until and not (number % 50 == 0 and is_found()):
    keep(number)
    number += 1
    time.sleep(0.005)
"""


@pytest.mark.slow
def test_a_registry_of_a_library_is_found(watched, any_python, tmp_path) -> None:
    (tmp_path / "numpy.py").write_text("ndarray = int\n")
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    env = {
        "PYTHONPATH": str(tmp_path),
        ring_format.EXPLAIN_VARIABLE: "always",
        loop_steps.SWITCH: "0",
    }
    end = watched.run(any_python, str(program), str(watched.directory), env=env, timeout=100)
    assert (end.returncode, end.stderr) == (0, "")
    (file,) = watched.directory.glob("*.holders")
    document = json.loads(file.read_text())
    paths = [[name for _, name, *_ in one["path"]] for one in document["places"]]
    assert any("loggerDict" in path for path in paths)
    assert {step for _, step, *_ in document["walks"]} == {ring_format.NO_STEP}
