"""Is the live verdict safe to ask at every sample, how late is it, and what does it cost?

    python benchmarks/live.py [--seed S] [--per-family N] [--speed-samples N]

Bounded runs are asked after each of 100 equal parts; one LEAK ever is a false alarm. Ramps reach
their plateau after a warm-up drawn from lengths that warm-ups have (3 to 300 steps); `long ramps`
last as many steps as one likes and are listed apart: until they end they are a leak from the start.
A leak's delay is counted in samples from its onset, over the samples that an oracle needs that
knows onset, shape and noise, to see its slope at eight standard errors.
"""

from __future__ import annotations

import argparse
import math
import time
import tracemalloc

import numpy as np

from memdiag.analysis.live import LiveVerdict
from memdiag.findings import Verdict
from memdiag.model import Sample

LEVEL = 4e9
BOUNDED = ("flat", "ar1", "sawtooth", "spikes", "ramp", "saturating", "stairs", "two_stage",
           "level_shift", "slow_decline")  # fmt: skip
LONG = ("long_ramp", "long_saturating")
LEAKS = ("after_plateau", "late", "late_sawtooth", "late_spikes")
LOOKS = 100


def ar1(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    noise = np.empty(n)
    noise[0] = rng.normal()
    shocks = rng.normal(0, math.sqrt(1 - phi * phi), n)
    for i in range(1, n):
        noise[i] = phi * noise[i - 1] + shocks[i]
    return noise


def shape_of(family: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """The bounded part of a run, shape (n,), in units of the level."""
    k = np.arange(n, dtype=float)
    warm = math.exp(rng.uniform(math.log(3), math.log(300)))
    if family.startswith("long"):
        warm = n * rng.uniform(0.1, 0.6)
    height, steps, later = rng.uniform(0.1, 0.7), int(rng.integers(2, 9)), rng.uniform(0.2, 0.8)
    period = int(rng.integers(5, 100))
    shapes = {
        "ramp": lambda: -height * np.maximum(1 - k / warm, 0),
        "saturating": lambda: -height * np.exp(-3 * k / warm),
        "stairs": lambda: -height * (1 - np.minimum(np.floor(k / warm * steps) / steps, 1)),
        "two_stage": lambda: -height * (k < warm) - height / 3 * (k < (1 + 2 * later) * warm),
        "sawtooth": lambda: height / 4 * ((k / (period * 0.6) + later) % 1),
        "spikes": lambda: height / 2 * (k % period >= period - max(1, period // 10)),
        "level_shift": lambda: height / 2 * (k >= later * n),
        "slow_decline": lambda: -height / 4 * k / n,
    }
    base = {"after_plateau": "saturating"}.get(family, family)
    return next((f for name, f in shapes.items() if base.endswith(name)), lambda: 0 * k)()


def make(family: str, rng: np.random.Generator) -> tuple[np.ndarray, int, float]:
    """(bytes, onset, samples that the oracle needs); onset and need are 0 without a leak."""
    n = int(rng.choice([300, 1000, 3000]))
    sd, phi = math.exp(rng.uniform(math.log(1e-4), math.log(5e-3))), rng.choice([0, 0, 0.3, 0.8])
    if family == "ar1":
        phi = rng.choice([0.9, 0.95, 0.98])
    y = shape_of(family, n, rng) + sd * ar1(rng, n, phi)
    onset, need = 0, 0.0
    if family in LEAKS:
        onset = int(rng.uniform(0.3, 0.6) * n)
        need = math.exp(rng.uniform(math.log(10), math.log(0.2 * n)))
        long_run = sd * math.sqrt((1 + phi) / (1 - phi))
        y = y + 8 * long_run * math.sqrt(12 / need**3) * np.maximum(np.arange(n) - onset, 0)
    y = LEVEL * (1 + y)
    quantum = rng.choice([0, 0, 2e6, 2e7])
    return (np.ceil(y / quantum) * quantum if quantum else y), onset, need


def first_leak(y: np.ndarray, looks: int) -> int | None:
    """Index of the first sample after which LEAK was said, of `looks` looks; None if never."""
    live, every = LiveVerdict(), max(1, len(y) // looks)
    for i, value in enumerate(y.tolist()):
        live.add(Sample(at_s=0.1 * i, pid=1, process="main", readings={"rss_bytes": value}, step=i))
        if i % every == every - 1 and live.leaning().verdict is Verdict.LEAK:
            return i
    return None


def false_alarms(families: tuple[str, ...], seed: int, per_family: int) -> dict[str, int]:
    return {
        family: sum(
            first_leak(make(family, np.random.default_rng([seed, f, i]))[0], LOOKS) is not None
            for i in range(per_family)
        )
        for f, family in enumerate(families)
    }


def delays(seed: int, per_family: int) -> tuple[list[float], int]:
    """Delay over the oracle's need, infinite where never found; and LEAKs said before onset."""
    ratios, early = [], 0
    for f, family in enumerate(LEAKS):
        for i in range(per_family):
            y, onset, need = make(family, np.random.default_rng([seed, 100 + f, i]))
            found = first_leak(y, len(y))
            early += found is not None and found < onset
            ratios.append(math.inf if found is None or found < onset else (found - onset) / need)
    return ratios, early


def cost(samples: int, seed: int) -> tuple[float, float, int]:
    """(us per sample over the last tenth, us over all, bytes allocated over the last half)."""
    noise = LEVEL * (1 + 1e-3 * np.random.default_rng(seed).normal(size=samples))
    live, begun, late = LiveVerdict(), time.perf_counter(), 0.0
    for i, value in enumerate(noise.tolist()):
        if i == samples - samples // 10:
            late = time.perf_counter()
        live.add(Sample(at_s=0.1 * i, pid=1, process="main", readings={"rss_bytes": value}, step=i))
        live.leaning()
    ended = time.perf_counter()
    each = 1e6 * (ended - begun) / samples
    return 1e6 * (ended - late) / (samples // 10), each, _grown(live, noise, samples)


def _grown(live: LiveVerdict, noise: np.ndarray, samples: int) -> int:
    """Bytes that a tenth as many samples more leave behind."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for i in range(samples, samples + samples // 10):
        value = float(noise[i % samples])
        live.add(Sample(at_s=0.1 * i, pid=1, process="main", readings={"rss_bytes": value}, step=i))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-family", type=int, default=10)
    parser.add_argument("--speed-samples", type=int, default=1_000_000)
    options = parser.parse_args()
    alarms = false_alarms(BOUNDED, options.seed, options.per_family)
    runs = len(BOUNDED) * options.per_family
    print(f"ever LEAK, bounded      {sum(alarms.values())} of {runs} (bar <= 1 %)", alarms)
    print("ever LEAK, long ramps  ", false_alarms(LONG, options.seed, options.per_family))
    ratios, early = delays(options.seed, options.per_family)
    found = sum(math.isfinite(r) for r in ratios)
    print(f"leak delay over oracle  median {np.median(ratios):.2f} (bar <= 2), found {found} of "
          f"{len(ratios)}, before onset {early}")  # fmt: skip
    last, every, grown = cost(options.speed_samples, options.seed)
    print(f"us per sample           {last:.1f} at the end, {every:.1f} overall (bar <= 50)")
    print(f"bytes kept by a tenth more samples: {grown}")


if __name__ == "__main__":
    main()
