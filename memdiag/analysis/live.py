"""A verdict that may be asked at every sample of a run, in constant memory.

LEAK is said only when two judges agree: the e-process on the floors (`eprocess`), which may be
looked at for ever but takes a ramp to a plateau for growth, and the rules that judge recordings
(`classification`), which know how long warm-ups last but may not be asked too often. The rules are
asked only where growth is evident, at sample counts that grow geometrically, and must say LEAK
twice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from memdiag.analysis.classification import classify
from memdiag.analysis.confidence import confidence
from memdiag.analysis.prepare import prepare
from memdiag.analysis.stream import Floors
from memdiag.findings import Interval, Verdict
from memdiag.model import Axis, AxisKind, Role, Sample, Series, Unit
from memdiag.policy import DEFAULT, Policy
from memdiag.recording.schema import METRIC_ROLES

MOST_TRACKS = 128  # series followed at a time; the longest unseen is dropped: chosen
LEAST_BINS = 12  # about as many rising floors as the e-process needs for its alarm
# The rules are asked again after this part of the samples since growth was evident, and after so
# many floors at least: chosen.
PATIENCE = 0.1
LEAST_MORE = 2
TIMES = 2  # the rules must say LEAK so many times running
LIVE_POSTERIOR = 0.95  # a running job is not stopped on one doubt in ten: chosen
SHORT_HISTORY = 2000  # samples that are forgotten when phases turn out to recur: chosen
GONE_S = 60.0  # a process unseen for so long is gone, and its leak with it
# What is not memory, or no evidence of a leak by itself.
SILENT = frozenset({Role.COUNTER, Role.PROCESSES, Role.SWAP, Role.PEAK})


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaning:
    """What the run looks like so far, and the series that says so ("" before any does).

    growth_per_x: per step where `axis` is STEP, else per second; None where none is evident.
    samples: of that series. confidence: 0..1.
    """

    verdict: Verdict
    confidence: float
    metric: str
    process: str
    axis: AxisKind
    growth_per_x: Interval | None
    samples: int


NOTHING = Leaning(
    verdict=Verdict.INCONCLUSIVE,
    confidence=0.0,
    metric="",
    process="",
    axis=AxisKind.SECONDS,
    growth_per_x=None,
    samples=0,
)
# Worst first: what the run's leaning is when its series differ.
RANKS = (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE)


class LiveVerdict:
    """Judges a run sample by sample. Not safe for threads.

    Memory does not grow with the number of samples, processes or metrics; a sample costs
    microseconds, amortised.
    """

    def __init__(self, policy: Policy = DEFAULT) -> None:
        self._policy = replace(policy, leak_posterior=max(policy.leak_posterior, LIVE_POSTERIOR))
        self._tracks: OrderedDict[tuple[int, str, str], _Track] = OrderedDict()
        self._cycles: OrderedDict[tuple[int, str], _Cycle] = OrderedDict()
        self._now_s = 0.0

    def add(self, sample: Sample) -> None:
        """Take one sample. Readings that are no finite numbers are passed over."""
        self._now_s = max(self._now_s, sample.at_s)
        cycle = _recent(self._cycles, (sample.pid, sample.process), _Cycle)
        cycle.turn(sample.phase)
        for metric, value in sample.readings.items():
            role = METRIC_ROLES.get(metric, Role.COUNTER)
            if role in SILENT or not abs(value) < 1e300:
                continue
            self._track(sample, metric, role).add(sample, float(value), cycle)

    def leaning(self) -> Leaning:
        """The worst that any living series says; cheap, and safe to ask at any time."""
        alive = [t for t in self._tracks.values() if self._now_s - t.seen_s <= GONE_S]
        if not alive:
            return NOTHING
        worst = min(alive, key=lambda track: (RANKS.index(track.said.verdict), -track.weight))
        return worst.said

    def _track(self, sample: Sample, metric: str, role: Role) -> _Track:
        key = (sample.pid, sample.process, metric)
        return _recent(
            self._tracks, key, lambda: _Track(metric, sample.process, role, self._policy)
        )


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def _recent(known: OrderedDict[_Key, _Value], key: _Key, make: Callable[[], _Value]) -> _Value:
    """The entry of `key`, made if new; the one unused for longest makes room."""
    value = known.get(key)
    if value is None:
        value = known[key] = make()
        if len(known) > MOST_TRACKS:
            known.popitem(last=False)
    else:
        known.move_to_end(key)
    return value


class _Cycle:
    """Where a process's phases begin anew: a floor per cycle needs the cycles' ends.

    first: the phase whose beginning ends a cycle, the first one that came again, None until then.
    ended: whether a unit (a cycle; a sample while no cycle is known) was over with the last sample.
    """

    def __init__(self) -> None:
        self.first: str | None = None
        self.ended = True
        self._phase = ""
        self._seen: set[str] = set()

    def turn(self, phase: str) -> None:
        """The process is in `phase` now."""
        begins, self._phase = phase != self._phase, phase
        if begins and self.first is None:
            if phase in self._seen:
                self.first = phase
            elif len(self._seen) < MOST_TRACKS:
                self._seen.add(phase)
        self.ended = self.first is None or (begins and phase == self.first)


class _Track:
    """One metric of one process."""

    def __init__(self, metric: str, process: str, role: Role, policy: Policy) -> None:
        self._metric, self._process, self._role, self._policy = metric, process, role, policy
        self._floors = Floors()
        self._stepped = self._cycled = False
        self._next = 0.0
        self._rising_since: int | None = None
        self._leaks = 0
        self._bins_said = -1
        self.seen_s = 0.0
        self.said = replace(NOTHING, metric=metric, process=process)

    @property
    def weight(self) -> int:
        """Among series that say the same, the longest known speaks."""
        return self._floors.samples

    def add(self, sample: Sample, value: float, cycle: _Cycle) -> None:
        """One reading."""
        self.seen_s = sample.at_s
        if sample.step is not None and not self._stepped:
            self._stepped, self._floors = True, Floors()  # what preceded was start-up
        if self._stepped and sample.step is None:
            return
        if cycle.first is not None and not self._cycled:
            self._cycled = True  # the first cycle was taken sample by sample, peaks and all
            if self._floors.samples <= SHORT_HISTORY:
                self._floors = Floors()
        x = float(sample.step) if sample.step is not None else sample.at_s
        self._floors.add(value, x, sample.at_s, ends_unit=cycle.ended)
        self._ask()

    def _ask(self) -> None:
        """Judge again if there is something new and it is time."""
        bins = len(self._floors)
        if bins != self._bins_said and bins >= LEAST_BINS and self._floors.samples >= self._next:
            self._bins_said = bins
            self._judge()

    def _judge(self) -> None:
        if not self._floors.rises:
            self._leaks, self._rising_since = 0, None
            self._say(self._calm(), 0.5, None)
            return
        if self._rising_since is None:
            self._rising_since = self._floors.samples
        risen = self._floors.samples - self._rising_since
        self._next = self._floors.samples + max(PATIENCE * risen, LEAST_MORE * self._floors.width)
        prepared = prepare(self._series(), self._policy)
        found = classify(prepared, self._policy)
        self._leaks = self._leaks + 1 if found.verdict is Verdict.LEAK else 0
        verdict = found.verdict
        if verdict is Verdict.LEAK and self._leaks < TIMES:
            verdict = Verdict.INCONCLUSIVE
        growth = None
        if found.trend is not None:
            half = found.trend.half_width()
            slope = found.trend.slope
            growth = Interval(value=slope, low=slope - half, high=slope + half)
        self._say(verdict, confidence(found, prepared, self._policy), growth)

    def _say(self, verdict: Verdict, sure: float, growth: Interval | None) -> None:
        self.said = Leaning(
            verdict=verdict,
            confidence=sure,
            metric=self._metric,
            process=self._process,
            axis=AxisKind.STEP if self._stepped else AxisKind.SECONDS,
            growth_per_x=growth,
            samples=self._floors.samples,
        )

    def _calm(self) -> Verdict:
        """Where growth is not evident: STABLE, WARMUP, or INCONCLUSIVE while floors still rise."""
        floors, _, _ = self._floors.values
        half, much = len(floors) // 2, self._policy.calm_growth
        early, late = float(np.median(floors[:half])), float(np.median(floors[half:]))
        if late - early > much * abs(early):
            return Verdict.INCONCLUSIVE
        return Verdict.WARMUP if late - float(floors[0]) > much * abs(late) else Verdict.STABLE

    def _series(self) -> Series:
        floors, x, at_s = self._floors.values
        unit = Unit.BYTES if self._metric.endswith("_bytes") else Unit.COUNT
        kind = AxisKind.STEP if self._stepped else AxisKind.SECONDS
        return Series(
            metric=self._metric,
            column=self._metric,
            role=self._role,
            unit=unit,
            axis=Axis(name="step" if self._stepped else "at_s", kind=kind),
            x=x,
            y=floors,
            at_s=at_s,
            process=self._process,
        )
