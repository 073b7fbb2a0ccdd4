"""Is the live verdict safe to ask at every sample, how late is it, and what does it cost?

    python benchmarks/live.py [--seed S] [--per-family N] [--speed-samples N] [--curve | --replay]

Bounded series (`_series.py`) are asked after each of 100 equal parts; one LEAK ever is a false
alarm. Noise with a long memory is AR(1) with coefficients of .5 to .98. Ramps last up to 150 000
steps there: until they end they are a leak from the start. A leak's delay is counted in samples
from its onset, over the samples that an oracle needs that knows onset, shape and noise, to see its
slope at eight standard errors. A leak from the start has the same readings as a ramp of the same
length that ends tomorrow, and one that goes on from a warm-up's ramp those of its slow end: they
are delayed by what warm-ups may last. Those after a plateau are shown apart.

`--curve` shows instead what each bar costs the other: both figures for tails of the warm-ups'
lengths from heavy to that of finished recordings, and for the rules of `memdiag analyze` asked at
each of `LOOKS` looks, which know nothing of looking again and again.

`--replay` gives every seeded recording (`_series.py`, `_jobs.py`) and every real one to the live
verdict sample by sample (`_replay.py`), as `memdiag run` does: a LEAK is shown, and stops a job,
once the rules of the report confirm it in what was recorded by then. Each time, the verdict on a
recording of exactly those samples is asked too: shown is how often that is another one. The live
verdict alone differs in what is close, where a run is too long to be kept whole.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path

import _jobs
import numpy as np
from _replay import contrary
from _rows import Row, at_most, missed, table
from _series import BOUNDED, FAMILIES, LEAKS, Floats, Made, make

from memdiag.analysis.diagnose import diagnose
from memdiag.analysis.live.sequential import LiveVerdict
from memdiag.analysis.policy import DEFAULT, Policy
from memdiag.recording.read import read
from memdiag.values.measurements import Recording, Sample
from memdiag.values.verdict import Verdict

LEVEL = 4e9
LOOKS = 100
ERRORS = 8.0  # of the oracle
LEAST_NEED = 8.0  # samples; no rank test can alarm on fewer at 1 %
LEAST_SAMPLES = 200  # of a leak
AFTER_PLATEAU = ("leak_late",)
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
TAILS = (0.5, 0.6, 0.7, 1.0, 1.5)
MOST_KEPT = 100_000  # bytes: constant memory, but for what lists and dictionaries have to spare


def first_leak(made: Made, looks: int, policy: Policy = DEFAULT) -> int | None:
    """Index of the first sample after which LEAK was said, of `looks` looks; None if never."""
    live, every = LiveVerdict(policy), max(1, made.n // looks)
    for i in range(made.n):
        if math.isfinite(made.y[i]):
            live.add(_sample(i, float(made.y[i]), int(made.x[i])))
        if i % every == every - 1 and live.verdict() is Verdict.LEAK:
            return i
    return None


def first_leak_of_recordings(made: Made, looks: int) -> int | None:
    """The same, of what a finished recording of so many samples would be called."""
    every = max(1, made.n // looks)
    for length in range(every, made.n + 1, every):
        if diagnose(made.recording(length)).verdict is Verdict.LEAK:
            return length - 1
    return None


def _sample(i: int, value: float, step: int) -> Sample:
    readings: dict[str, int | float] = {"rss_bytes": value}
    return Sample(at_s=0.1 * i, pid=1, process="main", readings=readings, step=step)


Judge = Callable[[Made, int], int | None]


def false_alarms(seed: int, per_family: int, judge: Judge = first_leak) -> dict[str, int]:
    """Series of each bounded family that were ever called LEAK."""
    return {
        family: sum(judge(make(family, seed, i), LOOKS) is not None for i in range(per_family))
        for family in BOUNDED
    }


def oracle(made: Made) -> float:
    """Samples from onset after which the slope is `ERRORS` standard errors of a line through them.

    The slope's variance is 12 noise^2 / m^3 for m samples.
    """
    assert made.rate is not None
    rate = made.rate * float(made.x[made.n - 1] - made.x[0]) / (made.n - 1)
    return float((12 * (ERRORS * made.noise / rate) ** 2) ** (1 / 3))


def leaks(family: str, seed: int) -> Iterator[tuple[Made, float]]:
    """Series long enough for a delay of twice the oracle's, with what the oracle needs."""
    for i in count():
        made = make(family, seed, i)
        if made.truth == "leak" and made.n >= LEAST_SAMPLES:
            need = oracle(made)
            if need >= LEAST_NEED and made.onset + 2 * need < made.n:
                yield made, need


def delays(
    family: str, seed: int, number: int, judge: Judge = first_leak, looks: int | None = None
) -> list[float]:
    """Delay over the oracle's need; infinite where never found, negative before the onset.

    looks: in each run, at every sample if not given.
    """
    ratios = []
    for made, need in islice(leaks(family, seed), number):
        found = judge(made, looks or made.n)
        ratios.append(math.inf if found is None else (found - made.onset) / need)
    return ratios


