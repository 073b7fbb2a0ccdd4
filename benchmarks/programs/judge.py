"""One run of one program under memdiag, held against what is known of it."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from truths import Truth, last_words

RATE_BAR = 0.15
CALM, LEAK, OPEN, FAILED = "calm", "leak", "open", "failed"
_STANDS_FOR = {"stable": CALM, "warmup": CALM, "leak": LEAK, "inconclusive": OPEN}
# What is said of growth in malloc where no torch is, whose tensors would be told apart.
_UNDECIDED = "native_or_tensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What memdiag said. rate and true: bytes per unit of `axis`, an AxisKind by its value. pace:
    rounds of the program's loop per second."""

    program: str
    run: int
    verdict: str
    axis: str = ""
    rate: float | None = None
    true: float = 0.0
    pace: float = 0.0
    kind: str = ""
    process: str = ""
    metric: str = ""
    reason: str = ""
    confidence: float | None = None
    error: str = ""

    @property
    def sort(self) -> str:
        """WARMUP and STABLE are the same: neither is a leak."""
        return _STANDS_FOR.get(self.verdict, FAILED)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """All runs of a program. found: those that found a leak that is one."""

    truth: Truth
    outcomes: tuple[Outcome, ...]

    @property
    def right_sort(self) -> str:
        return LEAK if self.truth.leaks else CALM

    @property
    def found(self) -> tuple[Outcome, ...]:
        return tuple(o for o in self.outcomes if self.truth.leaks and o.sort == LEAK)

    def count(self, *, what: str) -> int:
        tests = {
            "wrong": lambda o: o.sort not in {self.right_sort, OPEN},
            "open": lambda o: o.sort == OPEN,
            "rate": lambda o: o in self.found and self.rate_right(o),
            "kind": lambda o: o in self.found and self.kind_right(o),
        }
        return sum(map(tests[what], self.outcomes))

    @property
    def same(self) -> bool:
        return len({o.sort for o in self.outcomes}) == 1

    def rate_right(self, outcome: Outcome) -> bool:
        if outcome.rate is None or not outcome.true or outcome.axis != self.truth.axis:
            return False
        return abs(outcome.rate / outcome.true - 1) <= RATE_BAR

    def kind_right(self, outcome: Outcome) -> bool:
        undecided = "torch" not in self.truth.needs and outcome.kind == _UNDECIDED
        several = len(self.truth.process) > 1 and outcome.process == "tree"
        right_place = several or outcome.process in self.truth.process
        return right_place and (undecided or outcome.kind in self.truth.kind)

    def cells(self) -> tuple[str, ...]:
        verdicts = [o.verdict for o in self.outcomes]
        told = sorted(set(verdicts), key=verdicts.count, reverse=True)
        tally = ", ".join(v if len(told) == 1 else f"{v} {verdicts.count(v)}" for v in told)
        rates = [o.rate for o in self.found if o.rate is not None]
        trues = [o.true for o in self.found] or [self.truth.bytes]
        kinds = sorted({_words(o) for o in self.found})
        return (
            self.truth.name,
            self.truth.style,
            tally,
            f"{statistics.median(rates):,.0f}" if rates else "",
            f"{statistics.median(trues):,.0f}" if self.truth.leaks else "",
            "; ".join(kinds),
            self.standing(),
        )

    def standing(self) -> str:
        """ok, or what is not."""
        runs, found = len(self.outcomes), len(self.found)
        complaints = [f"WRONG {wrong}/{runs}" for wrong in [self.count(what="wrong")] if wrong]
        complaints += [f"open {some}/{runs}" for some in [self.count(what="open")] if some]
        for what in ("rate", "kind"):
            right = self.count(what=what)
            complaints += [f"{what} {found - right}/{found}"] if right < found else []
        return ", ".join(complaints) or "ok"


def _words(outcome: Outcome) -> str:
    place = "" if outcome.process == "main" else f" in {outcome.process}"
    return outcome.kind.replace("_", " ") + place


def judged(truth: Truth, run: int, seconds: float, keep: Path | None = None) -> Outcome:
    """Run a program under `memdiag run`. What goes wrong with that is an outcome as well.

    keep: the folder where its recording and its report stay.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = (keep or Path(folder)) / f"{truth.name}-{run}.json"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "memdiag", "run", "--quiet", "--json-file", str(report)]
        command += ["--output", str(report.with_suffix(".csv")), "--force"]
        command += [*truth.options, "--", *truth.command(seconds)]
        ended = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        words = last_words(ended.stdout)
        if not report.exists() or words is None:
            told = (ended.stderr.strip() or ended.stdout.strip())[-400:]
            return Outcome(program=truth.name, run=run, verdict=FAILED, error=told)
        (found,) = json.loads(report.read_text(encoding="utf-8"))["recordings"]
    rounds, took_s = words
    return said(truth, run, found, rounds / took_s)


def judged_again(earlier: Outcome, truth: Truth, keep: Path) -> Outcome:
    """The same run judged as memdiag judges its recording now; as it was, if that was not kept."""
    recording = keep / f"{truth.name}-{earlier.run}.csv"
    if not recording.exists() or earlier.error:
        return earlier
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "again.json"
        command = [sys.executable, "-m", "memdiag", "analyze", str(recording)]
        subprocess.run([*command, "--json-file", str(report)], check=False, capture_output=True)
        (found,) = json.loads(report.read_text(encoding="utf-8"))["recordings"]
    return said(truth, earlier.run, found, earlier.pace)


def said(truth: Truth, run: int, found: dict[str, Any], pace: float) -> Outcome:
    """pace: rounds per second."""
    series = found["series"][found["decided_by"]] if found["decided_by"] is not None else {}
    axis = series["axis"]["kind"] if series else ""
    whole = found["growth"] or series
    growth = whole.get("growth_per_x")
    if axis != truth.axis == "seconds":  # other rounds than those of the truth are the steps
        axis, growth = truth.axis, whole.get("growth_per_s")
    makers = {part["process"] for part in (found["growth"] or {"parts": []})["parts"]}
    process = _place(
        makers.pop() if len(makers) == 1 else series.get("process", ""), found["series"]
    )
    per_round = truth.bytes * (len(truth.process) if process == "tree" else 1)
    return Outcome(
        program=truth.name,
        run=run,
        verdict=found["verdict"],
        axis=axis,
        rate=None if growth is None else growth["value"],
        true=per_round * (pace if axis == "seconds" else 1.0),
        pace=pace,
        kind=(found["leaking"] or {"kind": "not told"})["kind"],
        process=process,
        metric=series.get("metric", ""),
        reason=series.get("reason", ""),
        confidence=found["confidence"],
    )


def _place(process: str, series: Sequence[dict[str, Any]]) -> str:
    """The process; the tree is the main process where there is no other."""
    others = {one["process"] for one in series} - {"", "main", "tree"}
    return process if process not in {"", "tree"} else ("tree" if others else "main")
