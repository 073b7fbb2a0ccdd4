"""Refit the shares that confidences are read from; writes
memdiag/analysis/calibration_table.py.

Labelled series: seeded ones (benchmarks/_series.py) and the real corpus, each real series counted
`CORPUS_WEIGHT` times. A cell's share is shrunk towards its verdict's by `SHRINK` imaginary series
(Laplace's rule with the group's mean as prior). Prints the calibration left after leaving whole
groups of the corpus out.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from _referee import Judged, corpus  # noqa: E402
from _series import FAMILIES, make  # noqa: E402

from memdiag.analysis.confidence import SIZES, group, size  # noqa: E402
from memdiag.analysis.diagnose import diagnose  # noqa: E402

CORPUS_WEIGHT = 3.0
SHRINK = 6.0
MOST = 0.999

Key = tuple[str, str, int]


def seeded(seeds: Iterable[int], per_family: int) -> Iterator[Judged]:
    for seed in seeds:
        for family in FAMILIES:
            for number in range(per_family):
                made = make(family, seed, number)
                finding = diagnose(made.recording()).series[0]
                yield Judged(name=made.name, group=family, truth=made.truth, finding=finding)


def fit(judged: Iterable[tuple[Judged, float]]) -> dict[Key, float]:
    """Shares per (said, reason, size); (said, "", 0) is the whole group's."""
    right: dict[Key, float] = defaultdict(float)
    total: dict[Key, float] = defaultdict(float)
    for one, weight in judged:
        if one.right is None:
            continue
        said = group(one.finding.verdict)
        for key in ((said, "", 0), (said, one.finding.reason.value, size(one.finding.samples))):
            total[key] += weight
            right[key] += weight * one.right
    means = {said: (right[k] + 1) / (total[k] + 2) for k in total for said in [k[0]] if not k[1]}
    return {
        k: min((right[k] + SHRINK * means[k[0]]) / (total[k] + SHRINK), MOST) for k in sorted(total)
    }


def write(shares: dict[Key, float]) -> None:
    path = ROOT / "memdiag" / "analysis" / "calibration_table.py"
    head = path.read_text().split("RIGHT:")[0]
    groups = {said: share for (said, reason, _), share in shares.items() if not reason}
    known = sorted({(said, reason) for said, reason, _ in shares if reason})
    rows = {
        (said, reason): tuple(shares.get((said, reason, least)) for least in SIZES)
        for said, reason in known
    }
    table = f"""{head}RIGHT: dict[tuple[str, str], tuple[float | None, ...]] = {{
{"".join(_row(key, row) for key, row in rows.items())}}}
RIGHT_OF_GROUP = {{
{"".join(_row(said, share) for said, share in groups.items())}}}
"""
    path.write_text(table)


def _row(key: object, value: object) -> str:
    text = re.sub(r"\d\.\d+", lambda found: f"{float(found[0]):.4f}", f"    {key!r}: {value!r},\n")
    return text.replace("'", '"')


def left_out(real: list[Judged], made: list[Judged]) -> tuple[float, int]:
    """Mean absolute gap between confidence and truth per verdict group, groups left out in turn."""
    gaps: dict[str, list[float]] = defaultdict(list)
    base = [(m, 1.0) for m in made]
    for name in sorted({r.group for r in real}):
        shares = fit(base + [(r, CORPUS_WEIGHT) for r in real if r.group != name])
        for one in (r for r in real if r.group == name and r.right is not None):
            said = group(one.finding.verdict)
            key = (said, one.finding.reason.value, size(one.finding.samples))
            gaps[said].append(float(bool(one.right)) - shares.get(key, shares[(said, "", 0)]))
    number = sum(len(v) for v in gaps.values())
    return sum(abs(sum(v)) for v in gaps.values()) / max(number, 1), number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8, help="seeds 1..N of the seeded series")
    parser.add_argument("--per-family", type=int, default=20)
    options = parser.parse_args()
    made = list(seeded(range(1, options.seeds + 1), options.per_family))
    real = list(corpus())
    write(fit([(m, 1.0) for m in made] + [(r, CORPUS_WEIGHT) for r in real]))
    gap, number = left_out(real, made)
    print(f"{len(made)} seeded and {len(real)} real series; corpus groups left out in turn: ")
    print(f"confidence and truth differ by {gap:.3f} on average ({number} series)")


if __name__ == "__main__":
    main()
