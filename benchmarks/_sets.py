"""The labelled sets that the decision is measured on, and what a policy makes of them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import _jobs
from _referee import CORPUS, LABELS, stem
from _series import FAMILIES, make

from memdiag.analysis.decision.case import Context
from memdiag.analysis.decision.decide import decide
from memdiag.analysis.diagnose import judge
from memdiag.analysis.policy import DEFAULT, Policy
from memdiag.analysis.preprocessing.prepare import Prepared, prepare
from memdiag.recording.read import read
from memdiag.values.measurements import Recording
from memdiag.values.verdict import Argument, Verdict

LEAKBENCH = Path(__file__).resolve().parents[2] / "shared" / "leakbench" / "leakbench.py"
Verdicts = dict[tuple[str, str], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A recording with the truth of its series by metric; "" stands for the recording itself."""

    name: str
    recording: Recording
    truth: dict[str, str]


@dataclass(slots=True, kw_only=True)
class Set:
    """Labelled recordings of one source.

    verdicts: of every label by the default policy. spoke: for each check and window, the cases in
    which it said something: switched off, it can change no other.
    """

    name: str
    cases: list[Labelled]
    verdicts: Verdicts = field(default_factory=dict)
    spoke: dict[str, set[str]] = field(default_factory=dict)
    prepared: dict[str, Prepared] = field(default_factory=dict)

    def learn(self) -> None:
        """Judge by the default policy."""
        for case in self.cases:
            verdicts, trail = self._judge(case, DEFAULT)
            self.verdicts |= verdicts
            for argument in trail:
                for name in (argument.check, argument.look):
                    self.spoke.setdefault(name, set()).add(case.name)

    def judge(self, policy: Policy, only: set[str] | None = None, part: int = 1) -> Verdicts:
        """Verdicts by another policy; of cases that are not in `only`, the default's. part: of
        every so many cases one alone is judged, and the others are left out."""
        found: Verdicts = {}
        for case in self.cases[::part]:
            if only is None or case.name in only:
                found |= self._judge(case, policy)[0]
            else:
                found |= {(case.name, m): self.verdicts[case.name, m] for m in case.truth}
        return found

    def truths(self) -> dict[tuple[str, str], str]:
        """The truth of every label."""
        return {(c.name, metric): t for c in self.cases for metric, t in c.truth.items()}

    def _judge(self, case: Labelled, policy: Policy) -> tuple[Verdicts, tuple[Argument, ...]]:
        if len(case.recording.series) == 1:
            found = decide(self._prepare(case, policy), policy, _context(case.recording))
            return {(case.name, m): found.verdict for m in case.truth}, found.trail
        judged = judge(case.recording, policy)
        by_metric = {stem(f.metric): f.verdict for f in judged.series} | {"": judged.verdict}
        trail = tuple(argument for f in judged.series for argument in f.trail)
        return {(case.name, m): by_metric[m] for m in case.truth}, trail

    def _prepare(self, case: Labelled, policy: Policy) -> Prepared:
        # (All that `prepare` asks with; another policy shares these groups with the default one.)
        groups = ("common", "preparation", "segmentation")
        if any(getattr(policy, g) is not getattr(DEFAULT, g) for g in groups):
            return prepare(case.recording.series[0], policy)
        if case.name not in self.prepared:
            self.prepared[case.name] = prepare(case.recording.series[0], policy)
        return self.prepared[case.name]


def _context(recording: Recording) -> Context:
    """Of a recording of one series."""
    records = int(recording.series[0].is_rank)
    return Context(planned_x=recording.planned_x, records=records, limits=recording.limits)


def corpus() -> Set:
    """The labelled real recordings of fixtures/corpus."""
    cases = []
    for entry in json.loads((CORPUS / "index.json").read_text()):
        recording = read(str(CORPUS / entry["file"]))
        there = {stem(s.metric) for s in recording.series if len(s.y)}
        sure = entry["confidence"] != "low"
        truth = {
            stem(metric): LABELS[label] if sure else "grey"
            for metric, label in entry["metric_truth"].items()
            if label in LABELS and stem(metric) in there
        }
        cases.append(Labelled(name=entry["id"], recording=recording, truth=truth))
    return Set(name="corpus", cases=cases)


def seeded(seed: int, per_family: int) -> Set:
    """Series of `_series.py`."""
    made = [make(family, seed, number) for family in FAMILIES for number in range(per_family)]
    cases = [Labelled(name=m.name, recording=m.recording(), truth={"rss": m.truth}) for m in made]
    return Set(name=f"series {seed}", cases=cases)


def jobs(seed: int, per_family: int) -> Set:
    """Recordings of `_jobs.py`, most of them of several series: their verdict as a whole."""
    made = [
        _jobs.make(family, seed, number)
        for family in _jobs.FAMILIES
        for number in range(per_family)
    ]
    cases = [Labelled(name=m.name, recording=m.recording, truth={"": m.truth}) for m in made]
    return Set(name=f"jobs {seed}", cases=cases)


def leakbench(seed: int, per_family: int) -> Set:
    """Recordings of leakbench, the second generator. Raises OSError where it is not there."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, str(LEAKBENCH), "make", directory, "--seed", str(seed)]
        subprocess.run(
            [*command, "--per-family", str(per_family)], check=True, stdout=subprocess.DEVNULL
        )
        return Set(name=f"leakbench {seed}", cases=list(_of_leakbench(Path(directory))))


def _of_leakbench(directory: Path) -> Iterator[Labelled]:
    for name, entry in json.loads((directory / "truth.json").read_text()).items():
        recording = read(str(directory / f"{name}.csv"))
        metric = stem(recording.series[0].metric)
        yield Labelled(name=name, recording=recording, truth={metric: entry["truth"]})
