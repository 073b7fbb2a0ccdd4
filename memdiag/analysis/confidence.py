"""The probability that a verdict is right, read off how often such verdicts were right.

Verdicts are grouped by what was said, the rule that said it and the number of samples; the shares
come from labelled series (`tools/refit_confidence.py`, docs/method.md), shrunk towards the larger
group where a cell holds few. The share of a LEAK is multiplied by its posterior: labelled series
know no warm-up as long as the longest ones in the wild, the prior does. No verdict from few
samples is ever sure.
"""

from __future__ import annotations

from memdiag.analysis.calibration_table import RIGHT
from memdiag.analysis.decision.case import Decision
from memdiag.analysis.policy import Policy
from memdiag.analysis.preprocessing.prepare import Prepared
from memdiag.values.verdict import Reason, Verdict

SIZES = (0, 12, 24, 60, 240)
"""Fewest samples of each size class (chosen: about equally many of the corpus's series in each)."""

UNKNOWN = {"leak": 0.9, "calm": 0.9, "open": 0.6}
"""For a group that no labelled series fell into (chosen)."""


def group(verdict: Verdict) -> str:
    """What was said: "leak", "calm" (stable or warm-up) or "open" (inconclusive)."""
    if verdict is Verdict.LEAK:
        return "leak"
    return "open" if verdict is Verdict.INCONCLUSIVE else "calm"


def size(samples: int) -> int:
    """The size class of a number of samples: its fewest."""
    return max(s for s in SIZES if s <= samples)


def share_right(verdict: Verdict, reason: Reason, samples: int) -> float:
    """Share of labelled series with this verdict, reason and size for which it was right, 0..1."""
    said = group(verdict)
    return RIGHT.get((said, reason.value, size(samples)), RIGHT.get((said, "", 0), UNKNOWN[said]))


def confidence(decision: Decision, prepared: Prepared, policy: Policy) -> float:
    """Calibrated probability, 0..1, that the verdict is right."""
    share = share_right(decision.verdict, decision.reason, prepared.samples)
    cap = (
        policy.reporting.few_confidence
        if prepared.samples < policy.common.few_samples
        else policy.reporting.most_confidence
    )
    if decision.verdict is Verdict.LEAK:
        share *= decision.posterior
    if decision.verdict is Verdict.INCONCLUSIVE:
        cap = min(cap, policy.reporting.open_confidence)
    return min(share, cap)
