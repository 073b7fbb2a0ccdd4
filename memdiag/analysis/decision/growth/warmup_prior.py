"""Growth no longer than warm-ups last: the posterior of a leak, by length and regularity."""

from __future__ import annotations

from memdiag.analysis.decision.case import Case, Check, Says, Window
from memdiag.analysis.parameters import SHARED, Shared
from memdiag.values.verdict import Reason


def ask(case: Case, window: Window, parameters: Shared) -> Says | None:
    """Object to a posterior below `leak_posterior`."""
    least = case.policy.prior.leak_posterior
    if window.posterior >= least:
        return None
    return Says(
        text="some warm-ups last as long: the probability of a leak is {posterior_share}, and "
        "{least_share} is needed",
        numbers={"posterior_share": window.posterior, "least_share": least},
        reason=Reason.STILL_CLIMBING,
    )


CHECK = Check(name="warmup_prior", ask=ask, parameters=SHARED)
