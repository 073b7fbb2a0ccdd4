"""Is the right phase blamed, and none where none is guilty?

    python benchmarks/phases.py [--seed S] [--per-family N]

Every run is made on a fine clock (phases of regular or wandering length; memory that a guilty
phase keeps early, late, bit by bit or not each time), then sampled (as a log does, or with a
reading at both ends of each event as memdiag's own tags give), noised, rounded up to an
allocator's quantum and ratcheted as recordings are. A guilty run can be told where an oracle that
knows the noise parts the phase's curve by at least `ORACLE` standard deviations (whitened residual)
from steady growth, from growth that is even within each cycle and from the curve of each other
phase of less than three times its length, each phase holding what it likes in passing, where at
least `LEAST_EVENTS` events were sampled, and where rounding and high-water marks, which the
oracle's linear noise leaves out, do not hide it: all growth is `LEAST_QUANTA` quanta, and of a mark
an event's growth is `LEAST_MARK` times the noise. The oracle knows the moments of events, tags only
know samples: on which side of an event's lone sample its growth fell they do not say, in its own
phase or in the next one. So runs with under `LEAST_SAMPLES` samples an event are counted apart.
The right phase is also counted of all guilty runs, told or not. A phase that fills most of the time
is guilty bit by bit only: one moment in a long phase is no phase.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
from _rows import Row, at_least, at_most, missed, table

from memdiag.analysis.attribution.phases import attribute
from memdiag.values.findings import PhaseGrowth
from memdiag.values.measurements import Phases

ORACLE = 8.0
LEAST_EVENTS, LEAST_QUANTA, LEAST_MARK = 5, 8, 2.0
LEAST_SAMPLES = 1.5  # of an event, on average
Z_BINS = (0.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # told apart by how much noise leaves of a phase
FINE = 20  # moments of the fine clock per sample
LAYOUTS = ("alternating", "wandering", "three", "nested", "sparse")
GUILTY = ("early", "middle", "late", "gradual", "sometimes")
INNOCENT = ("steady", "jumps", "clockwork", "sawtooth", "slowing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A sampled run; `guilty` names the phase at fault or is empty; `per_event` is what it keeps.

    z is the oracle's; hidden: rounding or a high-water mark takes away what it rests on.
    """

    x: np.ndarray
    y: np.ndarray
    phases: Phases
    guilty: str
    z: float
    events: int
    samples_per_event: float
    per_event: float
    hidden: bool

    @property
    def told(self) -> bool:
        """The oracle tells it, which knows at what moments events began and ended."""
        return self.z >= ORACLE and self.events >= LEAST_EVENTS and not self.hidden

    @property
    def told_by_tags(self) -> bool:
        """... and so may one who knows of each sample what phase it was taken in."""
        return self.told and self.samples_per_event >= LEAST_SAMPLES


def tags(layout: str, moments: int, least: int, rng: np.random.Generator) -> list[str]:
    """Phase of each moment of the fine clock, "" outside; events last `least` or more."""
    parts = {
        "alternating": [("train", 1.0), ("eval", rng.choice([0.05, 0.1, 0.3]))],
        "wandering": [("train", 1.0), ("eval", rng.choice([0.05, 0.1, 0.3, 1.0]))],
        "three": [("train", 1.0), ("eval", 0.3), ("save", 0.15)],
        "nested": [("train/forward", 0.4), ("train/backward", 0.6), ("eval", 0.3)],
        "sparse": [("", 1.0), ("eval", rng.choice([0.05, 0.1, 0.3]))],
    }[layout]
    cycles = int(rng.integers(6, 60))
    unit = moments / cycles / sum(length for _, length in parts)
    wander = 0.0 if layout == "alternating" else 0.3
    names: list[str] = []
    while len(names) < moments:
        for name, length in parts:
            names += [name] * max(least, round(unit * length * math.exp(wander * rng.normal())))
    return names[:moments]


