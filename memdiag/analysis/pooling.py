"""Several runs of one side as one estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memdiag.analysis.trend import quantile
from memdiag.findings import Interval

# The normal quantile, as a t with so many degrees of freedom that it makes no difference.
_MANY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value, its standard error and the degrees of freedom of that error."""

    value: float
    error: float
    freedom: int = _MANY

    def interval(self) -> Interval:
        """The 95 % interval."""
        half = quantile(0.975, self.freedom) * self.error
        return Interval(value=self.value, low=self.value - half, high=self.value + half)


def from_interval(interval: Interval) -> Estimate | None:
    """The estimate behind a 95 % interval; None where it is open."""
    half = (interval.high - interval.low) / 2
    if not (math.isfinite(half) and math.isfinite(interval.value)):
        return None
    return Estimate(value=interval.value, error=half / quantile(0.975, _MANY))


def pool(estimates: Sequence[Estimate]) -> Estimate | None:
    """One estimate from one per run: random effects, None without a run.

    The variance between runs by DerSimonian and Laird, Controlled Clinical Trials 7 (1986) 177-188;
    the error with the small-sample correction of Hartung and Knapp, Statistics in Medicine 20
    (2001) 3875-3889, which has (runs - 1) degrees of freedom. A single run knows nothing of how
    runs differ, so its own error stands.
    """
    if not estimates:
        return None
    if len(estimates) == 1:
        return estimates[0]
    variances = [max(e.error, 1e-12 * max(abs(e.value), 1e-12)) ** 2 for e in estimates]
    between = _variance_between(estimates, variances)
    weights = [1 / (v + between) for v in variances]
    total = sum(weights)
    mean = sum(w * e.value for w, e in zip(weights, estimates, strict=True)) / total
    freedom = len(estimates) - 1
    spread = sum(w * (e.value - mean) ** 2 for w, e in zip(weights, estimates, strict=True))
    error = math.sqrt(max(spread / (freedom * total), 1 / total))
    return Estimate(value=mean, error=error, freedom=freedom)


def _variance_between(estimates: Sequence[Estimate], variances: Sequence[float]) -> float:
    weights = [1 / v for v in variances]
    total = sum(weights)
    mean = sum(w * e.value for w, e in zip(weights, estimates, strict=True)) / total
    q = sum(w * (e.value - mean) ** 2 for w, e in zip(weights, estimates, strict=True))
    scale = total - sum(w * w for w in weights) / total
    return max(0.0, (q - (len(estimates) - 1)) / scale) if scale > 0 else 0.0


def difference(base: Estimate, candidate: Estimate) -> Estimate:
    """Candidate minus base; degrees of freedom by Welch and Satterthwaite."""
    variance = base.error**2 + candidate.error**2
    parts = sum(e.error**4 / e.freedom for e in (base, candidate))
    freedom = _MANY if parts <= 0 else max(1, min(_MANY, round(variance**2 / parts)))
    return Estimate(value=candidate.value - base.value, error=math.sqrt(variance), freedom=freedom)


def ratio(base: Estimate, candidate: Estimate) -> Interval | None:
    """Candidate over base with its interval by the delta method; None where base may be 0."""
    at = base.interval()
    if at.low <= 0 <= at.high:
        return None
    value = candidate.value / base.value
    error = math.hypot(candidate.error, value * base.error) / abs(base.value)
    freedom = min(base.freedom, candidate.freedom)
    half = quantile(0.975, freedom) * error
    return Interval(value=value, low=value - half, high=value + half)
