"""Does a body of code leak? It is repeated until that is settled, and measured exactly.

Unlike a recorded run, a test can be repeated at will, so nothing has to be estimated. Rounds of
calls, each twice as long as the one before, are run until memory is stable (for most bodies after a
hundred calls), or until it has grown in every part of two rounds at one rate, for longer than
caches take to fill. Before each reading, garbage is collected and the allocator releases what it
can.

STABLE here does not come from the rules for recordings (memdiag/analysis/decision), which return it
if growth is not significant. Here calls can be added until a bound on the growth per call is below
the tolerance. After 130 calls in noise of 50 KB, the rules for recordings return STABLE for 3 in 20
leaks of 1 KB per call, and for 19 in 20 leaks of 200 bytes.

Standard library only: this runs inside other people's tests.
"""

from __future__ import annotations

import ctypes
import enum
import gc
import math
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean, stdev

from memdiag.probe.process_metrics import ResidentSize, malloc_bytes, python_blocks
from memdiag.probe.ring_format import ABSENT
from memdiag.values.verdict import Verdict

# Parts of a round. If each part grew or shrank by chance, all eight would grow in 1 round of 256,
# and in both of two rounds in 1 of 65,536.
PARTS = 8
# Student's t with PARTS - 1 degrees of freedom: 97.5% and 99.5%, one-sided.
_T_STABLE, _T_GROWING = 2.365, 3.499


class Metric(enum.Enum):
    """What is measured."""

    MALLOC = "malloc"  # bytes in use in malloc: exact
    BLOCKS = "blocks"  # blocks of Python's own allocator: exact
    CUDA = "cuda"  # bytes of live CUDA tensors, where torch has been imported: exact
    RSS = "rss"  # resident memory: everything, fragmentation included


