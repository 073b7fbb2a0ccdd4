"""Up to Python 3.11 the positions of running loops are read: nothing reports their iterations."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from interpreters import interpreters

import memdiag.probe
from memdiag.capture.probelink.ring_reader import Kind

PROBE = Path(memdiag.probe.__file__).parent
PROGRAM = Path(__file__).parent / "programs" / "positions.py"
READ = [
    version
    for version in sorted(interpreters(), key=lambda one: tuple(map(int, one.split("."))))
    if (3, 8) <= tuple(map(int, version.split("."))) <= (3, 11)
]
ITERATIONS = 200
JOBS = {
    "for": f"""
    for i in range({ITERATIONS}):
        time.sleep(0.02)
    return i + 1
""",
    "while": f"""
    n = 0
    while n < {ITERATIONS}:
        n += 1
        time.sleep(0.02)
    return n
""",
}

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not READ, reason="no Python 3.8 to 3.11 on this machine"),
]


@pytest.fixture(
    params=[*(pytest.param(v, marks=pytest.mark.slow) for v in READ[:-1]), *READ[-1:]],
)
def python(request: pytest.FixtureRequest) -> str:
    return interpreters()[request.param]


def test_each_kind_of_loop_is_counted(python: str) -> None:
    command = [python, str(PROGRAM), str(PROBE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = json.loads(done.stdout)
    passes = found.pop("passes")  # (where one ended is not known)
    assert 15 <= passes <= 21
    assert found.pop("over_range") == 21
    assert set(found.values()) == {21}, found


@pytest.mark.parametrize("job", JOBS)
def test_the_steps_are_those_of_the_program(watched, tmp_path: Path, python: str, job: str) -> None:
    (tmp_path / "numpy.py").write_text("ndarray = int\n")
    program = tmp_path / "job.py"
    program.write_text(f"import time, numpy\n\ndef train():{JOBS[job]}\nprint(train())\n")
    done = watched.run(python, str(program), env={"PYTHONPATH": str(tmp_path)})
    assert (done.stdout, done.stderr) == (f"{ITERATIONS}\n", "")
    events = watched.events()
    steps = [e.step for e in events if e.kind is Kind.STEP]
    assert steps == sorted(set(steps))
    assert 0.6 * ITERATIONS <= steps[-1] <= ITERATIONS
    (note,) = [e.name for e in events if e.kind is Kind.NOTE]
    assert re.match(r"steps: iterations of the loop at .*job\.py:\d+ \(", note)


def test_an_invalid_address_is_no_position(python: str) -> None:
    """Memory that is not valid any more is an error of reading, and no position."""
    code = (
        "import os, sys, types\n"
        "package = types.ModuleType('probe'); package.__path__ = [sys.argv[1]]\n"
        "sys.modules['probe'] = package\n"
        "from probe import loop_positions as read\n"
        "memory = os.open('/proc/self/mem', os.O_RDONLY)\n"
        "try:\n"
        "    read._position(memory, 8)\n"
        "except OSError:\n"
        "    print(read._position(memory, 0), read._position(memory, id(object())))\n"
    )
    command = [python, "-c", code, str(PROBE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "None None\n"


def test_frames_that_are_gone_when_they_are_read(python: str) -> None:
    """Functions return while their frames are read: there is nothing to read, and no error."""
    code = (
        "import sys, threading, types\n"
        "package = types.ModuleType('probe'); package.__path__ = [sys.argv[1]]\n"
        "sys.modules['probe'] = package\n"
        "from probe import loop_positions as read\n"
        "def inner(n):\n"
        "    for i in range(n): pass\n"
        "def outer():\n"
        "    for i in [1, 2]: [inner(j) for j in range(3)]\n"
        "def work():\n"
        "    while True: outer()\n"
        "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
        "sys.setswitchinterval(1e-6)\n"
        "positions = read.open_positions()\n"
        "for _ in range(1_000): positions.sample()\n"
        "print(len(positions.loops) > 0)\n"
    )
    command = [python, "-c", code, str(PROBE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
