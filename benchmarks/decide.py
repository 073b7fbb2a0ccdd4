"""How well leaks and warm-ups are separated: memdiag's verdicts beside the bars and the peers.

    python benchmarks/decide.py [--seed S] [--per-family N] [--slow] [--no-peers] [--write]

Seeded series of known truth (`_series.py`), the labelled real corpus (fixtures/corpus), the
calibration of the confidence (of finished runs, and of the starts of runs, which the rest of each
bears out or not), "how much longer" and the interval of the rate. Fails when a bar is
missed. `--write` puts the table and a plot into docs/.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import _sets
import numpy as np
from _peers import peers
from _prefixes import Start, group_of, starts
from _referee import Judged, Rates, corpus
from _rows import Row, at_least, at_most, missed, table
from _series import FAMILIES, Made, make

from memdiag.analysis.diagnose import diagnose
from memdiag.values.findings import Finding
from memdiag.values.verdict import Verdict

DOCS = Path(__file__).resolve().parent.parent / "docs"
LENGTHS = (1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 7, 8)
CORPUS_FALSE, CORPUS_MISSED = 1, 2
STARTS = 10
"""Seeded series of each family whose starts are judged."""
MOST_GAP = 0.1
"""Most difference between the confidence of starts and the share of them that are right, beside
one standard error of that share."""
LIMITS = """## Where bars collide

The values are in [bench.md](bench.md), sections `decide`, `live` and `phases`; each is made by the
script of that name.

* **Live, "ever LEAK <= 1%" against "median delay <= 2".** A leak from the start and a ramp that
  will end tomorrow are the same readings up to today. An oracle that knows that the growth is a
  leak sees it at eight standard errors after some dozen or hundred samples, when the ramps among
  the bounded runs are only half over: a LEAK there would be a LEAK for those ramps too. The false
  alarm is the worse of the two, so leaks from the start wait until few warm-ups are as long
  (`Live` in `memdiag/analysis/policy.py`), and most of the seeded ones end before. So do leaks that
  continue a warm-up's ramp, which look like its slow end. Leaks that begin after a plateau do not
  look like a warm-up; they are listed separately (`after a plateau`).
  What each bar costs the other (`python benchmarks/live.py --curve --seed 9001`; tails of the
  warm-ups' lengths from that of `Live.tail` to that of finished recordings, and the rules of
  `analyze` asked at each of 100 looks):

  | judge | ever LEAK, bounded | median delay | found of 70 | before the onset |
  |---|---|---|---|---|
  | tail of shape 0.5 (memdiag) | 1/110 = 0.9 % | inf | 33 | 0 |
  | 0.6 | 3/110 = 2.7 % | 3.0 | 48 | 1 |
  | 0.7 | 4/110 = 3.6 % | 1.9 | 58 | 3 |
  | 1.0 | 9/110 = 8.2 % | 2.0 | 58 | 8 |
  | 1.5 | 13/110 = 11.8 % | 2.4 | 54 | 12 |
  | `analyze` at 100 looks | 19/110 = 17.3 % | 1.8 | 53 | 13 |

  `analyze` would find more leaks during a run, with more false alarms. An oracle that knows this
  generator could have both: none of its ramps is longer than 3000 samples or climbs by less than a
  tenth, most of its leaks climb more slowly than that. No other program reports either.
* **Phases, ">= 95% of phase-tied leaks".** A leak can be certain long before its phase is:
  the trend of thousands of readings adds up, the single jump at an evaluation does not. `phases`
  counts how many leaking phases an oracle would name that knows the true curve and the noise and
  asks for a posterior of .95. The bar applies to the runs in which that oracle is at least
  eight standard deviations away from the next best explanation and events have 1.5 samples or
  more: the oracle knows when events began, tags only know in which phase a sample was taken. All
  others are printed beside them.
* **Missed leaks.** The remaining ones are leaks of less than three allocator steps, of four teeth,
  below a high-water mark set by noise, and of under 100 bytes a step, which are called negligible
  (`materiality.least_bytes` in [method.md](method.md)): an oracle that knows the shape sees them,
  the readings alone do not.
