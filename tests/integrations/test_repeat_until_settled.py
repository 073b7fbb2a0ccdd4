"""When a repeated body is settled, on metrics whose truth is known."""

from __future__ import annotations

import functools
import gc
import math
import random
from collections.abc import Callable, Iterator

import pytest

from memdiag.integrations.repeat_until_settled import (
    Metric,
    MetricReader,
    Repetition,
    Settled,
    Terms,
)
from memdiag.values.verdict import Verdict

Memory = Callable[[int], float]


class World:
    """Memory as a function of the number of calls, and a clock that calls move."""

    def __init__(self, memory: dict[Metric, Memory], call_s: float = 1e-5) -> None:
        self._memory = memory
        self._call_s = call_s
        self.calls = 0

    def read(self) -> dict[Metric, float]:
        return {metric: value(self.calls) for metric, value in self._memory.items()}

    def clock(self) -> float:
        return self.calls * self._call_s


def settled(world: World, terms: Terms | None = None) -> Settled:
    repetition = Repetition(terms or Terms(), read=world.read, clock=world.clock)
    for number in repetition:
        assert number == world.calls
        world.calls += 1
    assert repetition.settled is not None
    return repetition.settled


def malloc(memory: Memory) -> World:
    return World({Metric.MALLOC: memory})


def steady(noise: float, seed: int = 0) -> Memory:
    rng = random.Random(seed)
    return lambda calls: 1e8 + rng.gauss(0, noise)


def test_stable_memory_is_settled_soon() -> None:
    found = settled(malloc(lambda calls: 1e8))
    assert found.verdict is Verdict.STABLE
    assert found.calls < 300


@pytest.mark.parametrize("size", [100, 1024, 50 * 1024, 5 * 2**20])
def test_growth_with_every_call_leaks_at_its_rate(size: int) -> None:
    found = settled(malloc(lambda calls: 1e8 + size * calls))
    assert (found.verdict, found.metric) == (Verdict.LEAK, Metric.MALLOC)
    assert found.growth_per_call == pytest.approx(size)


def test_what_is_lost_until_it_is_settled_is_bounded() -> None:
    found = settled(malloc(lambda calls: 5e6 * calls))
    assert found.verdict is Verdict.LEAK
    assert found.calls * 5e6 < 600e6


@pytest.mark.parametrize("entries", [10, 100, 128, 512, 1000, 1024, 2000, 2048])
def test_cache_that_fills_is_waited_for(entries: int) -> None:
    found = settled(malloc(lambda calls: 1e8 + 2000 * min(calls, entries)))
    assert found.verdict is Verdict.STABLE


def test_larger_cache_needs_more_steps() -> None:
    large = malloc(lambda calls: 1e8 + 2000 * min(calls, 5000))
    assert settled(large, Terms(steps=12_000)).verdict is Verdict.STABLE


def test_sawtooth_of_any_period_is_not_a_leak() -> None:
    for every in range(2, 700, 3):
        world = World({Metric.MALLOC: lambda n, every=every: 1e8 + 3000 * (n % every)}, call_s=1e-4)
        assert settled(world, Terms(seconds=5)).verdict is Verdict.STABLE, every


def test_noise_is_not_a_leak_in_any_of_500_runs() -> None:
    for seed in range(500):
        found = settled(malloc(steady(noise=10 ** (seed % 6), seed=seed)))
        assert found.verdict is Verdict.STABLE, seed


def test_leak_below_noise_is_detected() -> None:
    noise = steady(noise=50e3)
    found = settled(malloc(lambda calls: noise(calls) + 1024 * calls))
    assert found.verdict is Verdict.LEAK
    assert found.growth_per_call == pytest.approx(1024, rel=0.2)


def test_allowed_growth_is_stable() -> None:
    world = malloc(lambda calls: 1e8 + 1000 * calls)
    found = settled(world, Terms(allowed={Metric.MALLOC: 2000.0}))
    assert found.verdict is Verdict.STABLE
    above = malloc(lambda calls: 1e8 + 3000 * calls)
    assert settled(above, Terms(allowed={Metric.MALLOC: 2000.0})).verdict is Verdict.LEAK


def test_resident_memory_may_change_but_not_grow_for_ever() -> None:
    holes = World({Metric.MALLOC: lambda _: 1e8, Metric.RSS: lambda n: 3e8 + 1e5 * math.log1p(n)})
    assert settled(holes).verdict is Verdict.STABLE
    mapped = World({Metric.MALLOC: lambda _: 1e8, Metric.RSS: lambda n: 3e8 + 50e3 * n})
    found = settled(mapped)
    assert (found.verdict, found.metric) == (Verdict.LEAK, Metric.RSS)


