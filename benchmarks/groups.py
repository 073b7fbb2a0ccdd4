"""How often the ranks of a job that leak are named, and how often a healthy job is called leaking.

    python benchmarks/groups.py [--seed S] [--jobs N] [--healthy N]

Jobs of 8 to 64 ranks on nodes of 8: one rank leaks, rank 0 alone, all (at one rate, or at
different ones), those of one node, or none; in half of them one rank is slower, stragglers end
early, or ranks are missing. Each rank is a recording of RSS and allocated GPU memory, read and
judged as `memdiag analyze --group-by directory` does it. Then `--healthy` further healthy jobs.
Fails where a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from _rows import Row, at_least, at_most, missed, table

from memdiag.fleet import engines, run
from memdiag.fleet.groups import judge_groups
from memdiag.fleet.judge_file import How
from memdiag.fleet.results_file import ResultsFile
from memdiag.values.groups import GroupFinding

KINDS = ("none", "one", "first", "all", "all_differ", "node")
TROUBLES = ("", "", "", "slower", "stragglers", "missing")
LEAST_RIGHT, MOST_FALSE = 0.98, 0.005
_NODE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A simulated job. leaking: the ranks that leak and have a recording."""

    name: str
    kind: str
    trouble: str
    leaking: frozenset[str]


def write_job(rng: np.random.Generator, folder: Path, name: str, kind: str) -> Truth:
    """Write the recordings of a job, a Parquet file for each rank."""
    place = folder / name
    place.mkdir()
    trouble = str(rng.choice(TROUBLES))
    ranks = int(rng.choice([8, 16, 24, 32, 48, 64]))
    steps = int(rng.integers(400, 2000))
    leaking = _leaking(rng, kind, ranks)
    missing = set(rng.choice(ranks, 3, replace=False).tolist()) if trouble == "missing" else set()
    behind = set(rng.choice(ranks, 2, replace=False).tolist()) if trouble == "stragglers" else set()
    slow = int(rng.integers(ranks)) if trouble == "slower" else -1
    noise = 10 ** rng.uniform(6, 7.3)  # bytes: 1 to 20 MB
    # A leak that grows by 8 to 80 times the noise over the run: others cannot be seen in one rank.
    rise = noise * 10 ** rng.uniform(0.9, 1.9) + 6e7
    onset = float(rng.choice([0.0, 0.0, rng.uniform(0.0, 0.3)])) * steps
    metric = int(rng.integers(2))
    step = np.arange(steps)
    common = _warmup(rng, step, 5e8) + _walk(rng, steps, 0.1 * noise)
    for rank in range(ranks):
        if rank in missing:
            continue
        length = int(steps * rng.uniform(0.6, 0.85)) if rank in behind else steps
        factor = rng.uniform(0.4, 2.0) if kind == "all_differ" else rng.uniform(0.98, 1.02)
        grown = rise * factor * np.clip(step - onset, 0, None) / (steps - onset)
        series = [_rank(rng, step, noise, common, 3e9), _rank(rng, step, noise, common * 0.5, 9e9)]
        if rank == 0:
            series[0] += _warmup(rng, step, 3e8)
        if rank in leaking:
            series[metric] = series[metric] + grown
        pace_s = 0.5 * (1.4 if rank == slow else 1.0)
        clock_s = rng.uniform(0, 3600) + step * pace_s  # clocks of nodes differ
        frame = pl.DataFrame(
            {
                "step": step,
                "time_s": clock_s,
                "rss_bytes": series[0].astype(np.int64),
                "cuda_allocated_bytes": series[1].astype(np.int64),
            }
        )
        frame.head(length).write_parquet(place / f"rank{rank:03}.parquet")
    kept = frozenset(str(rank) for rank in leaking if rank not in missing)
    return Truth(name=name, kind=kind if kept else "none", trouble=trouble, leaking=kept)


def _leaking(rng: np.random.Generator, kind: str, ranks: int) -> set[int]:
    first = int(rng.integers(ranks // _NODE)) * _NODE
    return {
        "none": set(),
        "one": {int(rng.integers(1, ranks))},
        "first": {0},
        "node": set(range(first, first + _NODE)) if ranks > _NODE else {3},
        "all": set(range(ranks)),
        "all_differ": set(range(ranks)),
    }[kind]


def _warmup(rng: np.random.Generator, step: np.ndarray, most: float) -> np.ndarray:
    length = rng.uniform(5, 60)
    return np.asarray(most * rng.uniform(0.2, 1) * (1 - np.exp(-step / length)))


def _walk(rng: np.random.Generator, steps: int, scale: float) -> np.ndarray:
    """Noise that remembers: an AR(1) process."""
    memory = rng.uniform(0.5, 0.98)
    pushed = rng.normal(0, scale, steps)
    found = np.zeros(steps)
    for at in range(1, steps):
        found[at] = memory * found[at - 1] + pushed[at]
    return found


def _rank(
    rng: np.random.Generator, step: np.ndarray, noise: float, common: np.ndarray, level: float
) -> np.ndarray:
    own = _warmup(rng, step, 5e7) + _walk(rng, len(step), 0.2 * noise)
    spikes = (rng.random(len(step)) < 0.01) * 5 * noise
    moved = rng.normal(0, noise, len(step))
    return np.asarray(level * rng.uniform(0.95, 1.05) + common + own + moved + spikes)


def judged(folder: Path) -> dict[str, GroupFinding]:
    """The findings on the jobs in a folder, by name."""
    paths = (str(path) for path in sorted(folder.glob("*/*.parquet")))
    with ThreadPoolExecutor(1) as executor, ResultsFile(None) as results:
        run.judge_into(results, paths, engines.of_executor(executor), How(with_points=True))
        return {found.group: found for found in judge_groups(results, ["directory"])}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--healthy", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    kinds = [KINDS[number % len(KINDS)] for number in range(options.jobs)]
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    false = healthy = 0
    for number, kind in enumerate(kinds + ["none"] * options.healthy):
        with tempfile.TemporaryDirectory() as name:
            truth = write_job(rng, Path(name), f"job{number:04}", kind)
            found = judged(Path(name))[truth.name]
        is_right = frozenset(found.leaking) == truth.leaking
        if number < options.jobs:
            total[truth.kind] += 1
            right[truth.kind] += is_right
        if truth.kind == "none":
            healthy += 1
            false += bool(found.leaking)
        if not is_right:
            print(f"  {truth}: {found}", file=sys.stderr)
    rows = [
        Row(on=kind, figure="right set", value=f"{right[kind]}/{total[kind]}", bar="", good=None)
        for kind in sorted(total)
    ]
    rows += [
        at_least("all", "right set", right.total(), total.total(), LEAST_RIGHT),
        at_most("healthy jobs", "called leaking", false, healthy, MOST_FALSE),
    ]
    print(table(rows))
    return missed(rows)


if __name__ == "__main__":
    sys.exit(main())
