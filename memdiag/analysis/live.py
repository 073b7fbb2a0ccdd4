"""A verdict that may be asked at every sample of a run, in constant memory.

LEAK is said only when two judges agree: the e-process on the floors (`eprocess`), which may be
looked at for ever but takes a ramp to a plateau for growth, and the rules that judge recordings
(`classification`), which know how long warm-ups last but may not be asked too often. The rules are
asked only where growth is evident, at sample counts that grow geometrically, and must say LEAK
twice.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from memdiag.analysis import live_odds
from memdiag.analysis.confidence import confidence
from memdiag.analysis.decision.case import Decision
from memdiag.analysis.decision.decide import decide
from memdiag.analysis.prepare import Prepared, prepare
from memdiag.analysis.stream import Floors
from memdiag.findings import Interval
from memdiag.model import Axis, AxisKind, Role, Sample, Series, Unit
from memdiag.policy import DEFAULT, NO_METERS, Policy
from memdiag.recording.schema import METRIC_ROLES
from memdiag.verdicts import Reason, Verdict

MOST_TRACKS = 128  # series followed at a time; the longest unseen is dropped: chosen
LEAST_BINS = 16  # somewhat more rising floors than the e-process needs for its alarm
PAUSE_S = 0.5  # between two judgements of a series: nobody reads faster. Chosen
LEAST_MORE = 2  # floors before the rules are asked again: chosen
COARSE = (8, 64)  # samples per bin of the coarser looks, to begin with: chosen
NARROW = 256  # bins of these: chosen
GONE_S = 60.0  # a process unseen for so long is gone, and its leak with it
# What is not memory, or no evidence of a leak by itself.
SILENT = NO_METERS | {Role.COUNTER, Role.PROCESSES, Role.SWAP, Role.PEAK}


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
        self._policy = policy
        self._tracks: OrderedDict[tuple[int, str, str], _Track] = OrderedDict()
        self._cycles: OrderedDict[tuple[int, str], _Cycle] = OrderedDict()
        self._now_s = 0.0

    def add(self, sample: Sample) -> None:
        """Take one sample. Readings that are no finite numbers are passed over, and so are
        processes that may be gone in a moment."""
        self._now_s = max(self._now_s, sample.at_s)
        if sample.young:
            return
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
    """One metric of one process.

    Growth is looked for side by side in readings, in floors of `COARSE` of them, which see below
    sawteeth, and in floors of the phases' cycles.
    """

    def __init__(self, metric: str, process: str, role: Role, policy: Policy) -> None:
        self._metric, self._process, self._role, self._policy = metric, process, role, policy
        self._begin()
        self._stepped = False
        self._next = self._judge_at_s = 0.0
        self._rising_since: int | None = None
        self._leaks = 0
        self._leak_x = -math.inf  # position up to which the rules said so
        self.seen_s = 0.0
        self.said = replace(NOTHING, metric=metric, process=process)

    def _begin(self) -> None:
        chance = self._policy.live.chance / (2 + len(COARSE))
        self._fine = Floors(chance=chance)
        self._coarse = [Floors(NARROW, w, chance=chance, seed=100 * w) for w in COARSE]
        self._cycles = Floors(NARROW, chance=chance, seed=1)
        self._bins_said = -1
        self._next_teeth = 0.0
        self._teeth_rose = False

    @property
    def weight(self) -> int:
        """Among series that say the same, the longest known speaks."""
        return self._fine.samples

    def add(self, sample: Sample, value: float, cycle: _Cycle) -> None:
        """One reading."""
        self.seen_s = sample.at_s
        if sample.step is not None and not self._stepped:
            self._stepped = True
            self._begin()  # what preceded was start-up
        if self._stepped and sample.step is None:
            return
        x = float(sample.step) if sample.step is not None else sample.at_s
        for floors in (self._fine, *self._coarse):
            floors.add(value, x, sample.at_s, ends_unit=True)
        if cycle.first is not None:
            self._cycles.add(value, x, sample.at_s, ends_unit=cycle.ended)
        self._ask()

    def _ask(self) -> None:
        """Judge again if there is something new and it is time."""
        bins = len(self._fine)
        if self.seen_s < self._judge_at_s or bins == self._bins_said:
            return
        if bins >= LEAST_BINS and self._fine.samples >= self._next:
            self._bins_said, self._judge_at_s = bins, self.seen_s + PAUSE_S
            self._judge()

    def _judge(self) -> None:
        floors = [f for f in (*self._coarse, self._cycles) if len(f) >= LEAST_BINS]
        if not (any(f.rises for f in (self._fine, *floors)) or self._teeth_rise()):
            self._leaks, self._rising_since = 0, None
            self._say(self._calm(), 0.5, None)
            return
        if self._rising_since is None:
            self._rising_since = self._fine.samples
        risen = self._fine.samples - self._rising_since
        self._next = self._fine.samples + max(
            self._policy.live.patience * risen, LEAST_MORE * self._fine.width
        )
        prepared, found = self._worst([self._fine, *floors])
        verdict = found.verdict
        if verdict is not Verdict.LEAK:
            self._leaks = 0
        elif float(prepared.x[-1]) > self._leak_x:  # the same floors once more say nothing new
            self._leaks, self._leak_x = self._leaks + 1, float(prepared.x[-1])
        if verdict is Verdict.LEAK and self._leaks < self._policy.live.times:
            verdict = Verdict.INCONCLUSIVE
        growth = None
        if found.trend is not None:
            half = found.trend.half_width()
            slope = found.trend.slope
            growth = Interval(value=slope, low=slope - half, high=slope + half)
        self._say(verdict, confidence(found, prepared, self._policy), growth)

    def _teeth_rise(self) -> bool:
        """Growth is evident from one tooth of a sawtooth to the next.

        Floors need whole teeth each, and a dozen floors; the rules know where a tooth began. They
        may not be asked too often: at sample counts that grow by `live_patience`.
        """
        if self._fine.samples >= self._next_teeth:
            self._next_teeth = self._fine.samples * (1 + self._policy.live.patience)
            prepared = prepare(self._series(self._fine), self._policy)
            self._teeth_rose = False
            if prepared.floors:
                found = decide(prepared, self._policy)
                rising = found.trend is not None and found.trend.p_growth < self._policy.live.alpha
                self._teeth_rose = rising and found.verdict is Verdict.LEAK
        return self._teeth_rose

    def _worst(self, looks: list[Floors]) -> tuple[Prepared, Decision]:
        """What the rules say of readings or, where those do not show a leak, of floors."""
        readings, first = self._found(looks[0])
        if first.verdict is Verdict.LEAK:
            return readings, first
        for floors in looks[1:]:
            prepared, found = self._found(floors)
            if (
                found.verdict is not Verdict.LEAK
                or len(prepared.y) - found.tail < self._policy.live.tail_bins
            ):
                continue
            if not live_odds.is_one_tooth(readings, found, self._policy):
                return prepared, found
        return readings, first

    def _found(self, floors: Floors) -> tuple[Prepared, Decision]:
        """What the rules say; LEAK only where the odds of a run that goes on are for it too."""
        prepared = prepare(self._series(floors), self._policy)
        found = decide(prepared, self._policy)
        if found.verdict is not Verdict.LEAK:
            return prepared, found
        sure = live_odds.posterior(prepared, found, self._policy)
        if sure >= self._policy.live.posterior:
            return prepared, replace(found, posterior=sure)
        doubt = replace(found, verdict=Verdict.INCONCLUSIVE, reason=Reason.STILL_CLIMBING)
        return prepared, doubt

    def _say(self, verdict: Verdict, sure: float, growth: Interval | None) -> None:
        self.said = Leaning(
            verdict=verdict,
            confidence=sure,
            metric=self._metric,
            process=self._process,
            axis=AxisKind.STEP if self._stepped else AxisKind.SECONDS,
            growth_per_x=growth,
            samples=self._fine.samples,
        )

    def _calm(self) -> Verdict:
        """Where growth is not evident: STABLE, WARMUP, or INCONCLUSIVE while floors still rise."""
        floors, _, _ = self._fine.values
        half, much = len(floors) // 2, self._policy.common.calm_growth
        early, late = float(np.median(floors[:half])), float(np.median(floors[half:]))
        if late - early > much * abs(early):
            return Verdict.INCONCLUSIVE
        return Verdict.WARMUP if late - float(floors[0]) > much * abs(late) else Verdict.STABLE

    def _series(self, view: Floors) -> Series:
        floors, x, at_s = view.values
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
