"""What the decision on one series is made of: the case, windows, checks and arguments.

A window is a stretch in which memory grows. A check looks at a window, or at the whole series, and
argues or says nothing. All that was argued is kept, in order: the trail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memdiag.analysis.decision.regimes import View, look
from memdiag.analysis.decision.stairs import Stairs, stairs
from memdiag.analysis.stats.turning_points import Waves
from memdiag.values.verdict import CALM, Argument, Reason, Side, Verdict

if TYPE_CHECKING:
    from memdiag.analysis.policy import Policy
    from memdiag.analysis.preprocessing.prepare import Prepared
    from memdiag.analysis.stats.changepoint import Binned, Segmentation
    from memdiag.analysis.stats.slope_test import Trend
    from memdiag.values.measurements import Limit

P = TypeVar("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """What a check says: an `Argument` that does not yet know who made it, and of which window."""

    text: str
    numbers: dict[str, float] = field(default_factory=dict)
    reason: Reason
    verdict: Verdict = Verdict.INCONCLUSIVE
    need_x: float | None = None
    against: str = ""

    def argument(
        self, check: str, side: Side, *, window: str = "", is_decisive: bool = False
    ) -> Argument:
        """The argument that it is when this check says it."""
        return Argument(
            check=check,
            side=side,
            text=self.text,
            numbers=self.numbers,
            reason=self.reason,
            verdict=self.verdict,
            window=window,
            against=self.against,
            need_x=self.need_x,
            is_decisive=is_decisive,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Why a window proposes no growth."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch in which memory may grow.

    view: the series with its last regime taken to be this stretch. trend: of the growth.
    first_sample: index of its first prepared sample. span_x: axis units of undiminished growth.
    posterior: probability that growth so long and so regular is a leak, 0..1. reason: what a leak
    found here is called. need_x: axis units until it may be settled, None where unknown.
    """

    view: View
    trend: Trend
    first_sample: int
    span_x: float
    posterior: float
    reason: Reason
    text: str
    numbers: dict[str, float]
    need_x: float | None = None
    argument: Argument | None = None

    @property
    def length_x(self) -> float:
        """Axis units from the first to the last of its bins."""
        x = self.view.binned.x
        return float(x[-1] - x[self.view.tail])

    @property
    def rise(self) -> float:
        """What its trend makes of its length."""
        return self.view.trend.slope * self.length_x


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal(Generic[P]):
    """A kind of window: where growth is looked for."""

    name: str
    propose: Callable[[Case, P], Window | Absent]
    parameters: P


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[P]):
    """One argument that can be made. ask: gets the case, the window (that of the last regime where
    the whole series is meant) and the parameters; returns None where it has nothing to say."""

    name: str
    ask: Callable[[Case, Window, P], Says | None]
    parameters: P


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one series is.

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
    def is_calm(self) -> bool:
        """It does not go on growing."""
        return self.verdict in CALM


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known beside the readings.

    planned_x: where the run is planned to end. records: of torch's collectives, one of each rank
    whose memory the series tells of. limits: of the recording. merges: how often the readings of a
    run that is watched were merged by twos; None for a finished recording.
    """

    planned_x: float | None = None
    records: int = 0
    limits: Sequence[Limit] = ()
    merges: int | None = None


class Case:
    """One prepared series before the checks, and the trail of what they said."""

    def __init__(self, prepared: Prepared, policy: Policy, context: Context) -> None:
        self.prepared = prepared
        self.policy = policy
        self.context = context
        self.trail: list[Argument] = []
        self.so_far: Verdict | None = None
        self.tail: int | None = None

    @cached_property
    def view(self) -> View:
        """The series cut into regimes."""
        return look(self.prepared, self.policy)

    @cached_property
    def stairs(self) -> Stairs | None:
        """Its last unbroken run of upward steps."""
        return stairs(self.view, self.policy)

    @cached_property
    def recent_waves(self) -> Waves | None:
        """The slow waves of its last two thirds."""
        return self.view.recent_waves(self.policy)

    @cached_property
    def end(self) -> Window:
        """The last regime as a window, whether it grows or not."""
        view = self.view
        return Window(
            view=view,
            trend=view.trend,
            first_sample=view.first_sample,
            span_x=0.0,
            posterior=0.0,
            reason=Reason.UNCERTAIN_TREND,
            text="",
            numbers={},
        )

    @property
    def last_share(self) -> float:
        """Part of the run, 0..1, that the last regime covers: that of the first look, once there
        was one."""
        least = self.policy.common.fewest
        first = self.view.first_sample if self.tail is None else self.tail
        return self.prepared.share_after(first, least)

    def without_last(self, samples: int) -> Case:
        """The same case, as it was so many samples before."""
        prepared = self.prepared
        fewer = replace(prepared, x=prepared.x[:-samples], y=prepared.y[:-samples])
        return Case(fewer, self.policy, self.context)

    def propose(self, proposal: Proposal[Any]) -> Window | None:
        """The window, if this kind of window finds growth."""
        if proposal.name in self.policy.off:
            return None
        parameters = self.policy.checks.get(proposal.name, proposal.parameters)
        found = proposal.propose(self, parameters)
        if isinstance(found, Absent):
            self.trail.append(
                Argument(
                    check=proposal.name,
                    side=Side.NOT_CONSIDERED,
                    text=found.text,
                    reason=Reason.UNCERTAIN_TREND,
                    verdict=Verdict.INCONCLUSIVE,
                )
            )
            return None
        argument = Argument(
            check=proposal.name,
            side=Side.FOR_LEAK,
            text=found.text,
            numbers=found.numbers,
            reason=found.reason,
            verdict=Verdict.LEAK,
            window=proposal.name,
        )
        self.trail.append(argument)
        return replace(found, argument=argument)

    def first(self, checks: Sequence[Check[Any]], window: Window, side: Side) -> Argument | None:
        """Ask all of these checks of the window; the first that has something to say decides."""
        said = [self._ask(check, window, side) for check in checks]
        return next((argument for argument in said if argument is not None), None)

    def _ask(self, check: Check[Any], window: Window, side: Side) -> Argument | None:
        if check.name in self.policy.off:
            return None
        parameters = self.policy.checks.get(check.name, check.parameters)
        says = check.ask(self, window, parameters)
        if says is None:
            return None
        name = "" if window.argument is None else window.argument.window
        return self.argue(says.argument(check.name, side, window=name))

    def at_once(self, checks: Sequence[Check[Any]]) -> Argument | None:
        """Ask checks that need no view of the series, of which there may be too little for one."""
        for check in checks:
            if check.name in self.policy.off:
                continue
            given = self.policy.checks.get(check.name, check.parameters)
            says = check.ask(self, None, given)  # type: ignore[arg-type]
            if says is not None:
                is_calm = says.verdict is Verdict.STABLE
                side = Side.FOR_CALM if is_calm else Side.AGAINST_CALM
                return self.argue(says.argument(check.name, side))
        return None

    def argue(self, argument: Argument) -> Argument:
        """Put an argument on the trail."""
        self.trail.append(argument)
        return argument
