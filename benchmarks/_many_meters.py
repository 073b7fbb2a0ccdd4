"""Jobs of one process with several meters, of which some grow and others do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from _meters import (
    MB,
    SEGMENT,
    Floats,
    Memory,
    Noise,
    Random,
    Run,
    between,
    meters,
    series_of,
    shown_by,
    truth_of_growth,
)
from _one_meter import Drawn

from memdiag.values.measurements import AxisKind, Series


def training(rng: Random, low: float = 300, high: float = 30e3) -> Run:
    """A training of so many steps, watched from its start."""
    return Run.draw(rng, AxisKind.STEP, between(rng, low, high), watched=True)


def _main(run: Run, held: Memory) -> tuple[Series, ...]:
    return meters(run, held, "main")


def _up_to(rng: Random, run: Run) -> Floats:
    """Growth to 1 that slows down: by a curve, or by records of a largest batch."""
    if rng.uniform() < 0.5:
        return np.asarray(1 - np.exp(-run.at / (run.length * between(rng, 0.05, 1.0))))
    batches = rng.gamma(rng.uniform(1, 6), 1.0, len(run.at))
    records = np.maximum.accumulate(batches)
    return np.asarray((records - records[0]) / max(float(np.ptp(records)), 1e-9))


def holes(rng: Random) -> Drawn:
    """Pages grow by holes between blocks of different sizes; what is in use does not."""
    run = training(rng)
    more = between(rng, 5, 300) * MB * _up_to(rng, run)
    held = Memory.stable(run).and_more(holes=more)
    return Drawn(truth="bounded", series=_main(run, held))


def full_cache(rng: Random) -> Drawn:
    """A cache is filled and full; pages creep on by holes for some time."""
    run = training(rng)
    full_at = run.length * rng.uniform(0.2, 0.65)
    size = between(rng, 10, 800) * MB
    filled = size * np.minimum(run.at / full_at, 1.0)
    after = np.maximum(run.at - full_at, 0.0) / run.length
    creep = size * rng.uniform(0.01, 0.15) * (1 - np.exp(-after / rng.uniform(0.05, 0.3)))
    part = size * rng.uniform(0.05, 0.3) * np.minimum(run.at / full_at, 1.0)
    held = Memory.stable(run).and_more(in_use=filled, holes=part + creep)
    return Drawn(truth="bounded", series=_main(run, held))


def leak_beside_full_cache(rng: Random) -> Drawn:
    """A cache is filled and full; pages that malloc does not know go on growing beside it. Only
    what they grow by afterwards tells that from the cache's own holes."""
    run = training(rng)
    full_at = run.length * rng.uniform(0.2, 0.65)
    size = between(rng, 10, 800) * MB
    grown = size * rng.uniform(0.3, 1.5) * run.at / run.length
    held = Memory.stable(run).and_more(
        in_use=size * np.minimum(run.at / full_at, 1.0), mapped=grown
    )
    found = _main(run, held)
    least = _beyond_holes(found, held)
    return Drawn(truth=truth_of_growth(run, grown, least, since=full_at), series=found)


def _beyond_holes(found: tuple[Series, ...], held: Memory) -> float:
    """Growth that pages show beyond doubt. What malloc holds free may be touched at last: less than
    that has two explanations."""
    return max(shown_by(found, "rss_bytes", "main", held.resident()), float(held.holes.max()))


def _leak(run: Run, held: Memory, grown: Floats, best: str, shown: Floats) -> Drawn:
    """A leak that the exact meter `best` shows, of which it truly holds `shown`."""
    found = _main(run, held)
    least = shown_by(found, best, "main", np.where(run.started >= 1, shown, np.nan))
    counted = best != "python_blocks"
    return Drawn(truth=truth_of_growth(run, grown, least, counted=counted), series=found)


