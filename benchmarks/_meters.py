"""How a job is read: positions of its readings, noise of its meters, and what is left out.

Mechanisms (`_one_meter.py`, `_many_meters.py`, `_processes.py`) say what memory is truly held at
each reading; the functions here turn that into series as `memdiag run`, a monitor or a log has
them. Memory is in bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memdiag.values.measurements import Axis, AxisKind, Phases, Series, Unit
from memdiag.values.metrics import METRIC_ROLES

Floats = NDArray[np.float64]
Random = np.random.Generator

MB = 1e6
PAGE = 4096.0
ARENA = float(1 << 20)  # what Python's allocator takes at a time
SEGMENT = float(2 << 20)  # what CUDA's caching allocator takes at a time for small blocks
MOST_READINGS, FEWEST_READINGS = 5000, 20
NAMES = {AxisKind.SECONDS: "time_s", AxisKind.TICK: "sample"}

# How long growth has to go on to have outlasted warm-ups, and the least growth per unit of the axis
# that comes to anything (100 MB over a million steps, as in `_series`).
OUTLASTS = {
    AxisKind.STEP: 2000.0,
    AxisKind.REQUEST: 2000.0,
    AxisKind.SECONDS: 4 * 3600.0,
    AxisKind.EPOCH: 20.0,
    AxisKind.TICK: 1000.0,
}
PASSES, STEPS_OF_PASSES = 8, 500.0  # or so many passes over the data, of so many steps together
LEAST_RATE = {
    AxisKind.STEP: 100.0,
    AxisKind.REQUEST: 100.0,
    AxisKind.SECONDS: 100.0,
    AxisKind.EPOCH: 10e3,
    AxisKind.TICK: 1e3,
}


def between(rng: Random, low: float, high: float) -> float:
    """A draw that is uniform in its logarithm."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """When a job is read.

    at: true positions on the axis, ascending from 0, shape (n,); 0 before the first step.
    x: positions as recorded: whole steps, NaN before the first. at_s: seconds.
    started: part of the program's base that is loaded, 0..1, shape (n,).
    """

    rng: Random
    axis: Axis
    at: Floats
    x: Floats
    at_s: Floats
    started: Floats
    x_per_epoch: float | None = None
    phases: Phases | None = None

    @property
    def length(self) -> float:
        """Axis units from start to end."""
        return float(self.at[-1])

    @classmethod
    def draw(
        cls,
        rng: Random,
        kind: AxisKind,
        length: float,
        *,
        readings: int | None = None,
        watched: bool = False,
    ) -> Run:
        """Readings over so many axis units.

        watched: by memdiag, which sees the program's start and reads by the clock.
        """
        n = readings or int(between(rng, FEWEST_READINGS, MOST_READINGS))
        at = _positions(rng, n, length, regular=kind is AxisKind.TICK)
        start = int(rng.integers(1, 3 + n // 50)) if watched and n >= 40 else 0
        pace = 1.0 if kind is AxisKind.SECONDS else between(rng, 0.02, 3.0)
        at_s = at * pace
        if start:
            at_s += max(1.0, 0.1 * start) - at_s[0]
            before = np.linspace(0, at_s[0], start, endpoint=False)
            at, at_s = np.concatenate((np.zeros(start), at)), np.concatenate((before, at_s))
        x = at if kind is AxisKind.SECONDS else np.floor(at)
        x = np.where(np.arange(len(at)) < start, np.nan, x)
        started = np.minimum((np.arange(len(at)) + 1) / (start + 1), 1.0)
        axis = Axis(name=NAMES.get(kind, kind.value), kind=kind)
        return cls(rng=rng, axis=axis, at=at, x=x, at_s=at_s, started=started)

    def with_passes(self, x_per_epoch: float) -> Run:
        """The same run, of which the length of a pass over the data is known."""
        return replace(self, x_per_epoch=x_per_epoch)

    def seen(self, seen: NDArray[np.bool_]) -> Run:
        """The readings of a process that was there for a part of the run."""
        phases = self.phases
        if phases is not None:
            phases = replace(phases, codes=phases.codes[seen])
        return replace(
            self,
            at=self.at[seen],
            x=self.x[seen],
            at_s=self.at_s[seen],
            started=self.started[seen],
            phases=phases,
        )


def _positions(rng: Random, n: int, length: float, *, regular: bool) -> Floats:
    """n positions from 0 to `length`: even, jittered, with stalls, or dense at the start."""
    if regular:
        return np.linspace(0, length, n)
    how = rng.choice(["even", "jittered", "stalls", "dense_start"])
    gaps = np.ones(n - 1)
    if how != "even":
        gaps *= rng.lognormal(0, rng.uniform(0.05, 0.8), n - 1)
    if how == "stalls":
        gaps[rng.uniform(size=n - 1) < 0.01] *= rng.uniform(5, 30)
    if how == "dense_start":
        gaps *= 1 + np.arange(n - 1) / rng.uniform(10, 200)
    at = np.concatenate(([0.0], np.cumsum(gaps)))
    scaled: Floats = at * (length / at[-1])
    return scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What moves a meter besides: memory that is taken for a moment, and coarse figures."""

    sd: float
    phi: float = 0.0
    quantum: float = PAGE
    spike: float = 0.0
    spiking: float = 0.0

    @property
    def of_one(self) -> float:
        """Long-run standard deviation of one reading."""
        persistent = (1 + self.phi) / (1 - self.phi)
        return math.sqrt(self.sd**2 * persistent + self.quantum**2 / 12)

    @property
    def shows(self) -> float:
        """The least growth that is seen beyond doubt: five times the noise, three steps."""
        return max(5 * self.of_one, 3 * self.quantum)

    @classmethod
    def of_pages(cls, rng: Random, level: float) -> Noise:
        """Of resident memory."""
        sd = level * between(rng, 2e-5, 5e-3)
        return cls(
            sd=sd,
            phi=float(rng.choice([0, 0, 0.3, 0.6, 0.9])),
            quantum=float(rng.choice([PAGE, PAGE, PAGE, 1e6, 2.1e6])),
            spike=level * rng.uniform(0.01, 0.3),
            spiking=float(rng.choice([0, 0, 0.01, 0.05])),
        )

    @classmethod
    def exact(cls, rng: Random, sd: float) -> Noise:
        """Of a meter without pages: it moves by what is in use for a moment."""
        return cls(sd=sd * between(rng, 0.1, 3), quantum=float(rng.choice([1, 16])))

    def on(self, rng: Random, y: Floats) -> Floats:
        """What the meter reads where y is held; never below 0."""
        shocks = rng.normal(0, self.sd * math.sqrt(1 - self.phi**2), len(y))
        moved = np.empty(len(y))
        last = rng.normal(0, self.sd)
        for i, shock in enumerate(shocks):
            last = self.phi * last + shock
            moved[i] = last
        moved += (
            self.spike * rng.uniform(0.5, 1, len(y)) * (rng.uniform(size=len(y)) < self.spiking)
        )
        return np.maximum(np.ceil((y + moved) / self.quantum) * self.quantum, 0.0)


