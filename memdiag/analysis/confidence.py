"""The probability that a verdict is right, from how often such verdicts were right.

Verdicts are grouped by kind, reason and number of samples; the shares come from labelled series
(`tools/refit_confidence.py`, docs/method.md), shrunk towards the larger group where a cell has few.
The share of a LEAK is multiplied by its posterior: labelled series have no warm-up as long as the
longest ones in practice, the prior does.

No verdict is surer than so few readings and so short a run allow (`most_by_length`): a run that
ends before warm-ups usually do has not shown what comes after.
"""

from __future__ import annotations

from memdiag.analysis.calibration_table import RIGHT, RIGHT_OF_GROUP
from memdiag.analysis.decision.case import Decision
from memdiag.analysis.decision.prior import most_of_leak
from memdiag.analysis.policy import Policy
from memdiag.analysis.preprocessing.prepare import Prepared
from memdiag.values.verdict import Verdict

SIZES = (0, 12, 24, 60, 240)
"""Fewest samples of each size class (heuristic: about as much of the corpus in each)."""


def group(verdict: Verdict) -> str:
    """The kind of verdict: "leak", "stable" (or warm-up) or "open" (inconclusive)."""
    if verdict is Verdict.LEAK:
        return "leak"
    return "open" if verdict is Verdict.INCONCLUSIVE else "stable"


def size(samples: int) -> int:
    """The size class of a number of samples: its fewest."""
    return max(s for s in SIZES if s <= samples)


def confidence(decision: Decision, prepared: Prepared, policy: Policy) -> float:
    """Calibrated probability, 0..1, that the verdict is right."""
    kind, given = group(decision.verdict), policy.reporting
    shares = RIGHT.get((kind, decision.reason.value))
    share = None if shares is None else shares[SIZES.index(size(prepared.samples))]
    right = RIGHT_OF_GROUP[kind] if share is None else share
    cap = min(given.most_confidence, most_by_length(decision, prepared, policy))
    if decision.verdict is Verdict.LEAK:
        right *= decision.posterior
    if decision.verdict is Verdict.INCONCLUSIVE:
        cap = min(cap, given.open_confidence)
    return min(right, cap)


def most_by_length(decision: Decision, prepared: Prepared, policy: Policy) -> float:
    """Most confidence, 0..1, that so short a run allows in a verdict of this kind.

    Of stable runs that are still shorter than most warm-ups, some grow later. What rose before may
    rise again: after k readings without growth the next one shows none with a probability of
    (k + 1/2) / (k + 1) (the rule of succession with Jeffreys' prior; Krichevsky and Trofimov
    1981). Of leaks, some are the ramp of a warm-up.
    """
    kind = prepared.axis.kind
    if decision.verdict is Verdict.LEAK:
        return most_of_leak(decision.posterior, decision.span_x, prepared, policy)
    if decision.verdict is Verdict.INCONCLUSIVE:
        return 1.0
    later = policy.reporting.later_growth[kind]
    most = 1 - later * policy.prior.warmup_length(kind).survival(prepared.run)
    if decision.verdict is Verdict.STABLE:
        return most
    level = len(prepared.y) - decision.tail
    return min(most, (level + 0.5) / (level + 1))
