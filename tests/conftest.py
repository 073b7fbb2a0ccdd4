"""What holds for all tests."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest
from interpreters import interpreters, versions

_TURNSTILE = Path(__file__).parent / "interpreters.py"  # any other file: only its lock is used

# Threads of OpenMP wait in a loop; beside other workers, that took half of what trainings took.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A busy machine may stop a test for longer than any deadline.
hypothesis.settings.register_profile("memdiag", deadline=None)
hypothesis.settings.load_profile("memdiag")


def pytest_configure() -> None:
    """Start from the dispositions of a person's shell, and without a runtime directory.

    Tests that look for channels name the place by TMPDIR.

    A job in the background or under nohup ignores SIGINT, SIGQUIT or SIGHUP and hands that down,
    and the programs that the tests send signals to would ignore them as well.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    os.environ.pop("XDG_RUNTIME_DIR", None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collections look at what tests make, not at the million objects of all tests and imports."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three workers for two cores: half of the time, a test waits for a process or a clock."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return cores + cores // 2


@pytest.fixture(params=versions())
def any_python(request: pytest.FixtureRequest) -> str:
    """Each Python on this machine; all but this one are slow tests."""
    return interpreters()[request.param]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test that is marked `alone` while the other workers wait between two tests.

    Everybody takes the turnstile first, so that one who waits for the rest to end gets it next.
    """
    is_alone = item.get_closest_marker("alone") is not None
    with Path(__file__).open("rb") as running, _TURNSTILE.open("rb") as turnstile:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(running, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        try:
            return (yield)
        finally:
            fcntl.flock(running, fcntl.LOCK_UN)  # a child may still hold the descriptor


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that needed a rerun in the closing line, which else only counts them."""
    stats = terminalreporter.stats
    if reruns := stats.pop("rerun", []):
        names = ", ".join(sorted({report.nodeid for report in reruns}))
        stats[f"rerun ({names})"] = reruns
