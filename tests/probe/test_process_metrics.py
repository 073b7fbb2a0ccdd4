"""A meter keeps within its budget, and says so where that makes it seldom."""

from __future__ import annotations

from itertools import pairwise

import pytest

from memdiag.probe import process_metrics
from memdiag.probe.process_metrics import SHARE, Budgeted
from memdiag.probe.ring_format import ABSENT


class Clock:
    """Time that passes only where a reading takes some."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(process_metrics, "monotonic", clock)
    monkeypatch.setattr(process_metrics, "thread_time", clock)
    return clock


def run(
    clock: Clock, cost_s: float, *, for_s: float, burst: int = 0
) -> tuple[list[int], list[str]]:
    """The readings of a meter of that cost, asked every 10 ms, and what it says."""
    said: list[str] = []

    def read() -> int:
        clock.s += cost_s
        return 7

    meter = Budgeted(read, said.append, burst=burst)
    found = []
    for _ in range(int(for_s / 0.01)):
        found.append(meter())
        clock.s += 0.01
    return found, said


def test_cheap_meter_is_read_each_time_and_says_nothing(clock) -> None:
    assert run(clock, 1e-6, for_s=10) == ([7] * 1000, [])


def test_dear_meter_keeps_its_share_of_the_time(clock) -> None:
    found, _ = run(clock, 5e-3, for_s=100)
    taken = sum(reading != ABSENT for reading in found)
    assert 10 < taken <= 6 + 100 * SHARE / 5e-3


def test_meter_that_has_become_seldom_says_so_once(clock) -> None:
    _, said = run(clock, 5e-3, for_s=100)
    (text,) = said
    assert text.startswith("one reading takes ")
    assert "ms in this process, so it is read at most every " in text


def test_meter_may_be_read_twice_in_a_row_after_a_rest_and_keeps_its_share(clock) -> None:
    clock.s = 100.0
    rested, _ = run(clock, 5e-5, for_s=0.04, burst=8)
    assert rested == [7] * 4
    found, _ = run(clock, 5e-3, for_s=100, burst=4)
    assert sum(reading != ABSENT for reading in found) <= 10 + 100 * SHARE / 5e-3


def test_credit_is_there_at_the_start_and_only_once(clock) -> None:
    def read() -> int:
        clock.s += 1e-5
        return 7

    meter = Budgeted(read, lambda _: None, credit_s=2e-3, share=1e-3)
    early = sum(meter() != ABSENT for _ in range(1000))
    assert 195 <= early <= 205
    clock.s += 1.0
    later = sum(meter() != ABSENT for _ in range(1000))
    assert 95 <= later <= 105


def moments(clock: Clock, cost_s: float, *, for_s: float) -> list[float]:
    """When a metric of that cost, with a first share and a credit for two, is read."""

    def read() -> int:
        clock.s += cost_s
        return 7

    began_s = clock.s
    meter = Budgeted(read, lambda _: None, share=4e-4, first_share=1e-3, credit_s=2 * cost_s)
    found = []
    while clock.s < began_s + for_s:
        if meter() != ABSENT:
            found.append(clock.s - began_s)
        clock.s += 0.05
    return found


@pytest.mark.parametrize("for_s", [30.0, 60.0, 120.0])
def test_expensive_readings_are_spread_over_a_short_run(clock, for_s: float) -> None:
    """Readings of 2.6 ms, in a run whose length nobody knows beforehand."""
    found = moments(clock, 2.6e-3, for_s=for_s)
    assert min(20.0, for_s / 3) <= len(found) <= 50
    assert sum(at_s > for_s / 2 for at_s in found) >= 5
    assert max(b - a for a, b in pairwise(found)) <= for_s / 10


def test_expensive_readings_take_their_usual_share_of_a_long_run(clock) -> None:
    found = moments(clock, 2.6e-3, for_s=3600.0)
    assert len(found) * 2.6e-3 <= 4e-4 * 3600.0 + 0.1
