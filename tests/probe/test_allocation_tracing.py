"""Tracing ends without harm while threads that Python does not know allocate."""

from __future__ import annotations

import subprocess
import tracemalloc
from pathlib import Path

import pytest

from memdiag.probe import allocation_tracing
from memdiag.probe.allocation_tracing import AllocationTracing

ROOT = Path(__file__).parent.parent.parent
# Foreign threads are in the hook of an allocation, and wait for the GIL, when tracing stops. With
# `tracemalloc.stop` alone the process gets a SIGSEGV at the first or the second time.
PROGRAM = """
import ctypes, tracemalloc
from memdiag.probe.allocation_tracing import AllocationTracing
holding, releasing = ctypes.PyDLL(None), ctypes.CDLL(None)  # the GIL
allocate = ctypes.cast(holding.PyMem_RawMalloc, ctypes.c_void_p)
for _ in range(20):
    tracing = AllocationTracing(10)
    threads = [ctypes.c_ulong() for _ in range(4)]
    for one in threads:
        holding.pthread_create(ctypes.byref(one), None, allocate, ctypes.c_void_p(64))
    holding.usleep(1000)
    tracing.stop()
    for one in threads:
        releasing.pthread_join(one, None)
print(tracemalloc.is_tracing())
"""


def test_threads_of_other_libraries_may_allocate_when_tracing_ends(any_python) -> None:
    end = subprocess.run(
        [any_python, "-c", PROGRAM],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (end.returncode, end.stdout, end.stderr) == (0, "False\n", "")


@pytest.mark.parametrize("may_stop_at_once", [False, True])
def test_tracing_begins_and_ends(monkeypatch, may_stop_at_once: bool) -> None:
    monkeypatch.setattr(allocation_tracing, "_MAY_STOP_AT_ONCE", may_stop_at_once)
    for _ in range(2):
        tracing = AllocationTracing(10)
        kept = bytes(10_000)
        assert tracemalloc.get_object_traceback(kept) is not None
        tracing.stop()
        assert not tracemalloc.is_tracing()


def test_tracing_of_the_program_is_left_alone() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError):
            AllocationTracing(10)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
