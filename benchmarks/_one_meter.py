"""Jobs of which one meter is known: a monitor's, a service's, or a log's column of RSS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from _meters import (
    OUTLASTS,
    Floats,
    Noise,
    Random,
    Run,
    between,
    gaps_in,
    series_of,
    truth_of_growth,
)

from memdiag.values.measurements import AxisKind, Phases, Series

DAY_S = 86400.0
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A recording's series and its truth."""

    truth: str
    series: tuple[Series, ...]


Maker = Callable[[Random], Drawn]


def _drawn(run: Run, level: float, moves: Floats, truth: str) -> Drawn:
    """One RSS column without a leak."""
    rng = run.rng
    y = Noise.of_pages(rng, level).on(rng, (level + moves) * run.started)
    return Drawn(truth=truth, series=(series_of(run, "rss_bytes", gaps_in(rng, y)),))


def _leaking(run: Run, level: float, moves: Floats, grown: Floats, *, since: float = 0.0) -> Drawn:
    """One RSS column with a leak. since: where a warm-up ends that hides it."""
    rng = run.rng
    noise = Noise.of_pages(rng, level)
    y = noise.on(rng, (level + moves + grown) * run.started)
    truth = truth_of_growth(run, grown, noise.shows, since=since)
    return Drawn(truth=truth, series=(series_of(run, "rss_bytes", gaps_in(rng, y)),))


def _level(rng: Random) -> float:
    return between(rng, 3e8, 4e10)


def _load(rng: Random, at_s: Floats, *, weekly: bool) -> Floats:
    """How busy a service is, 0..1 on an average day: quiet nights, no two days alike."""
    days = at_s / DAY_S + rng.uniform()
    busy = 0.5 - 0.5 * np.cos(2 * np.pi * days)
    busy = busy ** rng.uniform(0.6, 2) + rng.uniform(0, 0.2) * np.sin(4 * np.pi * days) ** 2
    number = np.floor(days).astype(int)
    heights = rng.lognormal(0, rng.uniform(0.02, 0.2), number[-1] + 2)
    if weekly:
        heights[np.arange(len(heights)) % 7 >= 5] *= rng.uniform(0.3, 0.8)
    day, part = number, days - number
    smooth = heights[day] * (1 - part) + heights[day + 1] * part
    return np.asarray(busy * smooth)


def day_waves(rng: Random, *, then: str) -> Drawn:
    """Memory that follows the day's load; then: "returns", "rises" or "warms_up"."""
    days = rng.uniform(3, 21)
    n = int(np.clip(days * DAY_S / between(rng, 120, 3600), 60, 5000))
    by_clock = rng.uniform() < 0.6
    kind = AxisKind.SECONDS if by_clock else AxisKind.TICK
    run = Run.draw(rng, kind, days * DAY_S if by_clock else n - 1.0, readings=n)
    at_s = run.at * days * DAY_S / run.length
    load = _load(rng, at_s, weekly=rng.uniform() < 0.5)
    level = _level(rng)
    height = level * rng.uniform(0.02, 0.4)
    if then == "rises":
        # What leaks, leaks with each request.
        grown = np.cumsum(load) / load.sum() * height * between(rng, 0.1, 4)
        drawn = _leaking(run, level, height * load, grown)
        hidden = days < 5 or grown[-1] < 0.5 * height
        return replace(drawn, truth="grey") if hidden else drawn
    moves = height * load
    if then == "warms_up":
        moves -= (
            height * rng.uniform(0.3, 3) * np.exp(-at_s / (days * DAY_S * rng.uniform(0.01, 0.12)))
        )
    return _drawn(run, level + 3 * height, moves, "bounded")


def few_days_rise(rng: Random) -> Drawn:
    """A leak with each request, recorded over a few days only: it rests at night."""
    days = rng.uniform(2.5, 5)
    readings = int(np.clip(days * DAY_S / between(rng, 120, 3600), 60, 5000))
    run = Run.draw(rng, AxisKind.SECONDS, days * DAY_S, readings=readings)
    load = _load(rng, run.at * days * DAY_S / run.length, weekly=False)
    level = _level(rng)
    height = level * rng.uniform(0.02, 0.4)
    grown = np.cumsum(load) / load.sum() * height * between(rng, 1, 4)
    return _leaking(run, level, height * load, grown)


def pass_cache(rng: Random, *, cut: bool) -> Drawn:
    """Samples are kept as they are first met: full after some passes, or cut before."""
    per_pass = between(rng, 40, 5000)
    in_order = rng.uniform() < 0.7  # else drawn with replacement: some are met late
    full_at = float(rng.choice([1.0, 2.0])) if in_order else 5.0
    most = 0.9 if in_order else 0.3
    passes = full_at * (rng.uniform(0.2, most) if cut else between(rng, 1.6, 12))
    run = Run.draw(rng, AxisKind.STEP, max(passes * per_pass, 20.0))
    run = run.with_passes(run.length / passes)
    done = run.at / run.length * passes
    full = np.minimum(done / full_at, 1.0) if in_order else 1 - np.exp(-done)
    if rng.uniform() < 0.5:  # samples of different sizes
        sizes = np.cumsum(np.diff(full, prepend=0.0) * rng.lognormal(0, 0.8, len(full)))
        full = sizes / max(float(sizes[-1]), 1e-12) * full[-1]
    level = _level(rng)
    truth = "truncated" if cut else "bounded"
    return _drawn(run, level, level * between(rng, 0.05, 2) * full, truth)