def gaps_in(rng: Random, y: Floats) -> Floats:
    """A quarter of all meters have missing cells, but for the first and the last."""
    if rng.uniform() >= 0.25:
        return y
    gone = rng.uniform(size=len(y)) < rng.uniform(0.02, 0.15)
    gone[0] = gone[-1] = False
    return np.where(gone, np.nan, y)


def read_every(y: Floats, every: int) -> Floats:
    """A meter that takes time is read seldom, at the start and the end for sure."""
    unread = np.arange(len(y)) % every > 0
    unread[-1] = False
    return np.where(unread, np.nan, y)


def series_of(run: Run, metric: str, y: Floats, process: str = "", **more: object) -> Series:
    """Readings as a series."""
    role = METRIC_ROLES[metric]
    unit = Unit.BYTES if metric.endswith("_bytes") else Unit.COUNT
    return Series(
        metric=metric,
        column=metric,
        role=role,
        unit=unit,
        axis=run.axis,
        x=run.x,
        y=y if unit is Unit.BYTES else np.round(y),
        process=process,
        at_s=run.at_s,
        phases=run.phases,
        x_per_epoch=run.x_per_epoch,
        **more,  # type: ignore[arg-type]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What one process truly holds at each reading, shape (n,) each.

    in_use: malloc, tensors of the host included. holes: what malloc holds free. blocks: Python's.
    mapped: private pages that malloc does not know. shared: pages that others use, too.
    tensors, tensor_bytes: None where there is no framework.
    """

    in_use: Floats
    holes: Floats
    blocks: Floats
    mapped: Floats
    shared: Floats
    tensors: Floats | None = None
    tensor_bytes: Floats | None = None

    @classmethod
    def stable(cls, run: Run, *, small: bool = False) -> Memory:
        """A program that has loaded what it needs. small: a helper such as a loader's worker."""
        rng, started = run.rng, run.started
        scale = 0.3 if small else 1.0
        return cls(
            in_use=scale * between(rng, 80, 4000) * MB * started,
            holes=scale * between(rng, 1, 60) * MB * started,
            blocks=between(rng, 3e5, 2e6) * started,
            mapped=scale * between(rng, 60, 300) * MB * started,
            shared=between(rng, 20, 120) * MB * started,
        )

    def and_more(self, **growths: Floats) -> Memory:
        """So much more of each kind."""
        return replace(self, **{name: getattr(self, name) + y for name, y in growths.items()})

    def resident(self) -> Floats:
        """All pages; Python's blocks are in arenas that are kept once taken."""
        arenas = np.maximum.accumulate(np.ceil(self.blocks * 80 / ARENA) * ARENA)
        total: Floats = self.in_use + self.holes + arenas + self.mapped + self.shared
        return total


def meters(
    run: Run, held: Memory, process: str, *, exact: bool = True, **more: object
) -> tuple[Series, ...]:
    """The columns that `memdiag run` writes for one process. exact: the probe is in it."""
    rng = run.rng
    resident = held.resident()
    noise = Noise.of_pages(rng, between(rng, 0.02, 0.5) * float(resident[-1]))
    noise = replace(noise, quantum=PAGE)
    pages = noise.on(rng, resident)
    unique = np.maximum(pages - held.shared, PAGE)
    found = [series_of(run, "rss_bytes", gaps_in(rng, pages), process, **more)]
    if rng.uniform() < 0.7:
        every = int(rng.integers(1, 1 + max(1, len(run.at) // 20)))
        users = rng.uniform(2, 20)
        found += [
            series_of(run, "uss_bytes", read_every(unique, every), process, **more),
            series_of(
                run, "pss_bytes", read_every(unique + held.shared / users, every), process, **more
            ),
        ]
    return (*found, *(_of_the_probe(run, held, process, more) if exact else ()))


def _of_the_probe(
    run: Run, held: Memory, process: str, more: dict[str, object]
) -> tuple[Series, ...]:
    """malloc, Python's blocks and tensors, each read as often as its cost allows."""
    rng = run.rng
    every = int(rng.choice([1, 2, 5])) if len(run.at) >= 100 else 1
    malloc = Noise.exact(rng, between(rng, 200, 2e5))
    blocks = Noise(sd=between(rng, 3, 300), quantum=1.0)
    free = Noise(sd=0.02 * float(held.holes[-1]), quantum=16.0)
    found = [
        ("malloc_bytes", malloc.on(rng, held.in_use), every),
        ("malloc_free_bytes", free.on(rng, held.holes), every),
        ("python_blocks", blocks.on(rng, held.blocks), 2 * every),
    ]
    if held.tensors is not None and held.tensor_bytes is not None:
        looks = max(1, len(run.at) // int(rng.integers(5, 40)))
        found += [
            ("tensors", held.tensors, every),
            ("tensors_cpu", held.tensors, looks),
            ("tensor_bytes", held.tensor_bytes, looks),
        ]
    return tuple(series_of(run, name, read_every(y, k), process, **more) for name, y, k in found)


def tree_of(run: Run, parts: tuple[Floats, ...], number: Floats) -> tuple[Series, ...]:
    """The rows of a whole tree: the sum of its processes' pages, NaN where one is not there."""
    total = np.sum([np.nan_to_num(part) for part in parts], axis=0)
    return (
        series_of(run, "rss_bytes", total, "tree"),
        series_of(run, "processes", number, "tree"),
    )


def truth_of_growth(
    run: Run,
    grown: Floats,
    least: float,
    *,
    onset: float = 0.0,
    since: float = 0.0,
    counted: bool = True,
) -> str:
    """ "leak" where growth outlasts warm-ups, is seen beyond doubt and comes to something, else
    "grey".

    grown: the leak alone, shape (n,). least: growth that the meter that shows it best must have.
    onset: where it begins, in axis units: after a plateau at least as long as the growth that
    warm-ups are told from, a quarter of that length is enough. since: where a warm-up ends that
    hides it before. counted: `grown` is in bytes.
    """
    kind, begin = run.axis.kind, max(onset, since)
    there = run.at >= begin
    if not there.any():
        return "grey"
    lasted, total = run.length - begin, float(grown[-1] - grown[there][0])
    enough = OUTLASTS[kind] * (0.25 if onset >= max(OUTLASTS[kind], since) else 1.0)
    passes = lasted / run.x_per_epoch if run.x_per_epoch else 0.0
    long = lasted >= enough or (passes >= PASSES and lasted >= STEPS_OF_PASSES)
    seen = total >= least and int(there.sum()) >= FEWEST_READINGS
    matters = not counted or total / max(lasted, 1e-9) >= LEAST_RATE[kind]
    return "leak" if long and seen and matters else "grey"


def shown_by(found: tuple[Series, ...], metric: str, process: str, held: Floats) -> float:
    """Growth that a meter shows beyond doubt: five times its readings' noise."""
    (one,) = [s for s in found if (s.metric, s.process) == (metric, process)]
    return 5 * float(np.nanstd(one.y - held))
