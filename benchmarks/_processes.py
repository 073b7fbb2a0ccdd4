"""Jobs of several processes: loaders' workers, ranks of a distributed job, helpers."""

from __future__ import annotations

import numpy as np
from _many_meters import training
from _meters import (
    MB,
    Floats,
    Memory,
    Noise,
    Random,
    Run,
    between,
    meters,
    series_of,
    shown_by,
    tree_of,
    truth_of_growth,
)
from _one_meter import Drawn

from memdiag.values.measurements import AxisKind, Series

# torch's record of collectives, as measured with gloo (memdiag/analysis/decision/growth).
ENTRY_BYTES, SLOT_BYTES, ENTRIES = 370.0, 512.0, 2000


def _rss(found: tuple[Series, ...]) -> Floats:
    return np.nan_to_num(found[0].y)


def _with_tree(run: Run, parts: list[tuple[Series, ...]]) -> tuple[Series, ...]:
    """All processes that are there all the time, and the tree of them."""
    number = np.full(len(run.at), float(len(parts)))
    tree = tree_of(run, tuple(_filled(_rss(part)) for part in parts), number)
    return (*(series for part in parts for series in part), *tree)


def _filled(y: Floats) -> Floats:
    """The last known reading where one is missing: the tree's row needs one of each process."""
    known = np.maximum.accumulate(np.where(y > 0, np.arange(len(y)), 0))
    return y[known]


def workers(rng: Random, *, leaks: bool) -> Drawn:
    """A loader's workers. One keeps what it loads, or all copy a shared data set's pages once."""
    run = training(rng)
    count = int(rng.integers(1, 5))
    parts = [meters(run, Memory.stable(run), "main")]
    per_pass = run.length * rng.uniform(0.1, 0.6)
    copied = between(rng, 5, 400) * MB * np.minimum(run.at / per_pass, 1.0)
    grown = between(rng, 300, 1e5) * run.at
    least = np.inf
    for number in range(count):
        name = f"DataLoader worker {number}"
        held = Memory.stable(run, small=True)
        if not leaks:
            held = held.and_more(mapped=copied * rng.uniform(0.8, 1.2))
        elif number == 0:
            held = held.and_more(in_use=grown)
        parts.append(meters(run, held, name))
        if leaks and number == 0:
            shown = np.where(run.started >= 1, held.in_use, np.nan)
            least = shown_by(parts[-1], "malloc_bytes", name, shown)
    found = _with_tree(run, parts)
    truth = truth_of_growth(run, grown, least) if leaks else "bounded"
    return Drawn(truth=truth, series=found)


def restarted_workers(rng: Random, *, leaks: bool) -> Drawn:
    """Workers that every epoch starts anew, and that climb to their level each time; beside them
    the main process is stable, or leaks."""
    run = Run.draw(rng, AxisKind.STEP, between(rng, 300, 30e3))
    epochs = rng.uniform(3, 20)
    epoch, place = np.divmod(run.at / run.length * epochs, 1)
    grown = between(rng, 400, 1e5) * run.at if leaks else np.zeros(len(run.at))
    held = Memory.stable(run).and_more(in_use=grown)
    main = meters(run, held, "main")
    found, pages, number = list(main), [_filled(_rss(main))], np.ones(len(run.at))
    start, gap = rng.uniform(0.02, 0.4), rng.uniform(0, 0.05)
    level, climb = between(rng, 100, 600) * MB, between(rng, 3, 100) * MB
    alive = place >= gap
    for worker in range(int(rng.integers(1, 4))):
        noise = Noise(sd=between(rng, 1e3, 1e6))
        y = noise.on(rng, level + climb * np.minimum((place - gap) / start, 1.0))
        lives = epoch[alive].astype(np.int64)
        found.append(
            series_of(
                run.seen(alive),
                "rss_bytes",
                y[alive],
                f"DataLoader worker {worker}",
                generation=lives,
            )
        )
        pages.append(np.where(alive, y, 0.0))
        number = number + alive
    found += tree_of(run, tuple(pages), number)
    truth = "bounded"
    if leaks:
        least = shown_by(main, "malloc_bytes", "main", held.in_use)
        truth = truth_of_growth(run, grown, least)
    return Drawn(truth=truth, series=tuple(found))


def _record(rng: Random, at: Floats, per_step: float) -> Floats:
    """Bytes that a rank's record of collectives takes: entries, and a list that doubles."""
    kept = np.minimum(at * per_step, ENTRIES)
    slots = np.minimum(2.0 ** np.ceil(np.log2(np.maximum(kept, 1))), ENTRIES)
    return np.asarray(ENTRY_BYTES * rng.uniform(0.8, 1.2) * kept + SLOT_BYTES * slots)


def ranks(rng: Random, *, then: str) -> Drawn:
    """Ranks of a distributed job. then: their records are still "filling" at the end, are "full",
    or one rank "leaks" beside."""
    per_step = float(rng.choice([1, 1, 2, 4, 8]))
    part = {"filling": rng.uniform(0.2, 0.9), "full": between(rng, 2, 15)}
    steps = part.get(then, between(rng, 1, 15) * per_step) * ENTRIES / per_step
    run = Run.draw(rng, AxisKind.STEP, steps, watched=True)
    record = _record(rng, run.at, per_step)
    grown = between(rng, 500, 1e5) * run.at
    leaking = int(rng.integers(0, 2))
    base, parts, least = Memory.stable(run), [], np.inf
    for rank in range(int(rng.choice([2, 2, 4]))):
        leaks = then == "leaks" and rank == leaking
        held = base.and_more(in_use=record + (grown if leaks else 0.0))
        parts.append(meters(run, held, f"rank{rank}", is_rank=True))
        if leaks:
            shown = np.where(run.started >= 1, held.in_use, np.nan)
            least = shown_by(parts[-1], "malloc_bytes", f"rank{rank}", shown)
    found = _with_tree(run, parts)
    if then != "leaks":
        return Drawn(truth="truncated" if then == "filling" else "bounded", series=found)
    hidden = grown[-1] < 3 * record[-1]  # it may be a record of longer entries
    return Drawn(truth="grey" if hidden else truth_of_growth(run, grown, least), series=found)


def steps_of_each(rng: Random) -> Drawn:
    """Many processes, each of which takes a few megabytes more once or twice: at any time, or as
    records of a largest batch come, ever more seldom."""
    run = training(rng)
    records = rng.uniform() < 0.5
    parts = []
    for number in range(int(rng.integers(3, 9))):
        held = Memory.stable(run, small=number > 0)
        taken = np.zeros(len(run.at))
        for _ in range(int(rng.choice([1, 1, 2]))):
            part = between(rng, 0.01, 1) if records else rng.uniform()
            taken += rng.choice([1, 2, 4]) * 2**20 * (run.at >= run.length * part)
        name = f"DataLoader worker {number - 1}" if number else "main"
        parts.append(meters(run, held.and_more(holes=taken), name, exact=number == 0))
    return Drawn(truth="bounded", series=_with_tree(run, parts))