def touched_holes(rng: Random) -> Drawn:
    """malloc holds memory free that was never touched; it is, little by little."""
    run = training(rng)
    held = Memory.stable(run)
    untouched = float(held.holes.max()) * rng.uniform(0.2, 1) * (1 - _up_to(rng, run))
    found = _main(run, held.and_more(mapped=-untouched * run.started))
    return Drawn(truth="bounded", series=found)


def native_leak(rng: Random) -> Drawn:
    """A library maps pages and forgets them: malloc and Python's blocks are stable."""
    run = training(rng)
    grown = between(rng, 300, 3e5) * run.at
    held = Memory.stable(run).and_more(mapped=grown)
    found = _main(run, held)
    return Drawn(truth=truth_of_growth(run, grown, _beyond_holes(found, held)), series=found)


def malloc_leak(rng: Random) -> Drawn:
    """What leaks fills holes first; pages show it late, and in steps of what malloc takes."""
    run = training(rng)
    grown = between(rng, 250, 2e5) * run.at
    held = Memory.stable(run)
    room = between(rng, 1, 200) * MB * run.started
    unit = float(rng.choice([132e3, 1e6, 4e6, 64e6]))
    beyond = np.ceil(np.maximum(grown - room, 0.0) / unit) * unit
    left = room + beyond - grown
    held = held.and_more(in_use=grown, holes=left)
    return _leak(run, held, grown, "malloc_bytes", held.in_use)


def tensors_leak(rng: Random) -> Drawn:
    """Tensors on the host are kept: losses, outputs, replays."""
    run = training(rng)
    every = float(rng.choice([1, 1, 10, 100]))
    size = every * between(rng, 300, 1e5)
    kept = np.floor(run.at / every)
    around = 400.0  # bytes beside a tensor's storage
    held = replace(
        Memory.stable(run),
        tensors=np.round(rng.uniform(30, 2000) * run.started) + kept,
        tensor_bytes=between(rng, 1, 100) * MB * run.started + size * kept,
    ).and_more(in_use=(size + around) * kept)
    return _leak(run, held, (size + around) * kept, "malloc_bytes", held.in_use)


def tensors_stable(rng: Random) -> Drawn:
    """Tensors in cycles come and go as the collector finds them; few looks meet them."""
    run = training(rng)
    period = between(rng, 20, 400)
    kept = np.floor((run.at % period) * rng.uniform(0.2, 1))
    size = between(rng, 1e3, 1e5)
    held = replace(
        Memory.stable(run),
        tensors=np.round(rng.uniform(30, 2000) * run.started) + kept,
        tensor_bytes=between(rng, 1, 100) * MB * run.started + size * kept,
    ).and_more(in_use=size * kept)
    return Drawn(truth="bounded", series=_main(run, held))


def objects_leak(rng: Random) -> Drawn:
    """Small Python objects are kept; their arenas of 1 MB are lost in the noise of pages."""
    run = training(rng)
    grown = between(rng, 12, 400) * run.at
    held = Memory.stable(run).and_more(blocks=grown)
    drawn = _leak(run, held, grown, "python_blocks", held.blocks)
    slight = grown[-1] < 12 * run.length
    return replace(drawn, truth="grey") if slight else drawn


def garbage(rng: Random, *, then: str) -> Drawn:
    """Objects in cycles. then: "waits" for the first full collection, is "collected" by several,
    or some objects are "kept" beside it through all of them."""
    run = training(rng, 600, 20e3)
    times = {"waits": rng.uniform(1.05, 2.0)}  # its length, else a part of it
    period = times.get(then, rng.uniform(0.05, 0.22)) * run.length
    rate = between(rng, 10, 200)  # objects a step that the young collections miss
    bytes_of_each = between(rng, 20, 2000)  # of malloc's
    old = rate * (run.at % period)
    kept = rate * rng.uniform(0.3, 2) * run.at if then == "kept" else np.zeros(len(run.at))
    freed_bytes = bytes_of_each * (np.maximum.accumulate(old) - old)
    held = Memory.stable(run).and_more(
        blocks=old + kept,
        in_use=bytes_of_each * (old + kept),
        holes=rng.uniform(0.2, 1) * freed_bytes,
    )
    found = _main(run, held)
    full = np.floor(run.at / period)
    freed = rate * period * full
    young = rate * rng.uniform(0.6, 4) * run.at
    of_start = rng.integers(1, 8), rng.integers(20, 300), rng.integers(1000, 20_000)
    counts = {
        "gc_full_collections": of_start[0] + full,
        "gc_full_freed_objects": of_start[1] + freed,
        "gc_young_freed_objects": of_start[2] + np.floor(young),
    }
    found += tuple(series_of(run, name, y, "main") for name, y in counts.items())
    if then != "kept":
        return Drawn(truth="truncated" if then == "waits" else "bounded", series=found)
    teeth = 5 * rate * period / np.sqrt(12)
    return Drawn(truth=truth_of_growth(run, kept, teeth, counted=False), series=found)