# Growth per call up to this is ignored. 64 bytes per call are 64 MB in a million calls, where the
# rules for recordings stop to call growth negligible; a block has about as much. Resident memory
# changes in pages. Heuristic.
TOLERANCES = {Metric.MALLOC: 64.0, Metric.BLOCKS: 1.0, Metric.CUDA: 64.0, Metric.RSS: 4096.0}
# Resident memory also changes by this much within a round without any growth. Heuristic.
_RSS_SLACK_BYTES = 2e6
# Two rounds grow at one rate if their rates differ by at most this factor. The rate of a cache that
# fills at random, or of an arena that fills up, has at least halved by then. Heuristic.
_SAME_RATE = 1.6
# Its multiples are spread evenly between whole numbers, and match no period.
_GOLDEN = (math.sqrt(5) - 1) / 2
# Calls after which growth counts as a leak when time is out, and when this much memory is lost.
# Heuristic.
_STEPS_WHEN_LATE, _STEPS_WHEN_LARGE, _LARGE_BYTES = 500, 32, 512e6
# More rounds than anyone waits for: the 30th has 2**32 calls.
_MOST_READINGS = 1 + 30 * PARTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """When to stop. All defaults are heuristic.

    steps: calls after which growth counts as a leak: more than the entries of caches that fill by
        one entry per call (1,024 and 2,048 are common).
    steps_to_stay: fewest calls for STABLE.
    seconds: time to spend.
    allowed: growth per call that is allowed, by metric; else TOLERANCES.
    """

    steps: int = 4000
    steps_to_stay: int = 100
    seconds: float = 10.0
    metrics: tuple[Metric, ...] = tuple(Metric)
    allowed: dict[Metric, float] = field(default_factory=dict)

    def tolerance(self, metric: Metric) -> float:
        """Growth per call that is ignored."""
        return self.allowed.get(metric, TOLERANCES[metric])


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The result. `readings`: per metric, (calls so far, value) after every part.

    metric, growth_per_call: of the metric that leaks, or that grows most if it is INCONCLUSIVE.
    why: one sentence for INCONCLUSIVE.
    """

    verdict: Verdict
    calls: int
    readings: dict[Metric, tuple[tuple[int, float], ...]]
    metric: Metric | None = None
    growth_per_call: float = 0.0
    why: str = ""


class Repetition:
    """Iterate over it and run the body once per item; `settled` has the result afterwards.

    read: reads all metrics into a dict, NaN if one can't be read. read, clock: for tests.
    """

    def __init__(
        self,
        terms: Terms,
        *,
        read: Callable[[], dict[Metric, float]] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._terms = terms
        self._read = read or MetricReader(terms.metrics).read
        self._clock = clock
        self._calls = 0
        # Written in place: measuring must not add to what is measured.
        self._taken = 0
        self._at = array("q", [0] * _MOST_READINGS)
        self._values = {m: array("d", [math.nan] * _MOST_READINGS) for m in terms.metrics}
        self._round_began = array("q", [0] * _MOST_READINGS)
        self._rounds = 0
        self.settled: Settled | None = None

    def __iter__(self) -> Iterator[int]:
        """The number of the call to make, from 0."""
        began_s = self._clock()
        yield from self._run(1)  # what happens only once: imports, first use
        self._take()
        size = 1
        while self.settled is None and self._taken + PARTS < _MOST_READINGS:
            self._round_began[self._rounds] = self._taken - 1
            self._rounds += 1
            for _ in range(PARTS):
                yield from self._run(self._length(size))
                self._take()
                if self._clock() - began_s > self._terms.seconds or self._is_large():
                    self.settled = self._judge_at_end()
                    return
            self.settled = self._judge_round()
            size *= 2
        self.settled = self.settled or self._judge_at_end()

    def _length(self, size: int) -> int:
        """Between one and two sizes, different in each part. With equal parts, a buffer that is
        flushed every 63 calls would grow by one record every 64 calls."""
        return size + int(size * (self._taken * _GOLDEN % 1.0))

    def _run(self, calls: int) -> Iterator[int]:
        for _ in range(calls):
            yield self._calls
            self._calls += 1

    def _take(self) -> None:
        self._at[self._taken] = self._calls
        for metric, value in self._read().items():
            self._values[metric][self._taken] = value
        self._taken += 1

    def _rates(self, metric: Metric, back: int = 1) -> list[float]:
        """Growth per call in each part of the `back`-th last round; [] if unknown."""
        number = self._rounds - back
        if number < 0:
            return []
        first = self._round_began[number]
        last = self._round_began[number + 1] if back > 1 else self._taken - 1
        values, at = self._values[metric], self._at
        rates = [(values[n + 1] - values[n]) / (at[n + 1] - at[n]) for n in range(first, last)]
        return [] if any(math.isnan(rate) for rate in rates) else rates

    def _growth(self, metric: Metric, since: int) -> float:
        values = self._values[metric]
        return values[self._taken - 1] - values[since]

    def _is_large(self) -> bool:
        """Return True if enough memory is lost to stop, in a metric that counts bytes."""
        in_bytes = (metric for metric in self._values if metric is not Metric.BLOCKS)
        return any(self._growth(metric, 0) > _LARGE_BYTES for metric in in_bytes)

    def _judge_round(self) -> Settled | None:
        """After a whole round: settled, or not yet."""
        if self._calls >= self._terms.steps:
            leaking = self._leaking()
            if leaking is not None:
                return leaking
        if self._calls >= self._terms.steps_to_stay and all(map(self._is_stable, self._values)):
            return self._stable()
        return None

    def _judge_at_end(self) -> Settled:
        """The result when time is out, or too much memory is lost."""
        least = min(self._terms.steps, _STEPS_WHEN_LATE)
        if self._is_large():
            least = _STEPS_WHEN_LARGE
        began = self._round_began[max(self._rounds - 1, 0)]
        if self._taken - 1 - began < PARTS // 2 and self._rounds > 1:
            self._rounds -= 1  # the last round is too short: it counts as part of the one before
        leaking = self._leaking()
        if leaking is not None and self._calls >= least:
            return leaking
        rates = {m: fmean(self._rates(m)) for m in self._values if self._is_growing(m)}
        rates = rates or self._rates_of_few()
        if not rates:
            return self._stable()
        metric = max(rates, key=lambda m: rates[m] / self._terms.tolerance(m))
        why = f"it still grew after {self._calls} calls, too few to tell a leak from a warm-up"
        return self._result(Verdict.INCONCLUSIVE, metric=metric, growth=rates[metric], why=why)

    def _rates_of_few(self) -> dict[Metric, float]:
        """Growth per call since the first one, if there were too few calls for a test."""
        calls = self._calls - self._at[0]
        few = [m for m in self._values if len(self._rates(m)) < PARTS // 2 and calls > 0]
        rates = {m: self._growth(m, 0) / calls for m in few if not self._within_slack(m)}
        return {m: rate for m, rate in rates.items() if rate > self._terms.tolerance(m)}

    def _leaking(self) -> Settled | None:
        """The metric that has grown in every part of the last two rounds, at one rate."""
        for metric in self._values:  # in the order of Metric: exact ones first
            if self._is_growing(metric) and self._is_growing(metric, back=2):
                means = fmean(self._rates(metric)), fmean(self._rates(metric, back=2))
                if max(means) <= _SAME_RATE * min(means):
                    return self._result(Verdict.LEAK, metric=metric, growth=means[0])
        return None

    def _is_growing(self, metric: Metric, back: int = 1) -> bool:
        rates = self._rates(metric, back)
        if len(rates) < PARTS // 2 or min(rates) <= 0 or self._within_slack(metric):
            return False
        low = fmean(rates) - _T_GROWING * stdev(rates) / math.sqrt(len(rates))
        return low > self._terms.tolerance(metric)

    def _is_stable(self, metric: Metric) -> bool:
        rates = self._rates(metric)
        if len(rates) < 2 or self._within_slack(metric):
            return True
        high = fmean(rates) + _T_STABLE * stdev(rates) / math.sqrt(len(rates))
        return high <= self._terms.tolerance(metric)

    def _within_slack(self, metric: Metric) -> bool:
        """Return True if resident memory has changed too little in the last round."""
        began = self._round_began[self._rounds - 1]
        return metric is Metric.RSS and self._growth(metric, began) < _RSS_SLACK_BYTES

    def _stable(self) -> Settled:
        """STABLE, if anything could be read."""
        if any(not math.isnan(values[self._taken - 1]) for values in self._values.values()):
            return self._result(Verdict.STABLE)
        metrics = ", ".join(metric.value for metric in self._values)
        return self._result(Verdict.INCONCLUSIVE, why=f"none of {metrics} could be read here")

    def _result(
        self, verdict: Verdict, *, metric: Metric | None = None, growth: float = 0.0, why: str = ""
    ) -> Settled:
        taken = range(self._taken)
        return Settled(
            verdict=verdict,
            calls=self._calls,
            readings={
                metric: tuple((self._at[n], values[n]) for n in taken)
                for metric, values in self._values.items()
                if not math.isnan(values[self._taken - 1])
            },
            metric=metric,
            growth_per_call=growth,
            why=why,
        )


@contextmanager
def frozen_objects() -> Iterator[None]:
    """Freeze the objects that exist, so that each collection examines new objects only."""
    frozen_by_us = gc.get_freeze_count() == 0
    gc.collect()
    if frozen_by_us:
        gc.freeze()
    try:
        yield
    finally:
        if frozen_by_us:
            gc.unfreeze()


class MetricReader:
    """Reads this process's memory, after everything that can be released was released."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        malloc = malloc_bytes()
        known: dict[Metric, Callable[[], int] | str | None] = {
            Metric.MALLOC: malloc,
            Metric.BLOCKS: python_blocks(),
            Metric.CUDA: _cuda_bytes,
            Metric.RSS: ResidentSize(),
        }
        self._reads = {m: read for m in metrics if callable(read := known[m])}
        self._trim = _malloc_trim()

    def read(self) -> dict[Metric, float]:
        """The value of each metric, NaN if it can't be read now."""
        gc.collect()
        self._trim()
        values = {}
        for metric, read in self._reads.items():
            value = read()
            values[metric] = math.nan if value == ABSENT else float(value)
        return values


def _malloc_trim() -> Callable[[], object]:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return lambda: None
    return lambda: trim(0)


def _cuda_bytes() -> int:
    """Bytes of live CUDA tensors, ABSENT if torch or CUDA is not in use."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    try:
        if cuda is None or not cuda.is_initialized():
            return ABSENT
        return sum(int(cuda.memory_allocated(n)) for n in range(cuda.device_count()))
    except (AttributeError, RuntimeError):
        return ABSENT