"""


Case = tuple[Made, Finding]


def seeded_rows(cases: Sequence[Case]) -> list[Row]:
    r = Rates.of((made.truth, found.verdict) for made, found in cases)
    on = "seeded"
    return [
        at_most(on, "false LEAK, bounded", r.false_bounded, r.bounded, 0.005),
        at_most(on, "false LEAK, truncated warm-up", r.false_truncated, r.truncated, 0.02),
        at_most(on, "missed LEAK (called stable)", r.missed, r.leaks, 0.015),
        at_least(on, "LEAK found", r.found, r.leaks, 0.9),
        at_most(on, "bounded left INCONCLUSIVE", r.abstained, r.bounded, 0.08),
    ]


def corpus_rows(judged: Sequence[Judged]) -> list[Row]:
    r = Rates.of((one.truth, one.finding.verdict) for one in judged)
    on, false = "corpus", r.false_bounded + r.false_truncated
    whole = r.bounded + r.truncated
    return [
        at_most(on, "false LEAK", false, whole, CORPUS_FALSE / whole),
        at_most(on, "missed LEAK (called stable)", r.missed, r.leaks, CORPUS_MISSED / r.leaks),
        at_least(on, "LEAK found", r.found, r.leaks, 0.75),
        at_most(on, "bounded left INCONCLUSIVE", r.abstained, r.bounded, 0.15),
    ]


def calibration_rows(judged: Sequence[Judged]) -> list[Row]:
    """Decided verdicts only; expected calibration error over ten equally filled bins."""
    known = [
        (one.finding.confidence, bool(one.right))
        for one in judged
        if one.right is not None and one.finding.verdict is not Verdict.INCONCLUSIVE
    ]
    sure = [right for confidence, right in known if confidence >= 0.95]
    known.sort()
    bins = np.array_split(np.array(known, dtype=float), 10)
    gaps = [len(b) * abs(b[:, 0].mean() - b[:, 1].mean()) for b in bins if len(b)]
    error = sum(gaps) / max(len(known), 1)
    return [
        at_least("calibration", "right at confidence >= .95", sum(sure), len(sure), 0.95),
        Row(
            on="calibration",
            figure="expected calibration error",
            value=f"{error:.3f} ({len(known)})",
            bar="<= .05",
            good=error <= 0.05,
        ),
    ]


def start_rows(on: str, judged: Sequence[Start]) -> Iterator[Row]:
    """Of verdicts on the starts of series: how many the rest bears out, beside their confidence."""
    known = [one for one in judged if one.right is not None]
    for said in ("stable", "leak"):
        for label, least, below in (("< 10", 0, 10), ("10 to 19", 10, 20), (">= 20", 20, math.inf)):
            part = [
                one
                for one in known
                if group_of(one.finding) == said and least <= one.finding.samples < below
            ]
            if not part:
                continue
            right = float(np.mean([bool(one.right) for one in part]))
            sure = float(np.mean([one.finding.confidence for one in part]))
            # (A fixed number of readings meets long ramps in their middle: leaks of many are not
            # what a finished run shows.)
            many = said == "leak" and least >= 20
            judged_here = on.startswith("corpus") and not many
            gap = MOST_GAP + math.sqrt(right * (1 - right) / len(part))
            yield Row(
                on=on,
                figure=f"{said}, {label} readings: right, confidence",
                value=f"{right:.0%}, {sure:.0%} ({len(part)})",
                bar=f"+-{gap:.0%}" if judged_here else "-",
                good=abs(right - sure) <= gap if judged_here else None,
            )


def rate_row(cases: Sequence[Case]) -> Row:
    inside = [
        found.growth_per_x.low <= made.rate <= found.growth_per_x.high
        for made, found in cases
        if made.rate is not None
        and made.family != "leak_pausing"  # no single rate is the truth of a pausing leak
        and found.verdict is Verdict.LEAK
        and found.growth_per_x is not None
    ]
    share = sum(inside) / max(len(inside), 1)
    shown = f"{sum(inside)}/{len(inside)} = {share:.1%}"
    good = 90 <= round(100 * share) <= 99
    return Row(on="rate", figure="inside the 95% interval", value=shown, bar="90-99%", good=good)


def longer_rows(cases: Sequence[Case]) -> list[Row]:
    """Of runs that settle within eight times their length: told how long, and settled by then?"""
    settled: list[bool] = []
    ratios: list[float] = []
    for made, found in cases:
        need = found.need_more
        if found.verdict is not Verdict.INCONCLUSIVE or made.family == "logarithm":
            continue
        needed = _needed(made)
        if needed is None or need is None or need.more_x is None:
            continue
        end = int(np.searchsorted(made.x, made.x[made.n - 1] + need.more_x, side="right")) + 1
        if end > len(made.x):
            continue
        settled.append(_is_settled(made, end))
        ratios.append(need.more_x / needed)
    middle = float(np.median(ratios)) if ratios else 0.0
    on = "how much longer"
    return [
        at_least(on, "settled after that many more", sum(settled), len(settled), 0.8),
        Row(
            on=on,
            figure="median of predicted / needed",
            value=f"{middle:.2f}",
            bar="<= 3",
            good=middle <= 3,
        ),
    ]


def _needed(made: Made) -> float | None:
    for factor in LENGTHS:
        end = int(np.ceil(made.n * factor))
        if _is_settled(made, end):
            return float(made.x[min(end, len(made.x)) - 1] - made.x[made.n - 1])
    return None


def _is_settled(made: Made, length: int) -> bool:
    return diagnose(made.recording(length)).series[0].verdict is not Verdict.INCONCLUSIVE


def peer_rows(cases: Sequence[Case]) -> list[Row]:
    rows = []
    for name, rule in peers().items():
        said = [(made.truth, _peer(rule, made)) for made, _ in cases]
        count = {t: sum(leak for truth, leak in said if truth == t) for t, _ in said}
        whole = {t: sum(truth == t for truth, _ in said) for t, _ in said}
        parts = [
            f"{label} {count.get(t, 0) / max(whole.get(t, 0), 1):.1%}"
            for t, label in (("bounded", "false"), ("truncated", "cut"), ("leak", "found"))
        ]
        rows.append(Row(on="peer", figure=name, value=", ".join(parts), bar="-", good=None))
    return rows


def _peer(rule: Callable[[np.ndarray, np.ndarray], bool], made: Made) -> bool:
    keep = np.isfinite(made.y[: made.n])
    return bool(rule(made.x[: made.n][keep], made.y[: made.n][keep]))


def write(rows: Sequence[Row], seed: int, per_family: int, cases: Sequence[Case]) -> None:
    head = (
        "# How well leaks and warm-ups are separated\n\n"
        f"Made by `python benchmarks/decide.py --seed {seed} --per-family {per_family} --write`.\n"
        "Seeded series and their truth: `benchmarks/_series.py`; corpus: `fixtures/corpus`.\n\n"
    )
    picture = "\n\n![verdicts by family](decide.png)\n\n"
    (DOCS / "decide.md").write_text(head + table(rows) + picture + LIMITS)
    _plot(cases, DOCS / "decide.png")


def _plot(cases: Sequence[Case], path: Path) -> None:
    """Share of each verdict per family, as stacked bars."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 6))
    left = np.zeros(len(FAMILIES))
    colours = {
        "stable": "#7fbf7b",
        "warmup": "#1b7837",
        "inconclusive": "#bbbbbb",
        "leak": "#b2182b",
    }
    for verdict in Verdict:
        share = [
            float(np.mean([f.verdict is verdict for m, f in cases if m.family == family]))
            for family in FAMILIES
        ]
        axes.barh(FAMILIES, share, left=left, label=verdict.value, color=colours[verdict.value])
        left += share
    axes.invert_yaxis()
    axes.set_xlabel("share of verdicts")
    axes.legend(loc="lower center", ncols=4, bbox_to_anchor=(0.5, 1.0), frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=9001)
    parser.add_argument("--per-family", type=int, default=40)
    parser.add_argument("--slow", action="store_true", help="five times as many series")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--write", action="store_true", help="write docs/decide.md and its plot")
    options = parser.parse_args()
    number = options.per_family * (5 if options.slow else 1)
    made = [make(family, options.seed, i) for family in FAMILIES for i in range(number)]
    began_s = time.perf_counter()
    cases = [(m, diagnose(m.recording()).series[0]) for m in made]
    each_ms = 1e3 * (time.perf_counter() - began_s) / len(cases)
    judged = [Judged(name=m.name, group=m.family, truth=m.truth, finding=f) for m, f in cases]
    real = list(corpus())
    rows = [*seeded_rows(cases), *corpus_rows(real), *calibration_rows([*judged, *real])]
    rows += [rate_row(cases), *longer_rows(cases)]
    rows += start_rows("corpus, starts", list(starts([_sets.corpus()])))
    rows += start_rows("seeded, starts", list(starts([_sets.seeded(options.seed, STARTS)])))
    if not options.no_peers:
        rows += peer_rows(cases)
    print(table(rows))
    print(f"{len(cases)} seeded series, {each_ms:.1f} ms each")
    if options.write:
        write(rows, options.seed, number, cases)
    return 1 if missed(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