def shared_pages(rng: Random, *, leaks: bool) -> Drawn:
    """Pages of a mapped file are touched one after the other: RSS grows and USS does not, but for
    what leaks beside."""
    run = training(rng)
    size = between(rng, 20, 4000) * MB
    touched = size * np.minimum(run.at / (run.length * between(rng, 0.3, 2)), 1.0)
    grown = (between(rng, 500, 2e5) if leaks else 0.0) * run.at
    held = Memory.stable(run).and_more(shared=touched, mapped=grown)
    noise = Noise.of_pages(rng, 0.1 * float(held.mapped[-1]))
    pages = noise.on(rng, held.resident())
    unique = np.maximum(pages - held.shared, 4096.0)
    users = rng.uniform(2, 10)
    found = (
        series_of(run, "rss_bytes", pages, "main"),
        series_of(run, "uss_bytes", unique, "main"),
        series_of(run, "pss_bytes", unique + held.shared / users, "main"),
    )
    truth = truth_of_growth(run, grown, noise.shows) if leaks else "bounded"
    return Drawn(truth=truth, series=found)


def device(rng: Random, *, grows: str) -> Drawn:
    """An allocator's cache on a device. grows: "reserved" alone, "allocated" and with it the
    cache, or what the "driver" counts and the framework does not know."""
    run = training(rng)
    base = between(rng, 200, 40e3) * MB
    rate = between(rng, 500, 5e5)
    grown = np.zeros(len(run.at)) if grows == "reserved" else rate * run.at
    live = base * run.started + (grown if grows == "allocated" else 0.0)
    live = Noise(sd=base * between(rng, 1e-5, 3e-3), quantum=512.0).on(rng, live)
    slack = base * between(rng, 0.02, 0.3)
    split = slack * (
        0.3 + (0.7 * between(rng, 0.5, 8) * _up_to(rng, run) if grows == "reserved" else 0.0)
    )
    segment = float(rng.choice([SEGMENT, 20 * 1024**2]))
    peaks = np.maximum.accumulate(live)
    reserved = np.maximum.accumulate(np.ceil((peaks + split) / segment) * segment)
    context = rng.uniform(200, 600) * MB
    outside = grown if grows == "driver" else 0.0
    driver = np.ceil((reserved + context * run.started + outside) / SEGMENT) * SEGMENT
    found: tuple[Series, ...] = (
        series_of(run, "vram_bytes", driver, "main"),
        series_of(run, "vram_bytes", driver, "tree"),
        series_of(run, "vram_reserved_bytes", reserved, "main"),
        series_of(run, "vram_allocated_bytes", live, "main"),
        series_of(run, "vram_inactive_split_bytes", np.maximum(reserved - live, 0), "main"),
    )
    if rng.uniform() < 0.7:
        found += meters(run, Memory.stable(run), "main", exact=rng.uniform() < 0.5)
    if grows == "reserved":
        return Drawn(truth="bounded", series=found)
    if grows == "driver":
        least = 3 * SEGMENT
    else:
        least = 5 * float(np.std((live - base - grown)[run.started >= 1]))
    return Drawn(truth=truth_of_growth(run, grown, least), series=found)