def cost(samples: int, seed: int) -> tuple[float, float, int]:
    """(us per sample over the last tenth, us over all, bytes allocated over the last half)."""
    noise = LEVEL * (1 + 1e-3 * np.random.default_rng(seed).normal(size=samples))
    live, begun, late = LiveVerdict(), time.perf_counter(), 0.0
    for i, value in enumerate(noise.tolist()):
        if i == samples - samples // 10:
            late = time.perf_counter()
        live.add(_sample(i, value, i))
        live.finding()
    ended = time.perf_counter()
    each = 1e6 * (ended - begun) / samples
    return 1e6 * (ended - late) / (samples // 10), each, _grown(live, noise, samples)


def _grown(live: LiveVerdict, noise: Floats, samples: int) -> int:
    """Bytes that a tenth as many samples more leave behind.

    Half as many before them are traced as well: what is kept of the last looks replaces what was
    kept of earlier ones.
    """
    tracemalloc.start()
    kept = []
    for i in range(samples, samples + 6 * samples // 10):
        live.add(_sample(i, float(noise[i % samples]), i))
        if i in (samples + samples // 2, samples + 6 * samples // 10 - 1):
            kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return kept[1] - kept[0]


def delay_row(figure: str, ratios: list[float], bar: float | None) -> Row:
    """Median of a set of delays; what was said before the onset counts as never found."""
    late = [math.inf if r < 0 else r for r in ratios]
    middle = float(np.median(late)) if late else math.inf
    found = sum(math.isfinite(r) for r in late)
    return Row(
        on="live",
        figure=figure,
        value=f"{middle:.2f} ({found} of {len(late)} found, {sum(r < 0 for r in ratios)} early)",
        bar="-" if bar is None else f"<= {bar:g}",
        good=None if bar is None else middle <= bar,
    )


def delay_rows(by_family: dict[str, list[float]]) -> list[Row]:
    """All together; then those whose readings no warm-up has, and those whose readings one has."""
    title = "samples until LEAK over the oracle's, median"
    ratios = [r for family in by_family.values() for r in family]
    out_of_plateau = [r for family in AFTER_PLATEAU for r in by_family[family]]
    like_warmups = [r for f, rs in by_family.items() if f not in AFTER_PLATEAU for r in rs]
    return [
        delay_row(title, ratios, 2.0),
        delay_row(f"{title}: after a plateau", out_of_plateau, 2.0),
        delay_row(f"{title}: from the start or a ramp on", like_warmups, None),
        *(delay_row(f"... {family}", ratios, None) for family, ratios in by_family.items()),
    ]


def cost_rows(samples: int, seed: int) -> list[Row]:
    last, every, grown = cost(samples, seed)
    value = f"{last:.1f} at the end, {every:.1f} overall"
    history = f"{samples:,} samples"
    return [
        Row(on="live", figure=f"us a sample, {history}", value=value, bar="<= 50", good=last <= 50),
        Row(
            on="live",
            figure="bytes kept by a tenth more samples",
            value=f"{grown:,}",
            bar=f"<= {MOST_KEPT:,}",
            good=grown <= MOST_KEPT,
        ),
    ]


def curve(seed: int, per_family: int) -> Iterator[Row]:
    """Both bars for judges from careful to bold."""
    judges: list[tuple[str, Judge, int | None]] = []
    for shape in TAILS:
        live = replace(DEFAULT.live, tail=shape)
        careful = partial(first_leak, policy=replace(DEFAULT, live=live))
        judges.append((f"tail of shape {shape:g}", careful, None))
    judges.append((f"recordings, {LOOKS} looks", first_leak_of_recordings, LOOKS))
    for name, judge, looks in judges:
        alarms = sum(false_alarms(seed, per_family, judge).values())
        ratios = [r for f in LEAKS for r in delays(f, seed, per_family, judge, looks)]
        row = delay_row(name, ratios, None)
        yield replace(row, value=f"ever LEAK {alarms}/{len(BOUNDED) * per_family}; {row.value}")


def replays(seed: int, per_family: int) -> Iterator[Row]:
    """How often LEAK was shown beside another verdict on a recording of the same samples."""
    numbers = range(per_family)
    sets: dict[str, Iterator[Recording]] = {
        "seeded": (make(f, seed, n).recording() for f in FAMILIES for n in numbers),
        "jobs": (_jobs.make(f, seed, n).recording for f in _jobs.FAMILIES for n in numbers),
        "real": (read(str(p)) for d in ("corpus", "runs") for p in (FIXTURES / d).glob("*.csv")),
    }
    for name, recordings in sets.items():
        said = contrary(recordings)
        alone = f"{said['denied']}/{said['found']}"
        figure = f"LEAK of the live verdict alone beside another one, {name}"
        yield Row(on="live", figure=figure, value=alone, bar="-", good=None)
        figure = f"LEAK shown beside another verdict on the same samples, {name}"
        yield at_most("live", figure, said["shown_denied"], said["shown"], 0.01)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-family", type=int, default=10)
    parser.add_argument("--speed-samples", type=int, default=1_000_000)
    parser.add_argument("--curve", action="store_true", help="what each bar costs the other")
    parser.add_argument("--replay", action="store_true", help="beside the verdict on recordings")
    options = parser.parse_args()
    if options.replay:
        rows = list(replays(options.seed, options.per_family))
        print(table(rows))
        return 1 if missed(rows) else 0
    if options.curve:
        print(table(list(curve(options.seed, options.per_family))))
        return 0
    alarms = false_alarms(options.seed, options.per_family)
    by_family = {f: delays(f, options.seed, options.per_family) for f in LEAKS}
    runs = len(alarms) * options.per_family
    rows = [
        at_most("live", f"ever LEAK in {LOOKS} looks, bounded", sum(alarms.values()), runs, 0.01),
        *delay_rows(by_family),
        *cost_rows(options.speed_samples, options.seed),
    ]
    print(table(rows))
    print("ever LEAK: ", {family: number for family, number in alarms.items() if number} or "none")
    return 1 if missed(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