def runs_of(inside: np.ndarray) -> list[tuple[int, int]]:
    """Maximal runs [start, end) of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, inside, False].astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def event_amounts(how: str, rng: np.random.Generator, most: int) -> np.ndarray:
    """What each event keeps, about 1, shape (most,)."""
    uneven = rng.choice([0.0, 0.0, 0.3])
    amounts = np.maximum(0.0, 1 + uneven * rng.normal(size=most))
    kept: np.ndarray = amounts * (rng.uniform(size=most) < (0.7 if how == "sometimes" else 1.0))
    return kept


def guilty_curve(inside: np.ndarray, how: str, amounts: np.ndarray) -> np.ndarray:
    """Kept memory, shape (moments,)."""
    rate = np.zeros(len(inside))
    for (start, end), amount in zip(runs_of(inside), amounts, strict=False):
        if how == "gradual":
            rate[start:end] += amount / (end - start)
        elif how == "sometimes":
            rate[(start + end) // 2] += amount
        else:
            part = {"early": 0.15, "middle": 0.5, "late": 0.85}[how]
            rate[start + int(part * (end - start))] += amount
    return np.cumsum(rate)


def innocent_curve(moments: int, how: str, rng: np.random.Generator) -> np.ndarray:
    """Kept memory that knows nothing of the phases, about 30 in all, shape (moments,)."""
    u = np.arange(moments) / moments
    if how in ("steady", "sawtooth"):
        return 30 * u
    if how == "jumps":
        return np.cumsum(rng.uniform(size=moments) < rng.uniform(10, 80) / moments).astype(float)
    if how == "clockwork":
        every = moments / rng.uniform(8, 80)
        counts: np.ndarray = np.floor(np.arange(moments) / every + rng.uniform())
        return counts
    return 30 * (1 - np.exp(-u / rng.uniform(0.3, 1.5)))


def within_cycles(curve: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """The same growth of each cycle, spread evenly over its time, shape (moments,)."""
    begins = np.array([start for start, _ in runs_of(inside)])
    grown: np.ndarray = np.interp(np.arange(len(curve)), begins, curve[np.maximum(begins - 1, 0)])
    return grown


def ar1(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    noise = np.empty(n)
    noise[0] = rng.normal()
    shocks = rng.normal(0, math.sqrt(1 - phi * phi), n)
    for i in range(1, n):
        noise[i] = phi * noise[i - 1] + shocks[i]
    return noise


def oracle(
    curve: np.ndarray,
    others: list[np.ndarray],
    levels: np.ndarray,
    sd: float,
    phi: float,
    quantum: float,
) -> float:
    """Standard deviations, noise whitened, between the curve and the best other explanation.

    Others: a straight line, the same growth of each cycle spread evenly over its time, and the
    curve of each other phase, of free height; each with free `levels` (shape (phases, n), whether a
    sample lies in the phase), as any phase may hold memory in passing: a jump in the only sample of
    each event is steady growth and a level.
    """
    n = len(curve)
    shock = math.hypot(sd * math.sqrt(1 - phi * phi), quantum / math.sqrt(12))
    apart = []
    for other in (np.arange(n), *others):
        columns = [np.ones(n), other, *levels]
        design = np.column_stack(columns).astype(float)
        white = np.vstack([design[:1], design[1:] - phi * design[:-1]])
        target = np.r_[curve[0], curve[1:] - phi * curve[:-1]]
        apart.append(np.linalg.norm(target - white @ np.linalg.lstsq(white, target, rcond=None)[0]))
    return float(min(apart) / max(shock, 1e-12))


def oracle_names(z: float) -> float:
    """Probability that an oracle names the phase: that the two curves, their height and the noise
    are known to it and its posterior for the right one is .95 or more. The logarithm of the
    likelihood ratio is normal with mean z^2 / 2 and standard deviation z."""
    if z <= 0:
        return 0.0
    return 0.5 * math.erfc(-(z * z / 2 - math.log(0.95 / 0.05)) / z / math.sqrt(2))


def moments_taken(
    names: list[str], samples: int, probed: bool, rng: np.random.Generator
) -> np.ndarray:
    """When memory is read: at even distances, with a probe also where phases begin and end."""
    taken = np.arange(samples) * FINE + int(rng.integers(FINE))
    if not probed:
        return taken
    turns = np.flatnonzero([a != b for a, b in zip(names[1:], names, strict=False)])
    return np.union1d(taken, np.union1d(turns, turns + 1))


def tagged(names: list[str], known: list[str], taken: np.ndarray) -> Phases:
    codes = np.array([known.index(names[i]) if names[i] else -1 for i in taken])
    return Phases(codes=codes, names=tuple(known))


def teeth(how: str, moments: int, rng: np.random.Generator) -> np.ndarray:
    """A collector's sawtooth, for the family that has one."""
    if how != "sawtooth":
        return np.zeros(moments)
    period = rng.uniform(4, 60) * FINE
    return rng.uniform(1, 8) * ((np.arange(moments) / period) % 1)


