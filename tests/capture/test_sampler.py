import threading
import time

from process_tables import FakeClock

from memdiag.capture.process.clock import Budget, MonotonicClock
from memdiag.capture.process.sampler import Background, Ticker
from memdiag.capture.process.tree import Process, ProcessId

WHO = Process(id=ProcessId(1, 1), name="python")


def test_lateness_does_not_add_up():
    clock = FakeClock()
    ticker = Ticker(clock=clock, interval_s=1.0)
    times = []
    while len(times) < 5:
        clock.s += ticker.remaining_s() + 0.25
        assert ticker.take()
        times.append(clock.s)
    assert times == [100.25, 101.25, 102.25, 103.25, 104.25]
    assert ticker.missed == 0


def test_missed_ticks_are_counted_and_not_made_up_for():
    clock = FakeClock()
    ticker = Ticker(clock=clock, interval_s=1.0)
    assert ticker.take()
    clock.s += 4.5
    assert ticker.take()
    assert (ticker.ticks, ticker.missed) == (2, 3)
    assert not ticker.take()
    assert ticker.remaining_s() == 0.5


def test_a_pause_that_was_meant_misses_nothing():
    clock = FakeClock()
    ticker = Ticker(clock=clock, interval_s=1.0)
    ticker.take()
    clock.s += 1000
    ticker.restart()
    assert ticker.take()
    assert ticker.missed == 0


def test_a_budget_spaces_by_cost():
    clock = FakeClock()
    budget = Budget(clock=clock, share=0.005)
    assert budget.due()
    budget.spent(0.01)
    clock.s += 1.9
    assert not budget.due()
    clock.s += 0.2
    assert budget.due()


class Gated:
    """A source that hangs until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def read(self, processes):
        self.begun.set()
        self.go.wait(10)
        return {process.id: {"uss_bytes": 7} for process in processes}


def background(source) -> Background:
    return Background(source, budget=Budget(clock=MonotonicClock(), share=1e9), name="slow")


def until(found):
    """What `found` returns as soon as that is something."""
    deadline_s = time.monotonic() + 60
    while not (result := found()):
        assert time.monotonic() < deadline_s
        time.sleep(0.001)
    return result


def round_of(slow: Background):
    """The next round's readings."""
    return until(lambda: slow.read([WHO]))


def test_a_source_that_hangs_delays_nobody():
    source = Gated()
    slow = background(source)
    assert slow.read([WHO]) == {}
    assert source.begun.wait(10)
    assert slow.read([WHO]) == {}
    source.go.set()
    assert round_of(slow) == {WHO.id: {"uss_bytes": 7}}


def test_each_round_is_handed_out_once():
    source = Gated()
    source.go.set()
    slow = background(source)
    round_of(slow)
    slow.stop()
    leftover = slow.read([WHO])
    assert slow.read([WHO]) == {}
    assert leftover in ({}, {WHO.id: {"uss_bytes": 7}})


class Broken:
    def read(self, processes):
        raise OSError("no such thing")


def test_a_source_that_fails_ends_with_its_reason():
    slow = background(Broken())
    slow.read([WHO])
    until(lambda: slow.failure)
    assert slow.read([WHO]) == {}
    assert "no such thing" in slow.failure
