"""The parts of the decision on one series: the case, its windows, its rules and their arguments.

A window is a stretch in which memory grows. A rule looks for such a window, or checks one, and
makes an argument or none. All arguments are kept in order: the trail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memdiag.analysis.decision.regimes import RegimeFit, fit_regimes
from memdiag.analysis.decision.staircase import Staircase, staircase
from memdiag.analysis.stats.turning_points import Waves
from memdiag.values.verdict import STABLE_OR_WARMUP, Argument, Reason, Side, Verdict

if TYPE_CHECKING:
    from memdiag.analysis.policy import Policy
    from memdiag.analysis.preprocessing.prepare import Prepared
    from memdiag.analysis.stats.changepoint import Binned, Segmentation
    from memdiag.analysis.stats.slope_test import Trend
    from memdiag.values.measurements import Limit


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rule of the decision, made from the function that asks it.

    A rule that looks for growth gets the case, and returns a `Window`, or as text why there is no
    growth. A check gets the case and a window (that of the last regime where the whole series is
    meant), and returns an `Argument`, or None where it has none. parameters: a dataclass of the
    numbers that no other rule uses, passed to the function as its last argument; None where all of
    its numbers are shared ones.
    """

    ask: Callable[..., Any]
    parameters: object = None

    @property
    def name(self) -> str:
        """The name of the function: what reports, `--explain` and `Policy.off` call the rule."""
        return self.ask.__name__

    def given(self, policy: Policy) -> Any:
        """Its own numbers, or those that the policy has in their place."""
        return policy.checks.get(self.name, self.parameters)

    def apply(self, policy: Policy, *about: object) -> Any:
        """The function's result; None if the policy switches the rule off."""
        if self.name in policy.off:
            return None
        own = () if self.parameters is None else (self.given(policy),)
        return self.ask(*about, *own)


def rule(parameters: object) -> Callable[[Callable[..., Any]], Rule]:
    """Decorator for a rule with numbers of its own."""
    return lambda ask: Rule(ask, parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch in which memory may grow.

    fit: the series with its last regime taken to be this stretch. trend: of the growth.
    first_sample: index of its first prepared sample. span_x: axis units of undiminished growth.
    posterior: probability that growth this long and this regular is a leak, 0..1. argument: why it
    is a leak, with the reason that a leak in this window gets. need_x: axis units until it may be
    settled, None where unknown.
    """

    fit: RegimeFit
    trend: Trend
    first_sample: int
    argument: Argument
    span_x: float = 0.0
    posterior: float = 0.0
    need_x: float | None = None

    @property
    def length_x(self) -> float:
        """Axis units from the first to the last of its bins."""
        x = self.fit.binned.x
        return float(x[-1] - x[self.fit.tail])

    @property
    def rise(self) -> float:
        """Growth over its length at the slope of its trend."""
        return self.fit.trend.slope * self.length_x


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The verdict on one series.

    posterior: probability of a leak given growth, 0..1. tail: first index (into the prepared
    samples) of the last regime. span_x: axis units of undiminished growth. trend: slope of the last
    regime. binned, segmentation: of the resolution that decided. need_x: further axis units until
    settled, None where unknown. by: the argument that decided. trail: all arguments, in order.
    """

    verdict: Verdict
    reason: Reason
    posterior: float = 0.0
    tail: int = 0
    span_x: float = 0.0
    trend: Trend | None = None
    binned: Binned | None = None
    segmentation: Segmentation | None = None
    need_x: float | None = None
    by: Argument | None = None
    trail: tuple[Argument, ...] = ()

    @property
    def is_stable(self) -> bool:
        """Return True if it does not keep growing: STABLE or WARMUP."""
        return self.verdict in STABLE_OR_WARMUP


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known beside the readings.

    planned_x: where the run is planned to end. records: how many of torch's flight recorders (one
    of each rank) the series' memory includes. limits: of the recording. merges: of a run that is
    watched: how often its readings were merged in pairs; None for a finished recording.
    unread_share: part of the series' cells, 0..1, that could not be read. leaks_if_free: the
    series may be one of free memory, which would be a leak.
    """

    planned_x: float | None = None
    records: int = 0
    limits: Sequence[Limit] = ()
    merges: int | None = None
    unread_share: float = 0.0
    leaks_if_free: bool = False


class Case:
    """One prepared series before the rules, and the trail of their arguments."""

    def __init__(self, prepared: Prepared, policy: Policy, context: Context) -> None:
        self.prepared = prepared
        self.policy = policy
        self.context = context
        self.trail: list[Argument] = []
        self.so_far: Verdict | None = None
        self.tail: int | None = None
        self.coarse: Decision | None = None

    @cached_property
    def fit(self) -> RegimeFit:
        """The series cut into regimes."""
        return fit_regimes(self.prepared, self.policy)

    @cached_property
    def staircase(self) -> Staircase | None:
        """Its last unbroken run of upward steps."""
        return staircase(self.fit, self.policy)

    @cached_property
    def recent_waves(self) -> Waves | None:
        """The slow waves of the run without its first third, which may be a warm-up."""
        common = self.policy.common
        first = int(common.warm_share * len(self.fit.binned.y))
        return self.fit.waves(self.policy, common.most, first)

    def all_waves(self, turn: float) -> Waves | None:
        """The slow waves of the whole run, where there are enough of them.

        turn: part of the range that makes one.
        """
        found = None if self.prepared.floors else self.fit.waves(self.policy, turn)
        return None if found is None or found.falls < self.policy.common.cycles else found

    @cached_property
    def end(self) -> Window:
        """The last regime as a window, whether it grows or not."""
        return Window(
            fit=self.fit,
            trend=self.fit.trend,
            first_sample=self.fit.first_sample,
            argument=Argument(text="", reason=Reason.UNCERTAIN_TREND),
        )

    @property
    def last_share(self) -> float:
        """Part of the run, 0..1, that the last regime covers: that of the first look, once there
        was one."""
        least = self.policy.common.fewest
        first = self.fit.first_sample if self.tail is None else self.tail
        return self.prepared.share_after(first, least)

    def without_last(self, samples: int) -> Case:
        """The same case as it was this many samples before."""
        prepared = self.prepared
        fewer = replace(prepared, x=prepared.x[:-samples], y=prepared.y[:-samples])
        return Case(fewer, self.policy, self.context)

    def propose(self, proposal: Rule) -> Window | None:
        """The window, if this kind of window finds growth."""
        found: Window | str | None = proposal.apply(self.policy, self)
        if isinstance(found, Window):
            named = replace(
                found.argument, check=proposal.name, side=Side.FOR_LEAK, window=proposal.name
            )
            return replace(found, argument=self.argue(named))
        if found is not None:
            self.argue(Argument(check=proposal.name, text=found, reason=Reason.UNCERTAIN_TREND))
        return None

    def first(self, checks: Sequence[Rule], window: Window | None, side: Side) -> Argument | None:
        """Ask all of these checks about the window; the first argument decides."""
        said = [self._ask(check, window, side) for check in checks]
        return next((argument for argument in said if argument is not None), None)

    def _ask(self, check: Rule, window: Window | None, side: Side) -> Argument | None:
        said: Argument | None = check.apply(self.policy, self, window)
        if said is None:
            return None
        name = "" if window is None else window.argument.window
        return self.argue(replace(said, check=check.name, side=side, window=name))

    def argue(self, argument: Argument) -> Argument:
        """Put an argument on the trail."""
        self.trail.append(argument)
        return argument