def in_quanta(
    y: np.ndarray, quantum: float, may_keep: bool, rng: np.random.Generator
) -> np.ndarray:
    """Readings of an allocator that grows in steps, and sometimes gives nothing back."""
    if not quantum:
        return y
    y = np.ceil(y / quantum) * quantum
    return np.maximum.accumulate(y) if rng.uniform() < 0.5 and may_keep else y


def rival_curves(
    names: list[str], culprit: str, how: str, amounts: np.ndarray, taken: np.ndarray
) -> list[np.ndarray]:
    """What memory would be if another phase were guilty, at the moments taken."""
    return [
        guilty_curve(np.array([n == other for n in names]), way, amounts)[taken]
        for other in sorted({name for name in names if name} - {culprit})
        for way in GUILTY[:4]
        if way == how or names.count(other) < 3 * names.count(culprit)
    ]


def hold_in_passing(
    memory: np.ndarray, passes: np.ndarray, passing: float, rng: np.random.Generator
) -> float:
    """Add what a phase holds while it lasts; how unequal the amounts are, relatively."""
    uneven = float(rng.choice([0.0, 0.2]))
    for start, end in runs_of(passes):
        memory[start:end] += passing * max(0.0, 1 + uneven * rng.normal())
    return uneven


def make(family: str, rng: np.random.Generator) -> Run:
    """One run of `layout/how`, of a guilty phase or of none."""
    layout, how = family.split("/")
    samples = int(rng.choice([40, 100, 300, 1000, 3000]))
    moments = samples * FINE
    probed = bool(rng.uniform() < 0.6)
    names = tags(layout, moments, 2 if probed else FINE, rng)
    known = sorted({name for name in names if name})
    able = [name for name in known if how == "gradual" or names.count(name) < moments / 3]
    if how in GUILTY and not able:
        return make(family, rng)
    culprit = str(rng.choice(able)) if how in GUILTY else ""
    inside = np.array([name == culprit for name in names])
    amounts = event_amounts(how, rng, moments)
    curve = guilty_curve(inside, how, amounts) if culprit else innocent_curve(moments, how, rng)
    sd, phi = float(rng.choice([0.02, 0.1, 0.3, 1.0])), float(rng.choice([0, 0, 0.3, 0.8, 0.95]))
    quantum = float(rng.choice([0, 0, 0.1, 0.5, 2.0]))
    passing = float(rng.choice([0, 0, 1.0, 10.0]))
    spiky = str(rng.choice(known))
    passes = np.array([n == spiky for n in names])
    memory = 1000 + curve + teeth(how, moments, rng)
    uneven = hold_in_passing(memory, passes, passing, rng)
    taken = moments_taken(names, samples, probed, rng)
    y = memory[taken] + sd * ar1(rng, len(taken), phi)
    y = in_quanta(y, quantum, not passing and how != "sawtooth", rng)
    mark = bool((np.diff(y) >= 0).all())
    rivals = rival_curves(names, culprit, how, amounts, taken) if culprit else []
    # Uneven heights hide what the phase keeps: the oracle has the samples outside alone.
    seen_by = np.ones(len(taken), dtype=bool) if not (passing and uneven) else ~passes[taken]
    z = 0.0
    if culprit:
        rivals.append(within_cycles(curve, inside)[taken])
    if culprit and seen_by.sum() > 3:
        held = np.array([[names[i] == name for i in taken[seen_by]] for name in known])
        z = oracle(curve[taken][seen_by], [r[seen_by] for r in rivals], held, sd, phi, quantum)
    tags_of_it = np.array([names[i] == culprit for i in taken])
    seen = len(runs_of(tags_of_it)) if culprit else 0
    per_event, rise = float(amounts[: max(seen, 1)].mean()), float(np.ptp(curve[taken[[0, -1]]]))
    return Run(
        x=taken / FINE,
        y=y,
        phases=tagged(names, known, taken),
        guilty=culprit,
        z=z,
        events=seen,
        samples_per_event=float(tags_of_it.sum()) / max(seen, 1),
        per_event=per_event,
        hidden=rise < LEAST_QUANTA * quantum or (mark and per_event < LEAST_MARK * sd),
    )


