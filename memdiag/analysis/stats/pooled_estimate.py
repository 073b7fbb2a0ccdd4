"""Several runs of one side as one estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memdiag.analysis.stats.student_t import quantile
from memdiag.values.findings import Interval

# The normal quantile, as a t with enough degrees of freedom that it makes no difference.
MANY = 10_000
# How much runs of the same program differ (standard deviation, part of the value), and how many
# runs that guess is worth: it is all that is known of a single run, and gives way to what several
# runs show. Heuristic.
RUN_TO_RUN = 0.03
GUESS_WORTH_RUNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value, its standard error and the degrees of freedom of that error.

    between: the part of the error that comes from runs differing among themselves.
    """

    value: float
    error: float
    freedom: int = MANY
    between: float = 0.0

    def interval(self) -> Interval:
        """The 95% interval."""
        return Interval.around(self.value, quantile(self.freedom, 0.975) * self.error)


def from_interval(interval: Interval) -> Estimate | None:
    """The estimate behind a 95% interval; None where it is open."""
    half = (interval.high - interval.low) / 2
    if not (math.isfinite(half) and math.isfinite(interval.value)):
        return None
    return Estimate(value=interval.value, error=half / quantile(MANY, 0.975))


def pool(runs: Sequence[Estimate]) -> Estimate | None:
    """One estimate from one per run: random effects; None without a run.

    The variance between runs is the sample's, minus what the runs' own errors explain (the moment
    estimate of DerSimonian and Laird, Controlled Clinical Trials 7 (1986) 177-188, with equal
    weights), moderated by a guess of RUN_TO_RUN as if that were GUESS_WORTH_RUNS more degrees of
    freedom (Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3) but never below what was seen. So
    two runs that happen to agree do not count as certain, and one run counts for something. The
    95% interval contains the truth in 97% or more where runs differ by 3%, in 87 to 94% (two to
    six runs) where they differ by 8%.
    """
    if not runs:
        return None
    n = len(runs)
    within = sum(r.error**2 for r in runs) / n
    plain = sum(r.value for r in runs) / n
    seen = sum((r.value - plain) ** 2 for r in runs) / (n - 1) if n > 1 else 0.0
    guess = (RUN_TO_RUN * plain) ** 2
    freedom = GUESS_WORTH_RUNS + n - 1
    found = max(0.0, seen - within)
    moderated = (GUESS_WORTH_RUNS * guess + (n - 1) * found) / freedom
    between = max(moderated, found)
    weights = [1 / max(r.error**2 + between, 1e-300) for r in runs]
    total = sum(weights)
    value = sum(w * r.value for w, r in zip(weights, runs, strict=True)) / total
    return Estimate(
        value=value,
        error=math.sqrt((between + within) / n),
        freedom=freedom if between > 0 else MANY,
        between=math.sqrt(between / n),
    )


def difference(base: Estimate, candidate: Estimate) -> Estimate:
    """Candidate minus base; degrees of freedom by Welch and Satterthwaite."""
    variance = base.error**2 + candidate.error**2
    parts = sum(e.error**4 / e.freedom for e in (base, candidate))
    freedom = MANY if parts <= 0 else max(1, min(MANY, round(variance**2 / parts)))
    return Estimate(
        value=candidate.value - base.value,
        error=math.sqrt(variance),
        freedom=freedom,
        between=math.hypot(base.between, candidate.between),
    )


def ratio(base: Estimate, candidate: Estimate) -> Interval | None:
    """Candidate over base, interval by Fieller's theorem; None where base may be 0.

    Fieller, J. R. Stat. Soc. B 16 (1954) 175-185: the set of r for which candidate - r * base is
    not significantly different from 0, with the smaller of both degrees of freedom.
    """
    t2 = quantile(min(base.freedom, candidate.freedom), 0.975) ** 2
    a = base.value**2 - t2 * base.error**2
    if base.value == 0 or a <= 0:
        return None
    b = base.value * candidate.value
    c = candidate.value**2 - t2 * candidate.error**2
    half = math.sqrt(max(b * b - a * c, 0.0))
    return Interval(value=candidate.value / base.value, low=(b - half) / a, high=(b + half) / a)
