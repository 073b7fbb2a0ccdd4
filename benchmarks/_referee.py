"""What a verdict counts as, given the truth; the rates that are printed beside the bars."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memdiag.analysis.diagnose import diagnose
from memdiag.recording.read import read
from memdiag.values.findings import Finding
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

CORPUS = Path(__file__).resolve().parent.parent / "fixtures" / "corpus"
LABELS = {"stable": "bounded", "warmup": "bounded", "spiky-bounded": "bounded"}
LABELS |= {"leak": "leak", "inconclusive": "truncated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One finding beside the truth of its series. group: what belongs together when fitting."""

    name: str
    group: str
    truth: str
    finding: Finding

    @property
    def right(self) -> bool | None:
        """Whether the verdict is right; None where truth and verdict settle nothing."""
        verdict = self.finding.verdict
        if verdict is Verdict.INCONCLUSIVE:
            return self.truth in ("truncated", "grey")
        if self.truth == "grey":
            return None
        return (verdict is Verdict.LEAK) == (self.truth == "leak") and self.truth != "truncated"


def corpus() -> Iterator[Judged]:
    """Every labelled series of the corpus, through the reader; grey where the label is unsure."""
    for entry in json.loads((CORPUS / "index.json").read_text()):
        found = {stem(f.metric): f for f in diagnose(read(str(CORPUS / entry["file"]))).series}
        for metric, label in entry["metric_truth"].items():
            if label in LABELS and stem(metric) in found:
                truth = "grey" if entry["confidence"] == "low" else LABELS[label]
                yield Judged(
                    name=f"{entry['id']}:{metric}",
                    group=entry["group"],
                    truth=truth,
                    finding=found[stem(metric)],
                )


def stem(metric: str) -> str:
    """A metric's name without its unit."""
    for unit in ("_bytes", "_kb", "_mb", "_gb", "_kib", "_mib", "_gib", "_percent"):
        if metric.endswith(unit):
            return metric[: -len(unit)]
    return metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Counts of one set of series."""

    bounded: int
    truncated: int
    leaks: int
    false_bounded: int
    false_truncated: int
    missed: int
    found: int
    abstained: int

    @classmethod
    def of(cls, judged: Iterable[tuple[str, Verdict]]) -> Rates:
        """Count (truth, verdict) pairs."""
        pairs = list(judged)

        def count(truth: str, *verdicts: Verdict) -> int:
            return sum(1 for t, v in pairs if t == truth and (not verdicts or v in verdicts))

        return cls(
            bounded=count("bounded"),
            truncated=count("truncated"),
            leaks=count("leak"),
            false_bounded=count("bounded", Verdict.LEAK),
            false_truncated=count("truncated", Verdict.LEAK),
            missed=count("leak", *STABLE_OR_WARMUP),
            found=count("leak", Verdict.LEAK),
            abstained=count("bounded", Verdict.INCONCLUSIVE),
        )
