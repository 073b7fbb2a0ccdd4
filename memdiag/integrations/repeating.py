"""Does a body of code leak? It is repeated until that is settled, and measured exactly.

Unlike a recorded run, a test can be repeated at will. So nothing is guessed: rounds of calls, each
twice as long as the one before, are run until memory stays (most bodies: after a hundred calls), or
until it has grown in every part of two rounds at one rate, for longer than caches take to fill.
Before each reading garbage is collected and the allocator gives back what it can.

That memory stays is not the verdict on a recording (memdiag/analysis/decision), which says so where
growth is not beyond chance: here calls can be added until a bound on the growth per call is below
what is allowed. Asked after 130 calls in noise of 50 KB, that verdict is calm of 3 in 20 leaks of
1 KB a call, and of 19 in 20 of 200 bytes.

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
from dataclasses import dataclass, field
from statistics import fmean, stdev

from memdiag.probe.process_metrics import ResidentSize, malloc_bytes, python_blocks
from memdiag.probe.ring_format import ABSENT

# A round has so many parts. If growth in a part were up or down by chance, all eight would be up
# in 1 round of 256, and in both of two in 1 of 65,536.
PARTS = 8
# Student's t with PARTS - 1 degrees of freedom: 97.5 % and 99.5 %, one-sided.
_T_QUIET, _T_GROWING = 2.365, 3.499


class Meter(enum.Enum):
    """What is read."""

    MALLOC = "malloc"  # bytes that malloc has handed out: exact
    BLOCKS = "blocks"  # blocks of Python's own allocator: exact
    CUDA = "cuda"  # bytes of live CUDA tensors, where torch has been imported: exact
    RSS = "rss"  # resident memory: everything, but with the allocator's holes


# Growth per call at or below this is none. 64 bytes per call come to 64 MB in a million calls,
# where the verdict on recordings starts to care; a block has about as much. Resident memory moves
# in pages. Chosen.
TOLERANCES = {Meter.MALLOC: 64.0, Meter.BLOCKS: 1.0, Meter.CUDA: 64.0, Meter.RSS: 4096.0}
# Resident memory also moves by this much within a round without any growth. Chosen.
_RSS_SLACK_BYTES = 2e6
# Two rounds grow at one rate when theirs differ by no more than this factor: a cache that fills
# at random, or an arena that is used up more and more, has at least halved by then. Chosen.
_SAME_RATE = 1.6
# Its multiples are spread most evenly between whole numbers, and fit no period.
_GOLDEN = (math.sqrt(5) - 1) / 2
# More rounds than anybody waits for: the 30th has 2**32 calls.
_MOST_READINGS = 1 + 30 * PARTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """When to stop. All chosen; a caller may know better.

    steps: calls from which on growth counts as a leak: more than the caches that fill one entry a
        call usually hold (1,024 and 2,048 are common).
    steps_when_late: the same when time is out; steps_when_large: when `most_bytes` are lost.
    steps_to_stay: fewest calls for "it stays".
    seconds: time to spend.
    allowed: growth per call that is allowed, by meter; else TOLERANCES.
    """

    steps: int = 4000
    steps_when_late: int = 500
    steps_when_large: int = 32
    steps_to_stay: int = 100
    seconds: float = 10.0
    most_bytes: float = 512e6
    meters: tuple[Meter, ...] = tuple(Meter)
    allowed: dict[Meter, float] = field(default_factory=dict)

    def tolerance(self, meter: Meter) -> float:
        """Growth per call that is none."""
        return self.allowed.get(meter, TOLERANCES[meter])


class Outcome(enum.Enum):
    """What the repeating showed."""

    STAYS = "stays"
    LEAKS = "leaks"
    OPEN = "open"  # time was out before it was settled


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The result. `readings`: per meter, (calls so far, value) after every part.

    meter, growth_per_call: of the meter that leaks; of the one that grows most where it is open.
    why: one sentence for OPEN.
    """

    outcome: Outcome
    calls: int
    readings: dict[Meter, tuple[tuple[int, float], ...]]
    meter: Meter | None = None
    growth_per_call: float = 0.0
    why: str = ""


