"""The last regime rose by no more than the step that readings move by."""

from __future__ import annotations

from memdiag.analysis.decision.regimes import View


def is_one_step(view: View) -> bool:
    """Whether it did."""
    x = view.binned.x
    rise = view.trend.slope * float(x[-1] - x[view.tail])
    return 0 < rise < view.prepared.quantum