def test_slow_body_that_grows_is_inconclusive_when_time_is_out() -> None:
    world = World({Metric.MALLOC: lambda calls: 2000 * calls}, call_s=0.1)
    found = settled(world, Terms(seconds=10))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.calls <= 110
    assert found.growth_per_call == pytest.approx(2000)
    assert "still grew" in found.why


def test_fewer_steps_settle_a_slow_body() -> None:
    world = World({Metric.MALLOC: lambda calls: 2000 * calls}, call_s=0.1)
    assert settled(world, Terms(seconds=10, steps=60)).verdict is Verdict.LEAK


def test_slow_stable_body_is_settled_when_time_is_out() -> None:
    world = World({Metric.MALLOC: lambda _: 1e8}, call_s=1.0)
    assert settled(world, Terms(seconds=10)).verdict is Verdict.STABLE


def test_metric_that_cannot_be_read_is_ignored() -> None:
    world = World({Metric.MALLOC: lambda _: math.nan, Metric.BLOCKS: lambda calls: 1e5 + 3 * calls})
    found = settled(world)
    assert (found.verdict, found.metric) == (Verdict.LEAK, Metric.BLOCKS)
    assert set(found.readings) == {Metric.BLOCKS}


def test_readings_have_their_number_of_calls() -> None:
    found = settled(malloc(lambda calls: 1e8 + 1024 * calls))
    readings = found.readings[Metric.MALLOC]
    assert readings[0][0] == 1
    assert readings[-1][0] == found.calls
    assert all(value == 1e8 + 1024 * calls for calls, value in readings)


# ---- the real metrics -------------------------------------------------------------------------


def repeated(body: Callable[[], object]) -> Settled:
    """Settled by the calls: a busy machine may take longer over them than the usual time."""
    repetition = Repetition(Terms(seconds=240))
    for _ in repetition:
        body()
    assert repetition.settled is not None
    return repetition.settled


@pytest.fixture(autouse=True, scope="module")
def unaware_of_other_tests() -> None:
    """Collections look at what is new alone, not at all that the test run has loaded so far."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def keep() -> Iterator[list[object]]:
    kept: list[object] = []
    yield kept
    kept.clear()


def test_doing_nothing_is_stable_in_all_metrics() -> None:
    found = repeated(lambda: None)
    assert found.verdict is Verdict.STABLE
    assert {Metric.BLOCKS, Metric.RSS} <= set(found.readings)


def test_measuring_does_not_grow_what_is_measured() -> None:
    metrics = MetricReader(tuple(Metric))
    metrics.read()
    before = metrics.read()
    for _ in range(50):
        after = metrics.read()
    assert after[Metric.BLOCKS] - before[Metric.BLOCKS] < 50


@pytest.mark.parametrize(
    ("metric", "lost"),
    [
        (Metric.MALLOC, lambda: bytes(1024)),
        (Metric.BLOCKS, lambda: [str(n) for n in range(10**6, 10**6 + 10)]),
        (Metric.MALLOC, lambda: b"x" * (5 * 2**20)),
    ],
)
def test_real_leaks_show_in_their_metric(
    metric: Metric, lost: Callable[[], object], keep: list[object]
) -> None:
    found = repeated(lambda: keep.append(lost()))
    assert (found.verdict, found.metric) == (Verdict.LEAK, metric)


def test_cycles_are_collected_before_reading() -> None:
    class Node:
        def __init__(self) -> None:
            self.me, self.payload = self, bytes(50_000)

    assert repeated(Node).verdict is Verdict.STABLE


def test_lru_cache_is_waited_for() -> None:
    @functools.lru_cache(maxsize=512)
    def cached(key: int) -> bytes:
        return bytes(2000)

    numbers = iter(range(10**9))
    assert repeated(lambda: cached(next(numbers))).verdict is Verdict.STABLE


@pytest.mark.parametrize("call_s", [1.0, 3.0, 4.0, 20.0])
def test_few_calls_with_growth_are_inconclusive_and_without_growth_stable(
    call_s: float,
) -> None:
    terms = Terms(seconds=10.0)
    world = World({Metric.MALLOC: lambda calls: 1e8 + 1024 * calls}, call_s=call_s)
    growing = settled(world, terms)
    assert growing.verdict is Verdict.INCONCLUSIVE
    assert growing.growth_per_call == pytest.approx(1024)
    assert f"it still grew after {growing.calls} calls" in growing.why
    calm = settled(World({Metric.MALLOC: lambda calls: 1e8 + min(calls, 1)}, call_s=call_s), terms)
    assert calm.verdict is Verdict.STABLE
