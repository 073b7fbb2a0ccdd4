"""From the score of a decision to the probability that it is right."""

from __future__ import annotations

from memdiag.analysis.classification import Classified
from memdiag.analysis.prepare import Prepared
from memdiag.policy import Policy


def confidence(classified: Classified, prepared: Prepared, policy: Policy) -> float:
    """Calibrated probability, 0..1, that the verdict is right."""
    cap = policy.few_confidence if prepared.samples < policy.few_samples else 0.999
    return min(max(classified.score, 0.05), cap)
