"""Censuses are taken where memory runs out, on request and from time to time, and hurt nothing."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import frameworks
import pytest

from memdiag.capture.probelink.census_file import read_answer, request_census
from memdiag.probe import ring_format
from memdiag.values.holders import Census

WAITS = """
import sys
import numpy as np
kept = [np.zeros((100, 1000)) for _ in range(50)]
print("ready", flush=True)
sys.stdin.read()
print(len(kept))
"""


def censuses(watched: Any) -> tuple[Census, ...]:
    watched.events()
    return tuple(c for one in watched.reader.censuses(0.0) for c in one.censuses)


def names(census: Census) -> list[str]:
    return [".".join(name.name or name.kind for name in group.path) for group in census.groups]


def asked(watched: Any, pid: int, why: str = "request") -> bool:
    """Ask the process, and wait for its answer."""
    (ring,) = watched.directory.glob(f"{pid}-*{ring_format.SUFFIX}")
    fd = os.open(watched.directory, os.O_RDONLY)
    try:
        token = request_census(ring.name, why, dir_fd=fd)
        until_s = time.monotonic() + 30
        while time.monotonic() < until_s:
            if read_answer(ring.name, dir_fd=fd, owners=(os.geteuid(),)) == token:
                return True
            time.sleep(0.05)
        return False
    finally:
        os.close(fd)


def test_request_is_answered_and_the_growth_is_seen(watched, python: str) -> None:
    pytest.importorskip("numpy")
    process = watched.start(python, "-c", WAITS)
    assert process.stdout.readline() == "ready\n"
    assert asked(watched, process.pid)
    assert asked(watched, process.pid, "critical")
    out, _ = process.communicate("")
    assert out == "50\n"
    first, last = censuses(watched)
    assert (first.why, last.why) == ("request", "critical")
    assert "kept.item" in names(first)
    (kept,) = [group for group in first.groups if group.shape == (100, 1000)]
    assert (kept.count, kept.size_bytes, kept.dtype) == (50, 50 * 800_000, "float64")
    assert first.types
    assert not list(watched.directory.glob("*.request"))


def test_killed_process_leaves_its_last_census(watched, python: str) -> None:
    pytest.importorskip("numpy")
    process = watched.start(python, "-c", WAITS)
    assert process.stdout.readline() == "ready\n"
    assert asked(watched, process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.communicate()
    assert len(censuses(watched)) == 1


def test_memory_error_that_ends_the_program_has_the_local_variables(watched, python: str) -> None:
    pytest.importorskip("numpy")
    program = """
import resource, time, numpy
step = sys.modules["_memdiag_probe"].listener.step
def train():
    kept = {}
    for n in range(100_000):
        kept[n] = numpy.ones((256, 1024))
        step(n)
        time.sleep(0.002)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (600 << 20),) * 2)
train()
"""
    done = watched.run(python, "-c", "import sys\n" + program)
    assert done.returncode == 1
    assert "MemoryError" in done.stderr
    last = censuses(watched)[-1]
    assert last.why == "out_of_memory"
    (kept,) = [group for group in last.groups if group.shape == (256, 1024)]
    assert [name.name for name in kept.path] == ["kept", ""]
    assert kept.path[0].owner == "train"
    assert kept.size_bytes > 300 << 20
    # What grew is written as well, with the last size.
    (holders,) = watched.reader.holders(0.0)
    assert "kept" in [holder.path[0].name for holder in holders.holders]


def test_every_python_leaves_a_census_at_a_memory_error(watched, any_python: str) -> None:
    program = """
import gc, time
class Store:
    def __init__(self):
        self.kept = []
def train(store):
    until = time.monotonic() + 3
    while time.monotonic() < until:  # (without a library it is measured after two seconds)
        store.kept.append(bytearray(100_000))
        gc.collect()
        time.sleep(0.1)
    raise MemoryError
train(Store())
"""
    done = watched.run(any_python, "-c", program)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("MemoryError")
    (found,) = censuses(watched)
    (kept,) = found.groups
    assert [name.name for name in kept.path] == ["store", "kept", ""]
    assert kept.size_bytes == kept.count * 100_000 > 1_000_000


def test_failed_allocation_on_a_gpu_is_observed_even_if_it_is_caught(
    watched, python: str, tmp_path: Path
) -> None:
    frameworks.write_torch(tmp_path / "fake")
    program = """
import sys, time, torch
step = sys.modules["_memdiag_probe"].listener.step
torch.cuda.allocate(100)
until = time.monotonic() + 10
n = 0
while not torch._C.observers and time.monotonic() < until:
    step(n)
    n += 1
    time.sleep(0.01)
for _ in range(3):
    try:
        torch.cuda.allocate(500)
    except torch.OutOfMemoryError:
        pass
print(len(torch._C.observers))
"""
    done = watched.run(python, "-c", program, env={"PYTHONPATH": str(tmp_path / "fake")})
    assert (done.stdout, done.stderr) == ("1\n", "")
    (found,) = censuses(watched)  # one for three errors in a row
    assert found.why == "out_of_memory"
    assert found.allocators["vram_allocated_bytes"] == 100 << 20


@pytest.mark.slow
def test_regular_ones_grow_rare_and_few_are_kept(watched, python: str) -> None:
    pytest.importorskip("numpy")
    program = """
import sys, time, numpy
step = sys.modules["_memdiag_probe"].listener.step
kept = []
began = time.monotonic()
while time.monotonic() < began + 14:
    kept.append(numpy.zeros((10, 1000)))
    step(len(kept))
    time.sleep(0.01)
"""
    done = watched.run(python, "-c", program, env={ring_format.CENSUS_VARIABLE: "1"})
    assert (done.stdout, done.stderr) == ("", "")
    found = censuses(watched)
    assert 3 <= len(found) <= 6
    assert {one.why for one in found} == {"regular"}
    steps = [one.step for one in found]
    assert steps == sorted(steps)
    sizes = [next(g.size_bytes for g in one.groups if g.shape == (10, 1000)) for one in found]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 2 * sizes[0]


def test_error_in_a_census_ends_it_and_not_the_program(watched, python: str) -> None:
    pytest.importorskip("numpy")
    program = """
import sys
import _memdiag_probe.boot, _memdiag_probe.census_sampler as sampler
def fails(*_, **__):
    raise MemoryError
sampler.census = fails
import numpy
raise MemoryError("of the program")
"""
    done = watched.run(python, "-c", program)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("MemoryError: of the program")
    assert censuses(watched) == ()
