"""A window from a view whose last regime grows."""

from __future__ import annotations

from memdiag.analysis.decision.case import Window
from memdiag.analysis.decision.prior import posterior_leak, regular_odds, undiminished
from memdiag.analysis.decision.regimes import View
from memdiag.analysis.policy import Policy
from memdiag.values.verdict import Reason

_AFTER_PLATEAU = "it hardly grew for {plateau_x}, then grew for {length_x}; few warm-ups do that"
_REGULAR = "it grew by equal amounts for {length_x}; leaks do that, few warm-ups do"
_LONG = "it grew for {length_x}; {longer_share} of warm-ups last longer"


def window(view: View, policy: Policy) -> Window:
    """The last regime of the view, with the posterior of its growth."""
    span = undiminished(view, policy)
    factor = regular_odds(view, policy)
    posterior = posterior_leak(view, policy, span, factor)
    if span.plateau_x > 0:
        reason, text = Reason.GROWTH_AFTER_PLATEAU, _AFTER_PLATEAU
    elif factor > 1:
        reason, text = Reason.REGULAR_GROWTH, _REGULAR
    else:
        reason, text = Reason.OUTLASTS_WARMUP, _LONG
    length = policy.prior.warmup_lengths[view.prepared.axis.kind]
    return Window(
        view=view,
        trend=view.trend,
        first_sample=view.first_sample,
        span_x=span.length_x,
        posterior=posterior,
        reason=reason,
        text=text,
        numbers={
            "length_x": span.length_x,
            "plateau_x": span.plateau_x,
            "growth_rate": view.trend.slope,
            "growth_error_rate": view.trend.error,
            "growth_p": view.p_growth,
            "longer_share": length.survival(span.length_x),
            "posterior_share": posterior,
        },
    )
