"""What each check and each number of the decision earns.

    python benchmarks/ablation.py [--seed S] [--per-family N] [--numbers] [--jobs 2] [--write]

Each window and check is switched off alone, and each number is taken x 0.7 and x 1.4, on three
seeds of each generator (`_series.py`, `_jobs.py`, leakbench) and on the corpus. A line says by how
many verdicts the errors change, with the 95 % interval of the change of the rate (Agresti and Min,
Biometrics 61 (2005) 515-523: adjusted Wald of discordant pairs). `--write` puts the tables into
docs/sensitivity.md.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, is_dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import _sets
from _sets import Set, Verdicts

from memdiag.analysis.decision import decide, ends
from memdiag.analysis.decision.across import decide as across
from memdiag.analysis.parameters import numbers_of
from memdiag.analysis.policy import DEFAULT, Policy, WarmupLength
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

SENSITIVITY = Path(__file__).resolve().parent.parent / "docs" / "sensitivity.md"
FACTORS = (0.7, 1.4)
# Of the numbers' many policies a part of the seeded cases is judged.
PART_OF_NUMBERS = 3
# Groups of Policy that change no verdict on a finished recording.
NOT_OF_THE_VERDICT = ("reporting", "live", "checks", "off")
ERRORS = ("false", "false, truncated", "missed", "not found", "undecided")
SETS: list[Set] = []
PLANS: list[tuple[str, Policy]] = []


def error(truth: str, verdict: Verdict) -> str:
    """Which error a verdict is, "" for none."""
    if truth == "bounded":
        return {Verdict.LEAK: "false", Verdict.INCONCLUSIVE: "undecided"}.get(verdict, "")
    if truth == "truncated":
        return "false, truncated" if verdict is Verdict.LEAK else ""
    if truth == "leak" and verdict is not Verdict.LEAK:
        return "missed" if verdict in STABLE_OR_WARMUP else "not found"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A policy beside the default one. more: for each set and error, labels that have it now and
    did not; less: the other way round; of: labels that could have it."""

    name: str
    verdicts: int
    more: Mapping[tuple[str, str], int]
    less: Mapping[tuple[str, str], int]

    def total(self, kind: str) -> tuple[int, int]:
        """(more, less) of one error over all sets."""
        more = sum(n for (_, k), n in self.more.items() if k == kind)
        return more, sum(n for (_, k), n in self.less.items() if k == kind)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=20261122, help="the first of three")
    parser.add_argument("--per-family", type=int, default=20)
    parser.add_argument("--numbers", action="store_true", help="numbers too: a quarter of an hour")
    parser.add_argument("--only", default="", help="checks and numbers whose name begins so")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write docs/sensitivity.md")
    asked = parser.parse_args()
    began_s = time.monotonic()
    make_sets(asked.seed, asked.per_family)
    print(baseline())
    plans: list[tuple[str, Policy]] = [
        (name, replace(DEFAULT, off=frozenset({name}))) for name in names()
    ]
    if asked.numbers:
        plans += list(scaled())
    plans = [plan for plan in plans if plan[0].startswith(asked.only)]
    PLANS[:] = plans
    # (Processes are forked and have the sets and plans already.)
    with ProcessPoolExecutor(asked.jobs, get_context("fork")) as pool:
        changes = list(pool.map(compare, range(len(plans)), chunksize=4))
    off = [c for c, (_, policy) in zip(changes, plans, strict=True) if policy.off]
    numbers = changes[len(off) :]
    tables = [baseline(), checks_table(off), *([numbers_table(numbers)] if numbers else [])]
    print("\n\n".join(tables[1:]))
    print(f"{time.monotonic() - began_s:.0f} s")
    if asked.write:
        write(tables, asked)
    return 0


