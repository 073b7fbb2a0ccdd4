"""A training that ends by its framework's out-of-memory error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import frameworks
import pytest
from terminals import MEMDIAG, PATIENCE_S

# One MiB more at each step, which the probe sees at each step.
TRAINING = """
import sys, time, torch
session = sys.modules["_memdiag_probe"].listener
for step in range(1000):
    torch.cuda.allocate(1)
    session.step(step)
    time.sleep(0.005)
"""
# The same in a worker, whose interpreter takes no leave: multiprocessing prints the error itself.
IN_A_WORKER = """
import multiprocessing, sys
program = compile(sys.argv[1], "worker", "exec")
def work():
    exec(program, {"__name__": "worker"})
worker = multiprocessing.get_context("fork").Process(target=work)
worker.start()
worker.join()
sys.exit(worker.exitcode)
"""
CATCHES_ALL = """
import sys, torch
try:
    torch.cuda.allocate(300)
    torch.cuda.allocate(300)
except Exception:
    status = 1
sys.exit(status)
"""


def recorded(directory: Path, *command: str) -> tuple[subprocess.CompletedProcess[str], dict]:
    frameworks.write_torch(directory / "fake")
    options = ["--json-file", "r.json", "--output", "r.csv", "--inconclusive", "pass"]
    done = subprocess.run(
        [*MEMDIAG, "run", *options, "--", sys.executable, *command],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory / "fake")},
        text=True,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    (found,) = json.loads((directory / "r.json").read_text())["recordings"]
    return done, found


def test_a_leak_that_ends_by_the_frameworks_error_is_explained(tmp_path: Path) -> None:
    done, found = recorded(tmp_path, "-c", TRAINING)
    assert done.returncode == 1
    assert found["verdict"] == "leak"
    ending = found["ending"]
    assert (ending["code"], ending["cause"]) == (1, "device_memory")
    assert ending["detail"].startswith("CUDA out of memory. Tried to allocate 1.00 MiB.")
    assert ending["at_bytes"] == 420 * frameworks.MIB  # what the allocator had reserved
    told = " ".join(done.stderr.split())
    assert "OUT OF MEMORY main ran out of GPU memory at 440 MB (exit status 1)" in told
    assert " error CUDA out of memory. Tried to allocate 1.00 MiB." in told
    assert " last vram_allocated of main 419 MB, 418 MB more than at the start" in told


@pytest.mark.parametrize("command", [(IN_A_WORKER, TRAINING), (CATCHES_ALL,)])
def test_the_same_where_the_interpreter_never_sees_the_error(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    done, found = recorded(tmp_path, "-c", *command)
    assert done.returncode == 1
    assert found["ending"]["cause"] == "device_memory"
    told = " ".join(done.stderr.split())
    assert "ran out of GPU memory" in told or "had run out of GPU memory just before" in told


@pytest.mark.parametrize("code", [0, 3])
def test_caught_error_explains_a_failure_but_not_a_success(tmp_path: Path, code: int) -> None:
    program = f"""
import sys, torch
session = sys.modules["_memdiag_probe"].listener
for size in (10, 500):
    try:
        torch.cuda.allocate(size)
    except torch.OutOfMemoryError:
        pass
    session.step(size)
sys.exit({code})
"""
    done, found = recorded(tmp_path, "-c", program)
    assert done.returncode == code
    assert (found["ending"] is not None and found["ending"]["cause"] is not None) is (code == 3)
