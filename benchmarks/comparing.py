"""Does `memdiag compare` name the effect of a change whose effect is known?

    python benchmarks/comparing.py [--seed S] [--per-effect N]

Each case is a program before and after a change, run once to three times on either side. A run is
a saturating warm-up, then a level or a leak (a line or a staircase), with noise (white or
correlated), printed in megabytes, at cadences and lengths that differ between the sides; rates and
levels differ by 2 % from run to run of the same program. What is known of the change: the leak is
gone, slower, as before, faster, new; or without a leak, the level is as before, lower, higher.

Bars: the right effect in 95 % of all cases ("can't tell" counts as not right), never "no effect"
where the rate halved or doubled, never "fixed" where the leak is still there.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from memdiag.analysis.comparison.compare import compare
from memdiag.analysis.diagnose import diagnose
from memdiag.values.comparison import Comparison, Effect
from memdiag.values.findings import RecordingFinding
from memdiag.values.measurements import Axis, AxisKind, Recording, Role, Series, Unit

BAR = 0.95
RUN_TO_RUN = 0.02
# Case -> (does the base leak, does the candidate, range of candidate over base, the right effect).
# The ratio is of rates where both leak, else of levels.
CASES: dict[str, tuple[bool, bool, tuple[float, float], Effect]] = {
    "leak gone": (True, False, (1.0, 1.0), Effect.FIXED),
    "leak slower": (True, True, (0.1, 0.7), Effect.IMPROVED),
    "leak halved": (True, True, (0.5, 0.5), Effect.IMPROVED),
    "leak as before": (True, True, (1.0, 1.0), Effect.NO_EFFECT),
    "leak faster": (True, True, (1.5, 5.0), Effect.WORSE),
    "leak doubled": (True, True, (2.0, 2.0), Effect.WORSE),
    "leak new": (False, True, (1.0, 1.0), Effect.NEW_LEAK),
    "level as before": (False, False, (1.0, 1.0), Effect.NO_EFFECT),
    "level lower": (False, False, (0.5, 0.75), Effect.IMPROVED),
    "level higher": (False, False, (1.35, 2.0), Effect.WORSE),
}
NEVER = {
    "leak halved": (Effect.NO_EFFECT, Effect.FIXED),
    "leak doubled": (Effect.NO_EFFECT, Effect.FIXED),
    "leak slower": (Effect.NO_EFFECT, Effect.FIXED),
    "leak faster": (Effect.NO_EFFECT, Effect.FIXED),
    "leak as before": (Effect.FIXED,),
    "leak gone": (Effect.NO_EFFECT,),
    "leak new": (Effect.NO_EFFECT,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a program does in every run. Bytes and steps; `stair`: steps per jump, 0 for a line."""

    level: float
    warmup: float
    tau: float
    rate: float
    stair: int
    noise: float
    memory: float


def program(rng: np.random.Generator, *, steps: int, leaks: bool) -> Program:
    level = float(10 ** rng.uniform(8.5, 10.5))
    return Program(
        level=level,
        warmup=level * float(rng.choice([0.0, rng.uniform(0.05, 1.0)])),
        tau=float(rng.uniform(3.0, 25.0)),
        rate=level * float(rng.uniform(0.4, 4.0)) / steps if leaks else 0.0,
        stair=int(rng.choice([0, 0, int(rng.integers(2, max(3, steps // 60)))])),
        noise=level * float(10 ** rng.uniform(-4.0, -2.3)),
        memory=float(rng.choice([0.0, 0.5, 0.8])),
    )


def run(what: Program, *, steps: int, every: int, rng: np.random.Generator) -> RecordingFinding:
    """One run of the program, recorded every so many steps and diagnosed."""
    x = np.arange(0, steps, every, dtype=float)
    level, rate = what.level * _about_one(rng), what.rate * _about_one(rng)
    leaked = rate * (np.floor(x / what.stair) * what.stair if what.stair else x)
    shocks = rng.normal(0.0, what.noise, len(x))
    noise = np.empty(len(x))
    state = shocks[0]
    for at, shock in enumerate(shocks):
        state = what.memory * state + np.sqrt(1 - what.memory**2) * shock if at else state
        noise[at] = state
    y = level + what.warmup * (1 - np.exp(-x / what.tau)) + leaked + noise
    series = Series(
        metric="rss_bytes",
        column="rss_mb",
        role=Role.RESIDENT,
        unit=Unit.BYTES,
        axis=Axis(name="step", kind=AxisKind.STEP),
        x=x,
        y=np.round(y / 1e6) * 1e6,
        resolution=1e6,
    )
    return diagnose(Recording(source="run.csv", series=(series,)))


def _about_one(rng: np.random.Generator) -> float:
    return float(np.exp(rng.normal(0.0, RUN_TO_RUN)))


def case(name: str, rng: np.random.Generator) -> Comparison:
    """A change of this kind, compared."""
    base_leaks, leaks, ratios, _ = CASES[name]
    steps = int(rng.integers(300, 2000))
    ratio = float(rng.uniform(*ratios))
    before = program(rng, steps=steps, leaks=base_leaks)
    if base_leaks and leaks:
        after = replace(before, rate=before.rate * ratio)
    elif base_leaks:
        after = replace(before, rate=0.0)
    elif leaks:
        after = replace(before, rate=before.level * float(rng.uniform(0.4, 4.0)) / steps)
    else:
        after = replace(before, level=before.level * ratio, warmup=before.warmup * ratio)
    runs = int(rng.integers(1, 4))
    sides = []
    for what in (before, after):
        length = int(steps * rng.uniform(0.7, 1.3))
        every = int(rng.choice([1, 2, 5]))
        sides.append([run(what, steps=length, every=every, rng=rng) for _ in range(runs)])
    return compare(*sides)


def outcomes(seed: int, per_effect: int) -> Iterator[tuple[str, Counter[Effect]]]:
    """Case -> how often each effect was named."""
    for number, name in enumerate(CASES):
        rng = np.random.default_rng((seed, number))
        yield name, Counter(case(name, rng).effect for _ in range(per_effect))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-effect", type=int, default=60)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    print("right effect, per case of", options.per_effect)
    for name, found in outcomes(options.seed, options.per_effect):
        right = CASES[name][3]
        forbidden = sum(found[effect] for effect in NEVER.get(name, ()))
        total.update(
            right=found[right],
            open=found[Effect.INCONCLUSIVE],
            forbidden=forbidden,
            all=found.total(),
        )
        others = {e.value: n for e, n in found.items() if e is not right}
        print(f"  {name:16} {found[right] / found.total():6.1%}  {right.value:10} {others or ''}")
    share = total["right"] / total["all"]
    wrong = total["all"] - total["right"] - total["open"]
    print(
        f"right {share:.1%} (bar {BAR:.0%}), can't tell {total['open'] / total['all']:.1%}, "
        f"wrong {wrong / total['all']:.1%}; never to be said and said: {total['forbidden']} (bar 0)"
    )
    return 0 if share >= BAR and total["forbidden"] == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
