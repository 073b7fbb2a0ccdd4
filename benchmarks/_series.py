"""Seeded memory series whose truth is known: what the decision is measured on.

A `Made` can be cut at any length, so that "how much longer" can be checked on its own future.
Memory is in bytes, x in steps. The truth follows four groups:

    bounded    flat, warm-ups that ended, cycles, drift, noise with long memory
    truncated  a warm-up whose plateau was not recorded, at most 150 steps
    leak       growth that never ends, clear of the noise and longer than warm-ups
    grey       growth that no honest tool can name (too short, under the noise, logarithmic), or
               that comes to nothing: under 100 bytes a step
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memdiag.values.measurements import Axis, AxisKind, Recording, Role, Series, Unit

Floats = NDArray[np.float64]
LENGTHS = (12, 24, 50, 100, 200, 500, 1000, 2000, 5000)
SHORT = (6, 8, 12, 20, 40, 80, 120)
AHEAD = 8  # a series goes on for so many times its recorded length
SLIGHT = 1e8  # bytes of growth over a million steps under which no leak is worth a word
FROM_START = {"leak_linear", "leak_stairs", "leak_sawtooth"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One series with its truth. x, y: the whole course, shape (AHEAD * n,); n: the recorded part.

    rate: true growth per step of a leak, else None. onset: the sample at which a leak begins.
    noise: long-run standard deviation of one sample, allocator steps included.
    """

    name: str
    family: str
    truth: str
    x: Floats
    y: Floats
    n: int
    rate: float | None = None
    onset: int = 0
    noise: float = 0.0

    def recording(self, length: int | None = None) -> Recording:
        """The first `length` samples (default: the recorded part) as a recording."""
        count = min(length or self.n, len(self.x))
        series = Series(
            metric="rss_bytes",
            column="rss_bytes",
            role=Role.RESIDENT,
            unit=Unit.BYTES,
            axis=Axis(name="step", kind=AxisKind.STEP),
            x=self.x[:count],
            y=self.y[:count],
        )
        return Recording(source=self.name, series=(series,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What a family's shape is drawn from. u: position over recorded length; k: sample number."""

    rng: np.random.Generator
    n: int
    level: float
    u: Floats
    k: Floats


Shape = Callable[[Draw], Floats]


def _flat(d: Draw) -> Floats:
    return np.zeros(len(d.u))


def _saturating(d: Draw) -> Floats:
    return -d.level * d.rng.uniform(0.1, 0.7) * np.exp(-d.u / d.rng.uniform(0.03, 0.12))


def _ramp(d: Draw) -> Floats:
    return -d.level * d.rng.uniform(0.1, 0.7) * np.maximum(1 - d.u / d.rng.uniform(0.1, 0.6), 0)


def _stairs(d: Draw) -> Floats:
    end, steps = d.rng.uniform(0.1, 0.6), int(d.rng.integers(2, 9))
    climbed = np.minimum(np.floor(d.u / end * steps) / steps, 1)
    return -d.level * d.rng.uniform(0.1, 0.7) * (1 - climbed)


def _two_stages(d: Draw) -> Floats:
    first = -d.level * d.rng.uniform(0.1, 0.5) * (d.u < d.rng.uniform(0.02, 0.15))
    second = -d.level * d.rng.uniform(0.02, 0.3) * (d.u < d.rng.uniform(0.3, 0.6))
    return first + second


def _sawtooth(d: Draw) -> Floats:
    period = d.rng.uniform(4, max(5, min(d.n / 4, 120)))
    height = d.level * d.rng.uniform(0.005, 0.2)
    return height * ((d.k / period + d.rng.uniform()) % 1)


def _collected(d: Draw) -> Floats:
    """A garbage-collected heap: collections come when they like."""
    gaps = d.rng.uniform(0.5, 1.5, len(d.k)) * max(4, d.n / d.rng.integers(6, 30))
    last = np.searchsorted(np.cumsum(gaps), d.k)
    since = d.k - np.concatenate(([0.0], np.cumsum(gaps)))[last]
    return d.level * d.rng.uniform(0.001, 0.01) * since


def _spikes(d: Draw) -> Floats:
    period = int(d.rng.integers(3, max(4, min(d.n // 3, 200))))
    width = max(1, period // 10)
    return d.level * d.rng.uniform(0.02, 0.4) * ((d.k % period) >= period - width).astype(float)


def _decline(d: Draw) -> Floats:
    return -d.level * d.rng.uniform(0.01, 0.2) * np.minimum(d.u, 1)


def _shift(d: Draw) -> Floats:
    return d.level * d.rng.uniform(0.01, 0.3) * (d.u >= d.rng.uniform(0.2, 0.8)).astype(float)


def _cut_ramp(d: Draw) -> Floats:
    return d.level * d.rng.uniform(0.1, 2.0) * np.minimum(d.u, d.rng.uniform(1.02, 2.5))


def _cut_saturating(d: Draw) -> Floats:
    return d.level * d.rng.uniform(0.1, 2.0) * (1 - np.exp(-d.u / d.rng.uniform(0.4, 1.5)))


def _cut_stairs(d: Draw) -> Floats:
    steps, end = int(d.rng.integers(3, 12)), d.rng.uniform(1.02, 2.5)
    stairs: Floats = np.floor(np.minimum(d.u, end) * steps) / steps
    return d.level * d.rng.uniform(0.1, 2.0) * stairs


def _logarithm(d: Draw) -> Floats:
    return d.level * d.rng.uniform(0.02, 0.2) * np.log1p(d.k)


BOUNDED: dict[str, Shape] = {
    "flat": _flat,
    "saturating": _saturating,
    "ramp": _ramp,
    "stairs": _stairs,
    "two_stages": _two_stages,
    "sawtooth": _sawtooth,
    "collected": _collected,
    "spikes": _spikes,
    "long_memory": _flat,
    "decline": _decline,
    "shift": _shift,
}
CUT: dict[str, Shape] = {
    "cut_ramp": _cut_ramp,
    "cut_saturating": _cut_saturating,
    "cut_stairs": _cut_stairs,
}
LEAKS = (
    "leak_linear",
    "leak_after_ramp",
    "leak_after_curve",
    "leak_stairs",
    "leak_sawtooth",
    "leak_late",
    "leak_pausing",
)
FAMILIES = (*BOUNDED, *CUT, "logarithm", *LEAKS)


def make(family: str, seed: int, number: int) -> Made:
    """Series `number` of a family; the same arguments give the same series."""
    rng = np.random.default_rng([seed, FAMILIES.index(family), number])
    cut = family in CUT
    n = int(rng.choice(SHORT if cut else LENGTHS))
    stride = int(rng.choice([1, max(1, 150 // n)])) if cut else int(rng.choice([1, 5, 10, 50]))
    k = np.arange(AHEAD * n, dtype=float)
    level = float(np.exp(rng.uniform(np.log(2e9), np.log(4e10))))
    draw = Draw(rng=rng, n=n, level=level, u=k / max(n - 1, 1), k=k)
    noise = _Noise.draw(rng, level, long_memory=family == "long_memory")
    first, grown = 0, np.zeros(len(k))
    if family in LEAKS:
        shape, grown, first = _leak(family, draw)
    elif family == "logarithm":
        shape = _logarithm(draw)
    else:
        shape = (BOUNDED | CUT)[family](draw)
    sawlike = family in ("sawtooth", "collected", "spikes", "decline", "leak_sawtooth")
    y = noise.on(rng, level + shape + grown, ratchet=not sawlike)
    x = k * stride
    if not cut and family not in LEAKS and rng.uniform() < 0.25:
        x = np.cumsum(rng.integers(1, 2 * stride + 1, len(k))).astype(float)
    y = _with_gaps(rng, y, n)
    truth = "truncated" if cut else "grey" if family == "logarithm" else "bounded"
    rate = None
    if family in LEAKS:
        # of the whole course: the recorded part may end anywhere on a tread
        rate = float(grown[-1] - grown[first]) / float(x[-1] - x[first])
        truth = _truth_of_leak(family, grown, first, n, x, noise)
    return Made(
        name=f"{family}-{number:03d}",
        family=family,
        truth=truth,
        x=x,
        y=y,
        n=n,
        rate=rate,
        onset=first,
        noise=math.sqrt(noise.variance),
    )


def _leak(family: str, d: Draw) -> tuple[Floats, Floats, int]:
    """(what is not the leak, the leak itself, the sample it begins at)."""
    rate = float(np.exp(d.rng.uniform(np.log(2e-4), np.log(1e-2)))) * d.level / 100.0
    rate *= float(d.rng.choice([1, 10, 50])) if d.n <= 200 else 1.0
    shape, grown, first = np.zeros(len(d.k)), rate * d.k, 0
    if family in ("leak_after_ramp", "leak_after_curve"):
        width = d.rng.uniform(0.05, 0.35)
        first, height = int(width * d.n), d.level * d.rng.uniform(0.1, 0.6)
        bend = np.exp(-d.u / (width / 4))
        shape = -height * (bend if family.endswith("curve") else np.maximum(1 - d.u / width, 0))
    elif family == "leak_stairs":
        period = int(d.rng.integers(2, max(3, d.n // 8)))
        grown = rate * period * np.floor(d.k / period)
    elif family == "leak_sawtooth":
        shape = _sawtooth(d)
    elif family == "leak_late":
        first = int(d.n * d.rng.uniform(0.4, 0.75))
        grown = rate * np.maximum(d.k - first, 0)
    elif family == "leak_pausing":
        pause = max(d.n / float(d.rng.integers(4, 9)), 4.0)
        cycle, place = np.divmod(d.k, pause)
        grown = rate * (cycle * 0.7 * pause + np.minimum(place, 0.7 * pause))
    return shape, grown, first


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noise:
    sd: float
    phi: float
    quantum: float

    @property
    def variance(self) -> float:
        """Long-run variance of a sample."""
        return self.sd**2 * (1 + self.phi) / (1 - self.phi) + self.quantum**2 / 12

    @classmethod
    def draw(cls, rng: np.random.Generator, level: float, *, long_memory: bool) -> _Noise:
        low, high = (5e-4, 1e-2) if long_memory else (1e-4, 5e-3)
        phis = [0.5, 0.8, 0.9, 0.95, 0.98] if long_memory else [0, 0, 0.3, 0.6, 0.8]
        quanta = [0, 0, 2e6, 2e7, 5.12e8] if level > 6e9 else [0, 0, 2e6, 2e7]
        sd = level * float(np.exp(rng.uniform(np.log(low), np.log(high))))
        return cls(sd=sd, phi=float(rng.choice(phis)), quantum=float(rng.choice(quanta)))

    def on(self, rng: np.random.Generator, y: Floats, *, ratchet: bool) -> Floats:
        """AR(1) noise, then allocator steps, half the time as a high-water mark."""
        shocks = rng.normal(0, self.sd * math.sqrt(1 - self.phi**2), len(y))
        shocks[0] = rng.normal(0, self.sd)
        ar = np.empty(len(y))
        last = 0.0
        for i, shock in enumerate(shocks):
            last = self.phi * last + shock
            ar[i] = last
        y = y + ar
        if self.quantum:
            y = np.ceil(y / self.quantum) * self.quantum
            if ratchet and rng.uniform() < 0.5:
                y = np.maximum.accumulate(y)
        return y


def _with_gaps(rng: np.random.Generator, y: Floats, n: int) -> Floats:
    if rng.uniform() >= 0.25:
        return y
    gone = rng.uniform(size=len(y)) < rng.uniform(0.02, 0.15)
    gone[0] = gone[n - 1] = False
    return np.where(gone, np.nan, y) if n - gone[:n].sum() >= 6 else y


def _truth_of_leak(family: str, grown: Floats, first: int, n: int, x: Floats, noise: _Noise) -> str:
    """A leak counts when an oracle sees it at six standard errors, it outlasts warm-ups and comes
    to something: `SLIGHT` over a million steps."""
    m = n - first
    error = math.sqrt(max(12 * noise.variance / max(m, 1), 1e-12))
    total = float(grown[n - 1] - grown[first])
    hidden = total / error < 6 or (noise.quantum and total < 3 * noise.quantum) or m < 8
    lasted = float(x[n - 1] - x[first])
    after = family in ("leak_after_ramp", "leak_after_curve")
    start = family in FROM_START or family == "leak_pausing"
    short = (start and lasted < 2000) or (after and lasted < 500)
    slight = total / max(lasted, 1.0) * 1e6 < SLIGHT
    return "grey" if hidden or short or slight else "leak"
