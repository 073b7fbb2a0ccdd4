"""Growth by steps between flat treads, as pools and caching allocators show it.

A staircase that goes on is weighed like growth along its steps: a line through them, no slower at
its end, and no wait longer than the gaps before.
"""

from __future__ import annotations

from memdiag.analysis.decision.case import Absent, Case, Proposal, Window
from memdiag.analysis.decision.prior import Span, posterior_leak
from memdiag.analysis.decision.regimes import r_squared
from memdiag.analysis.decision.stairs import Stairs
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.analysis.policy import Common
from memdiag.analysis.stats.slope_test import trend
from memdiag.values.verdict import Reason


def propose(case: Case, parameters: Shared) -> Window | Absent:
    """The staircase that ends the run."""
    steps = case.stairs
    if steps is None:
        return Absent(text="no upward steps with level stretches between them were found")
    return window(case, steps, parameters)


def window(case: Case, steps: Stairs, parameters: Shared) -> Window | Absent:
    """A staircase that goes on as a window."""
    policy, view = case.policy, case.view
    if not _goes_on(steps, parameters, policy.common):
        return Absent(
            text="it rises in steps, but they are too few, are uneven, slow down or have stopped"
        )
    fitted = trend(steps.at, steps.level, view.floor)
    length_x = float(steps.at[-1] - steps.at[0])
    span = Span(first_bin=steps.first_bin, length_x=length_x)
    posterior = posterior_leak(view, policy, span, 1.0)
    length = policy.prior.warmup_lengths[view.prepared.axis.kind]
    return Window(
        view=view,
        trend=fitted,
        first_sample=int(view.binned.start[steps.first_bin]),
        span_x=float(view.binned.x[-1] - view.binned.x[steps.first_bin]),
        posterior=posterior,
        reason=Reason.OUTLASTS_WARMUP,
        text="it rose in {steps} even steps over {length_x}; {longer_share} of warm-ups last "
        "longer",
        numbers={
            "steps": float(len(steps.at)),
            "length_x": length_x,
            "growth_rate": fitted.slope,
            "growth_p": fitted.p_growth,
            "longer_share": length.survival(length_x),
            "posterior_share": posterior,
        },
        need_x=max(steps.still_to_wait, 0.0) or None,
    )


def _goes_on(steps: Stairs, parameters: Shared, common: Common) -> bool:
    at, level = steps.at, steps.level
    if len(at) < common.cycles:
        return False
    half = len(at) // 2
    early = (level[half] - level[0]) / max(at[half] - at[0], 1e-300)
    late = (level[-1] - level[half]) / max(at[-1] - at[half], 1e-300)
    waits = steps.waited < 2 * steps.median_gap
    straight = r_squared(at, level) >= common.block_r2
    return straight and bool(late >= common.slowing * early) and waits


PROPOSAL = Proposal(name="staircase", propose=propose, parameters=SHARED)