def pass_leak(rng: Random) -> Drawn:
    """A leak that goes on pass after pass, from the start or beside a cache of the first."""
    per_pass = between(rng, 40, 3000)
    passes = between(rng, 3, 60)
    run = Run.draw(rng, AxisKind.STEP, max(passes * per_pass, 20.0)).with_passes(per_pass)
    level = _level(rng)
    share = float(rng.choice([0, 0, 0.2]))
    cache = level * share * np.minimum(run.at / per_pass, 1.0)
    grown = run.at * between(rng, 2e2, 5e5)
    return _leaking(run, level, cache, grown, since=per_pass if share else 0.0)


def evaluations(rng: Random, *, leaves: bool) -> Drawn:
    """Evaluation every so many steps; each leaves a bit behind, or only the first does."""
    period = between(rng, 30, 1000)
    count = between(rng, 4, 60)
    run = Run.draw(rng, AxisKind.STEP, period * count)
    width = rng.uniform(0.03, 0.2)
    place = run.at / period % 1
    is_evaluation = place >= 1 - width
    codes = is_evaluation.astype(np.int64)
    run = replace(run, phases=Phases(codes=codes, names=("train", "eval")))
    level, done = _level(rng), np.floor(run.at / period)
    spikes = level * float(rng.choice([0, 0.05, 0.3])) * is_evaluation
    first = level * rng.uniform(0, 0.1) * (run.at >= (1 - width) * period)
    if not leaves:
        return _drawn(run, level, spikes + first, "bounded")
    sizes = level * between(rng, 2e-4, 2e-2) * rng.lognormal(0, 0.3, int(done[-1]) + 1)
    grown = (np.cumsum(sizes) - sizes[0])[done.astype(int)]
    drawn = _leaking(run, level, spikes + first, grown, since=period)
    return replace(drawn, truth="grey") if count < 8 else drawn


def service(rng: Random, *, then: str) -> Drawn:
    """By requests. then: "fills" a cache of what was asked for, is "cut" before it is full, or
    "leaks" with every request beside a full one.

    New things are asked for ever more seldom, as a power of the requests so far. Cut after more
    requests than warm-ups take, that is growth that no honest tool can name.
    """
    length = between(rng, 100, 5000) if then == "cut" else between(rng, 300, 200e3)
    run = Run.draw(rng, AxisKind.REQUEST, length)
    share = rng.uniform(1.2, 3.0) if then == "cut" else rng.uniform(0.03, 0.5)
    known = np.minimum(run.at / (share * length), 1.0) ** rng.uniform(0.35, 0.8)
    level = _level(rng)
    cache = level * between(rng, 0.03, 1) * known
    if then == "leaks":
        grown = run.at * between(rng, 150, 1e5)
        return _leaking(run, level, cache, grown, since=share * length)
    if then == "cut":
        truth = "truncated" if length < OUTLASTS[AxisKind.REQUEST] else "grey"
        return _drawn(run, level, cache, truth)
    return _drawn(run, level, cache, "bounded")


def slow_service(rng: Random, *, then: str) -> Drawn:
    """By the clock, with a warm-up of minutes or hours. then: "settles", "cut" or "leaks"."""
    tau = between(rng, 300, 2 * HOUR_S)
    length = tau * (rng.uniform(0.4, 1.5) if then == "cut" else between(rng, 8, 60))
    run = Run.draw(rng, AxisKind.SECONDS, length)
    level = _level(rng)
    warm = level * between(rng, 0.05, 1) * (1 - np.exp(-run.at / tau))
    if then != "leaks":
        return _drawn(run, level, warm, "truncated" if then == "cut" else "bounded")
    rate = level * between(rng, 0.02, 1) / length
    return _leaking(run, level, warm, rate * run.at, since=6 * tau)


def epochs(rng: Random, *, leaks: bool) -> Drawn:
    """One reading an epoch: a warm-up of one to three, and then nothing, or a bit of each."""
    n = int(between(rng, 20, 400))
    run = Run.draw(rng, AxisKind.EPOCH, n - 1.0, readings=n)
    run = replace(run, at=np.arange(n, dtype=float), x=np.arange(1.0, n + 1))
    level = _level(rng)
    warm = -level * rng.uniform(0, 0.4) * np.maximum(1 - run.at / rng.uniform(1, 3), 0)
    if not leaks:
        return _drawn(run, level, warm, "bounded")
    return _leaking(run, level, warm, level * between(rng, 2e-4, 1e-2) * run.at, since=3.0)


def monitor(rng: Random, *, leaks: bool) -> Drawn:
    """Looks of a monitor at a program in which tasks come and go, as they like."""
    n = int(between(rng, 60, 5000))
    run = Run.draw(rng, AxisKind.TICK, n - 1.0, readings=n)
    level, tasks = _level(rng), np.zeros(n)
    for _ in range(int(rng.integers(1, 30))):
        begins, lasts = int(rng.integers(0, n)), int(between(rng, 1, max(2, n / 15)))
        tasks[begins : begins + lasts] += level * rng.uniform(0.01, 0.1)
    if not leaks:
        return _drawn(run, level, tasks, "bounded")
    grown = level * between(rng, 0.05, 1) * run.at / run.length
    drawn = _leaking(run, level, tasks, grown)
    return drawn if grown[-1] > 2 * tasks.std() else replace(drawn, truth="grey")