def make_sets(seed: int, per_family: int) -> None:
    """All labelled sets, judged once by the default policy."""
    SETS[:] = [_sets.corpus()]
    for number in range(3):
        SETS.append(_sets.seeded(seed + number, per_family))
        SETS.append(_sets.jobs(seed + number, max(per_family // 2, 1)))
        if _sets.LEAKBENCH.exists():
            SETS.append(_sets.leakbench(seed + number, per_family))
    for one in SETS:
        one.learn()


def names() -> Iterator[str]:
    """Every window and check that can be switched off."""
    for one in (*decide.everything(), *ends.ENDS, *across.everything()):
        yield one.name


def scaled() -> Iterator[tuple[str, Policy]]:
    """Every number x 0.7 and x 1.4, as a policy each."""
    for group in fields(DEFAULT):
        if group.name not in NOT_OF_THE_VERDICT:
            for name, changed in _scaled(getattr(DEFAULT, group.name)):
                yield f"{group.name}.{name}", replace(DEFAULT, **{group.name: changed})
    for one in (*decide.everything(), *ends.ENDS, *across.everything()):
        for name, changed in _scaled(one.parameters):
            yield f"{one.name}.{name}", replace(DEFAULT, checks={one.name: changed})


def _scaled(parameters: Any) -> Iterator[tuple[str, Any]]:
    for one in numbers_of(parameters):
        value = getattr(parameters, one.name)
        if isinstance(value, Mapping):
            for key, entry in value.items():
                for name, changed in _entry(entry):
                    label = f"{one.name}[{getattr(key, 'name', key)}]{name}"
                    yield label, replace(parameters, **{one.name: {**value, key: changed}})
        else:
            for factor in FACTORS:
                changed = replace(parameters, **{one.name: times(value, factor)})
                yield f"{one.name} x {factor}", changed


def _entry(entry: float | WarmupLength) -> Iterator[tuple[str, Any]]:
    if is_dataclass(entry):
        for one in fields(entry):
            for factor in FACTORS:
                value = times(getattr(entry, one.name), factor)
                yield f".{one.name} x {factor}", replace(entry, **{one.name: value})
    else:
        for factor in FACTORS:
            yield f" x {factor}", times(entry, factor)


def times(value: float, factor: float) -> float:
    """The number scaled: a whole one by 1 at least, a share above one half by its complement."""
    if isinstance(value, int):
        return max(1, value + (1 if factor > 1 else -1) * max(1, round(abs(factor - 1) * value)))
    if 0.5 < value < 1:
        return 1 - (1 - value) * factor
    return value * factor


def compare(number: int) -> Change:
    """What the policy of that number of `PLANS` changes."""
    name, policy = PLANS[number]
    more: dict[tuple[str, str], int] = {}
    less: dict[tuple[str, str], int] = {}
    verdicts = 0
    for one in SETS:
        only = one.spoke.get(name, set()) if policy.off else None
        part = 1 if policy.off or one.name == "corpus" else PART_OF_NUMBERS
        found = one.judge(policy, only, part)
        verdicts += _count(one, found, more, less)
    return Change(name=name, verdicts=verdicts, more=more, less=less)


def _count(
    one: Set,
    found: Verdicts,
    more: dict[tuple[str, str], int],
    less: dict[tuple[str, str], int],
) -> int:
    truths, changed = one.truths(), 0
    for label, verdict in found.items():
        before = one.verdicts[label]
        changed += verdict is not before
        was, now = error(truths[label], before), error(truths[label], verdict)
        if was != now:
            for counts, kind in ((less, was), (more, now)):
                if kind:
                    counts[one.name, kind] = counts.get((one.name, kind), 0) + 1
    return changed


def interval(more: int, less: int, of: int) -> tuple[float, float]:
    """95 % interval of the change of a rate: adjusted Wald of discordant pairs."""
    n, b, c = of + 2, more + 0.5, less + 0.5
    half = 1.96 * math.sqrt(b + c - (b - c) ** 2 / n) / n
    return (b - c) / n - half, (b - c) / n + half


def labels(kind: str) -> int:
    """How many labels could have this error, over all sets."""
    truth = {"false": "bounded", "undecided": "bounded", "false, truncated": "truncated"}
    wanted = truth.get(kind, "leak")
    return sum(list(one.truths().values()).count(wanted) for one in SETS)


def baseline() -> str:
    """The errors of today's policy, as a table."""
    lines = [
        "| set | " + " | ".join(ERRORS) + " |",
        "|---" * (len(ERRORS) + 1) + "|",
    ]
    for one in SETS:
        truths = one.truths()
        kinds = [error(truths[label], verdict) for label, verdict in one.verdicts.items()]
        count = list(truths.values()).count
        of = [count(t) for t in ("bounded", "truncated", "leak", "leak", "bounded")]
        cells = [f"{kinds.count(kind)}/{n}" for kind, n in zip(ERRORS, of, strict=True)]
        lines.append(f"| {one.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def checks_table(changes: Sequence[Change]) -> str:
    """One line for each window and check, the costliest to lose first."""
    lines = ["| off | changed | " + " | ".join(ERRORS) + " |", "|---" * (len(ERRORS) + 2) + "|"]
    for change in sorted(changes, key=worth, reverse=True):
        lines.append(f"| {change.name} | {change.verdicts} | " + " | ".join(_cells(change)) + " |")
    return "\n".join(lines)


def numbers_table(changes: Sequence[Change]) -> str:
    """Numbers that change an error, and the names of those that change no verdict."""
    idle: dict[str, int] = {}
    for change in changes:
        name = change.name.rpartition(" x ")[0]
        idle[name] = idle.get(name, 0) + change.verdicts
    lines = ["| number | changed | " + " | ".join(ERRORS) + " |", "|---" * (len(ERRORS) + 2) + "|"]
    for change in sorted(changes, key=lambda c: -abs(worth(c))):
        if change.more or change.less:
            cells = " | ".join(_cells(change))
            lines.append(f"| {change.name} | {change.verdicts} | {cells} |")
    still = [name for name, number in idle.items() if number == 0]
    said = f"{len(still)} of {len(idle)} numbers change no verdict: " + ", ".join(still)
    return "\n".join([*lines, "", said])


def worth(change: Change) -> float:
    """What the default policy saves: 5 for each wrong verdict, 1 for each undecided."""
    weight = {"false": 5, "false, truncated": 5, "missed": 5, "not found": 1, "undecided": 1}
    totals = {kind: change.total(kind) for kind in ERRORS}
    return sum(weight[kind] * (more - less) for kind, (more, less) in totals.items())


def _cells(change: Change) -> Iterator[str]:
    for kind in ERRORS:
        more, less = change.total(kind)
        if more == less == 0:
            yield ""
            continue
        low, high = interval(more, less, labels(kind))
        yield f"{more - less:+d} (+{more} -{less}; {low:+.2%} to {high:+.2%})"


def write(tables: Sequence[str], asked: argparse.Namespace) -> None:
    """Write docs/sensitivity.md."""
    titles = ("## Today", "## Each window and check switched off", "## Each number")
    command = f"python benchmarks/ablation.py --seed {asked.seed} --per-family {asked.per_family}"
    head = "# What each check and each number of the decision earns\n\n" + _INTRODUCTION.format(
        command=command + (" --numbers" if asked.numbers else "")
    )
    parts = [f"{title}\n\n{table}" for title, table in zip(titles, tables, strict=False)]
    SENSITIVITY.write_text("\n\n".join([head.rstrip(), *parts]) + "\n")


_INTRODUCTION = """\
Made by `{command} --write`.

A cell has the change of the number of labels with that error when the window or check is off, in
brackets how many gained and lost it, and the 95 % interval of the change of the rate over all sets
(Agresti and Min 2005). "not found" are leaks left INCONCLUSIVE, "undecided" are bounded series left
so. Numbers are taken x 0.7 and x 1.4 (whole ones by 1 at least, shares above one half by their
complement) on a third of the seeded series and on all of the corpus.
"""


if __name__ == "__main__":
    sys.exit(main())