def blamed(run: Run) -> list[PhaseGrowth]:
    return [row for row in attribute(run.x, run.y, run.phases).phases if row.is_attributed]


def holds(row: PhaseGrowth, per_event: float) -> bool:
    """Whether the interval of what one growing event keeps holds the truth."""
    truth, growth = per_event * row.events / row.growing_events, row.growth_per_event
    return growth.low <= truth <= growth.high


def measure(seed: int, per_family: int) -> tuple[Counter[str], Counter[str], float]:
    """Counts over guilty runs (right, other, none) and over innocent ones, and per family; and how
    many guilty phases an oracle is expected to name."""
    guilty: Counter[str] = Counter()
    oracles = 0.0
    innocent: Counter[str] = Counter()
    families = [f"{layout}/{how}" for layout in LAYOUTS for how in (*GUILTY, *INNOCENT)]
    for f, family in enumerate(families):
        for i in range(per_family):
            run = make(family, np.random.default_rng([seed, f, i]))
            rows = blamed(run)
            named = [row.phase for row in rows]
            if not run.guilty:
                innocent["all"] += 1
                innocent["blamed"] += bool(named)
                innocent[family] += bool(named)
                continue
            said = "right" if named == [run.guilty] else "other" if named else "none"
            guilty["made"] += 1
            oracles += oracle_names(run.z)
            within = max((z for z in Z_BINS if run.z >= z), default=0.0)
            guilty[f"z {within:g}"] += 1
            guilty[f"z {within:g} right"] += said == "right"
            guilty["made right"] += said == "right"
            guilty["told"] += run.told
            guilty["told right"] += run.told and said == "right"
            if run.told_by_tags:
                guilty["all"] += 1
                guilty[said] += 1
                guilty[family + " " + said] += said != "right"
                guilty["held"] += said == "right" and holds(rows[0], run.per_event)
    return guilty, innocent, oracles


def by_z(guilty: Counter[str]) -> str:
    """Right of all guilty runs, by how far the noise lets an oracle part the phases."""
    parts = [
        f"z >= {z:g}: {guilty[f'z {z:g} right']}/{guilty[f'z {z:g}']}"
        for z in Z_BINS
        if guilty[f"z {z:g}"]
    ]
    return ", ".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-family", type=int, default=20)
    parser.add_argument("--families", action="store_true", help="count errors by family")
    options = parser.parse_args()
    guilty, innocent, oracles = measure(options.seed, options.per_family)
    rows = [
        at_least("phases", "right phase named", guilty["right"], guilty["all"], 0.95),
        at_most("phases", "blamed where none is", innocent["blamed"], innocent["all"], 0.01),
        Row(
            on="phases",
            figure="right phase named, single samples of events too",
            value=f"{guilty['told right']}/{guilty['told']}",
            bar="-",
            good=None,
        ),
        Row(
            on="phases",
            figure="right phase named, told or not",
            value=f"{guilty['made right']}/{guilty['made']} (an oracle: {oracles:.0f})",
            bar="-",
            good=None,
        ),
        at_least(
            "phases", "growth per event in its interval", guilty["held"], guilty["right"], 0.9
        ),
    ]
    print(table(rows))
    print(f"another one blamed {guilty['other']}, none {guilty['none']}; right by the oracle's z:")
    print("  " + by_z(guilty))
    if options.families:
        print({k: v for k, v in {**guilty, **innocent}.items() if "/" in k and v})
    return 1 if missed(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