class Repetition:
    """Iterate over it and run the body once per item; `settled` has the result afterwards.

    read: reads all meters into a dict, NaN where one can't be read; for tests, as is `clock`.
    """

    def __init__(
        self,
        terms: Terms,
        *,
        read: Callable[[], dict[Meter, float]] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._terms = terms
        self._read = read or Meters(terms.meters).read
        self._clock = clock
        self._calls = 0
        # Written in place: what is measured must not grow by the measuring.
        self._taken = 0
        self._at = array("q", [0] * _MOST_READINGS)
        self._values = {m: array("d", [math.nan] * _MOST_READINGS) for m in terms.meters}
        self._round_began = array("q", [0] * _MOST_READINGS)
        self._rounds = 0
        self.settled: Settled | None = None

    def __iter__(self) -> Iterator[int]:
        """The number of the call to make, from 0."""
        began_s = self._clock()
        yield from self._run(1)  # what is done once only: imports, first use
        self._take()
        size = 1
        while self.settled is None and self._taken + PARTS < _MOST_READINGS:
            self._round_began[self._rounds] = self._taken - 1
            self._rounds += 1
            for _ in range(PARTS):
                yield from self._run(self._length(size))
                self._take()
                if self._clock() - began_s > self._terms.seconds or self._is_large():
                    self.settled = self._finish()
                    return
            self.settled = self._look()
            size *= 2
        self.settled = self.settled or self._finish()

    def _length(self, size: int) -> int:
        """Between one and two sizes, different in each part: readings at even distances would
        see a buffer that is flushed every 63 calls grow by one record in each 64."""
        return size + int(size * (self._taken * _GOLDEN % 1.0))

    def _run(self, calls: int) -> Iterator[int]:
        for _ in range(calls):
            yield self._calls
            self._calls += 1

    def _take(self) -> None:
        self._at[self._taken] = self._calls
        for meter, value in self._read().items():
            self._values[meter][self._taken] = value
        self._taken += 1

    def _rates(self, meter: Meter, back: int = 1) -> list[float]:
        """Growth per call in each part of the last round but `back - 1`; [] where unknown."""
        number = self._rounds - back
        if number < 0:
            return []
        first = self._round_began[number]
        last = self._round_began[number + 1] if back > 1 else self._taken - 1
        values, at = self._values[meter], self._at
        rates = [(values[n + 1] - values[n]) / (at[n + 1] - at[n]) for n in range(first, last)]
        return [] if any(math.isnan(rate) for rate in rates) else rates

    def _growth(self, meter: Meter, since: int) -> float:
        values = self._values[meter]
        return values[self._taken - 1] - values[since]

    def _is_large(self) -> bool:
        """Enough was lost to stop, in the meters that count bytes."""
        in_bytes = (meter for meter in self._values if meter is not Meter.BLOCKS)
        return any(self._growth(meter, 0) > self._terms.most_bytes for meter in in_bytes)

    def _look(self) -> Settled | None:
        """After a whole round: settled, or not yet."""
        if self._calls >= self._terms.steps:
            leaking = self._leaking()
            if leaking is not None:
                return leaking
        if self._calls >= self._terms.steps_to_stay and all(map(self._is_quiet, self._values)):
            return self._stays()
        return None

    def _finish(self) -> Settled:
        """Time is out, or too much memory is gone: what has been shown so far."""
        least = min(self._terms.steps, self._terms.steps_when_late)
        if self._is_large():
            least = self._terms.steps_when_large
        began = self._round_began[max(self._rounds - 1, 0)]
        if self._taken - 1 - began < PARTS // 2 and self._rounds > 1:
            self._rounds -= 1  # too little of the last round to tell: it counts to the one before
        leaking = self._leaking()
        if leaking is not None and self._calls >= least:
            return leaking
        rates = {m: fmean(self._rates(m)) for m in self._values if self._is_growing(m)}
        rates = rates or self._rates_of_few()
        if not rates:
            return self._stays()
        meter = max(rates, key=lambda m: rates[m] / self._terms.tolerance(m))
        why = f"it still grew after {self._calls} calls, too few to tell a leak from a warm-up"
        return self._result(Outcome.OPEN, meter=meter, growth=rates[meter], why=why)

    def _rates_of_few(self) -> dict[Meter, float]:
        """Growth per call since the first one, where there were too few calls to test it."""
        calls = self._calls - self._at[0]
        few = [m for m in self._values if len(self._rates(m)) < PARTS // 2 and calls > 0]
        rates = {m: self._growth(m, 0) / calls for m in few if not self._within_slack(m)}
        return {m: rate for m, rate in rates.items() if rate > self._terms.tolerance(m)}

    def _leaking(self) -> Settled | None:
        """The meter that has grown in every part of the last two rounds, at one rate."""
        for meter in self._values:  # in the order of Meter: exact ones first
            if self._is_growing(meter) and self._is_growing(meter, back=2):
                means = fmean(self._rates(meter)), fmean(self._rates(meter, back=2))
                if max(means) <= _SAME_RATE * min(means):
                    return self._result(Outcome.LEAKS, meter=meter, growth=means[0])
        return None

    def _is_growing(self, meter: Meter, back: int = 1) -> bool:
        rates = self._rates(meter, back)
        if len(rates) < PARTS // 2 or min(rates) <= 0 or self._within_slack(meter):
            return False
        low = fmean(rates) - _T_GROWING * stdev(rates) / math.sqrt(len(rates))
        return low > self._terms.tolerance(meter)

    def _is_quiet(self, meter: Meter) -> bool:
        rates = self._rates(meter)
        if len(rates) < 2 or self._within_slack(meter):
            return True
        high = fmean(rates) + _T_QUIET * stdev(rates) / math.sqrt(len(rates))
        return high <= self._terms.tolerance(meter)

    def _within_slack(self, meter: Meter) -> bool:
        """Resident memory has moved too little in the last round to mean anything."""
        began = self._round_began[self._rounds - 1]
        return meter is Meter.RSS and self._growth(meter, began) < _RSS_SLACK_BYTES

    def _stays(self) -> Settled:
        """It stays, as far as anything could be read."""
        if any(not math.isnan(values[self._taken - 1]) for values in self._values.values()):
            return self._result(Outcome.STAYS)
        meters = ", ".join(meter.value for meter in self._values)
        return self._result(Outcome.OPEN, why=f"of {meters} nothing could be read here")

    def _result(
        self, outcome: Outcome, *, meter: Meter | None = None, growth: float = 0.0, why: str = ""
    ) -> Settled:
        taken = range(self._taken)
        return Settled(
            outcome=outcome,
            calls=self._calls,
            readings={
                meter: tuple((self._at[n], values[n]) for n in taken)
                for meter, values in self._values.items()
                if not math.isnan(values[self._taken - 1])
            },
            meter=meter,
            growth_per_call=growth,
            why=why,
        )


class Meters:
    """Reads this process's memory after everything that can be given back was."""

    def __init__(self, meters: Sequence[Meter]) -> None:
        malloc = malloc_bytes()
        known: dict[Meter, Callable[[], int] | str | None] = {
            Meter.MALLOC: malloc,
            Meter.BLOCKS: python_blocks(),
            Meter.CUDA: _cuda_bytes,
            Meter.RSS: ResidentSize(),
        }
        self._reads = {m: read for m in meters if callable(read := known[m])}
        self._trim = _malloc_trim()

    def read(self) -> dict[Meter, float]:
        """The value of each meter, NaN where it can't be read now."""
        gc.collect()
        self._trim()
        values = {}
        for meter, read in self._reads.items():
            value = read()
            values[meter] = math.nan if value == ABSENT else float(value)
        return values


def _malloc_trim() -> Callable[[], object]:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return lambda: None
    return lambda: trim(0)


def _cuda_bytes() -> int:
    """Bytes of live CUDA tensors, ABSENT where torch or CUDA is not in use."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    try:
        if cuda is None or not cuda.is_initialized():
            return ABSENT
        return sum(int(cuda.memory_allocated(n)) for n in range(cuda.device_count()))
    except (AttributeError, RuntimeError):
        return ABSENT
