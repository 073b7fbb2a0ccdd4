"""The numbers that several checks of the decision share, and those of its checks, in one value.

Each number says its unit, its meaning and where it comes from: a paper, a command that measured it,
or "heuristic". What a single check needs stands beside it (memdiag/analysis/decision).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from memdiag.analysis.parameters import number
from memdiag.values.measurements import AxisKind, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupLength:
    """How long warm-ups grow: a log-logistic survival function.

    S(length) = 1 / (1 + (length / median) ** shape), with a tail so heavy that no length is
    impossible. `median` is in the axis's unit.
    """

    median: float
    shape: float
    regular_odds: float = 1.0
    """Factor on the odds of a leak for growth by equal increments: the share of warm-ups on this
    kind of axis that are *not* so regular, as odds. 1 where straight ramps are common."""
    exact_odds: float = 1.0
    """The same for an exact metric that grows by the same amount every time."""
    paced_odds: float = 1.0
    """The same for memory in use that grows at a constant pace, between all parts of its growth."""

    def survival(self, length: float) -> float:
        """Probability that a warm-up's growth lasts longer than `length` (axis units)."""
        ratio = max(length, 0.0) / self.median
        return float(1.0 / (1.0 + ratio**self.shape))

    def outlasting(self, posterior: float, factors: float = 1.0) -> float:
        """Length of growth that is a leak with this probability.

        factors: on the odds of a leak, beside its length.
        """
        ratio = posterior / (1 - posterior) / max(factors, 1e-12) - 1
        return float(self.median * max(ratio, 0.0) ** (1 / self.shape))


# What healthy trainings keep per optimizer step (loss histories, interned objects, the probe's own
# bookkeeping): malloc in use moved by at most 160 bytes and Python's blocks by at most 3.7 per step
# in the healthy recordings of fixtures/corpus (own_*_steps), leaks of 1 KB by 1460 bytes. Blocks
# moved by 6.5 where a step accumulates four backward passes and two values are kept of it.
BACKGROUND_PER_STEP: Mapping[Role, float] = MappingProxyType(
    {Role.IN_USE: 200.0, Role.OBJECTS: 8.0}
)

# Of stable starts of labelled series, the part that grew by a twentieth later: of steps one in two
# (the first steps of a long run), of a clock and of whole operations one in four. Of finished runs
# as short it is one in twenty-five, so that of steps is a little less.
LATER_GROWTH: Mapping[AxisKind, float] = MappingProxyType(
    {
        AxisKind.STEP: 0.45,
        AxisKind.TICK: 0.45,
        AxisKind.REQUEST: 0.25,
        AxisKind.SECONDS: 0.25,
        AxisKind.EPOCH: 0.25,
        AxisKind.INDEX: 0.25,
    }
)

CORPUS = "fixtures/corpus and what its threads say"

EXACT_ROLES = frozenset(
    {
        Role.DEVICE_ALLOCATED,
        Role.IN_USE,
        Role.COLLECTED_HEAP,
        Role.TENSORS,
        Role.OBJECTS,
        Role.PROCESSES,
        Role.COUNTER,
    }
)
"""Metrics without pages, pools or neighbors: they count exactly what is held."""

HELD = frozenset({Role.DEVICE_ALLOCATED, Role.IN_USE, Role.TENSORS, Role.OBJECTS})
"""Exact metrics of what a program holds at this moment: no garbage, and no counts of events."""

PAGES = frozenset({Role.RESIDENT, Role.UNIQUE, Role.PROPORTIONAL})
"""Roles that count pages of a process, whatever is in them."""

NOT_EVIDENCE_ROLES = frozenset({Role.VIRTUAL, Role.CACHE, Role.HOLES, Role.EVENTS})
"""Roles whose growth is not evidence: address space, reclaimable pages, what only ever rises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Numbers that several checks share: how many, how much of it, how far beyond noise."""

    fewest: int = number(
        3, "of anything", "fewest readings, bins, steps or events for any statement"
    )
    cycles: int = number(
        4, "of anything", "fewest of what recurs; and most times that one differs from another"
    )
    few_samples: int = number(20, "readings", "below which they are few")
    blocks: int = number(8, "blocks", "that turn a staircase into a line")
    noises: float = number(3.0, "noise or standard errors", "that are beyond chance")
    clear_noises: float = number(6.0, "noise or standard errors", "that are clearly beyond it")
    alpha: float = number(0.004, "p", "one-sided level of the tests for growth")
    block_r2: float = number(
        0.9, "1", "R2 of a line through the blocks: growth", "benchmarks/decide.py --sizes"
    )
    regular_r2: float = number(0.99, "1", "R2 of a line from which increments are equal")
    evidence_bic: float = number(
        6.0, "BIC", "by which a curve must beat a line", "Kass and Raftery 1995: strong"
    )
    positive_bic: float = number(
        2.0, "BIC", "by which one curve must beat another", "Kass and Raftery 1995: positive"
    )
    growing_weight: float = number(
        0.7, "weight", "of a growing last regime, below which it is taken as flat"
    )
    slowing: float = number(
        0.6,
        "1",
        "part of the pace of its first half below which the second half of growth slows down",
        "fixtures/corpus: bounded runs lie below, leaks above",
    )
    margin: float = number(1.5, "1", "times as much, which is surely more")
    most: float = number(0.5, "of a whole", "more than that is most of it")
    warm_share: float = number(
        1 / 3, "run", "that may be a warm-up; a plateau as long is evidence by itself"
    )
    short_share: float = number(
        0.15, "of a whole", "a short part: a plateau that may be a tread, a slope that is none"
    )
    little: float = number(0.1, "of a whole", "a small part of it")
    slight: float = number(0.05, "of a whole", "a slight part of it")
    stable_growth: float = number(0.02, "level", "growth over one more run that is still stable")
    immaterial_share: float = number(
        5e-4, "level", "movement that is called flat: a hundred pages of a gigabyte"
    )
    touched_bytes: float = number(
        1e6,
        "bytes",
        "growth of pages that may be memory touched for the first time",
        "fixtures/corpus: 0.6 MB in 1,000 steps is the most whose truth is open",
    )
    start_s: float = number(
        10.0,
        "s",
        "that a program may take to start: shortest time that shows more than its imports",
    )

    @property
    def window_samples(self) -> int:
        """Fewest readings of a coarse line: three a block."""
        return 3 * self.blocks  # exact: a block of two has no middle


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Odds of leak to warm-up, by how long and how regularly memory has grown."""

    median_steps: float = number(
        60.0, "steps or requests", "that half of all warm-ups grow for", CORPUS
    )
    median_s: float = number(
        80.0, "s", "the same on an axis of time: workers touch a dataset for 70 s", CORPUS
    )
    median_epochs: float = number(1.2, "epochs", "the same: caches, first evaluations", CORPUS)
    median_cycles: float = number(3.0, "cycles", "the same for a repeated operation", CORPUS)
    tick_s: float = number(
        20.0,
        "s",
        "between two looks of a monitor whose times are unknown: three quarters of those with times"
        " look no more often",
        "benchmarks/unseen_logs.py --intervals",
    )
    shape: float = number(1.5, "1", "of the survival function of lengths", CORPUS)
    shape_s: float = number(
        0.75, "1", "the same for time and requests: services take up to four hours", CORPUS
    )
    regular_odds: float = number(
        4.0, "odds", "factor for equal increments per epoch, request or cycle: few warm-ups do so"
    )
    regular_odds_s: float = number(
        1.5,
        "odds",
        "the same on an axis of time: of 11 warm-ups, 7 rise as regularly",
        "fixtures/corpus, bounded series that rise by a twentieth or more",
    )
    exact_odds: float = number(
        10.0, "odds", "factor for the same increment of an exact metric per request or cycle"
    )
    paced_odds: float = number(
        5.5,
        "odds",
        "factor for memory in use at a constant pace in time: pages ramp so, what is held seldom",
        "benchmarks/programs/run.py --seconds 55",
    )
    leak_posterior: float = number(0.9, "1", "posterior from which the verdict is LEAK")
    plateau_odds: float = number(
        60.0, "odds", "factor for growth that began after an endless plateau"
    )
    least_rise: float = 0.0
    """Level that warm-ups rise by (slower growth is weighed by the length that one of its pace
    has): that of `Live` while a run is watched."""

    def warmup_length(self, kind: AxisKind) -> WarmupLength:
        """Survival of a warm-up's growth on this kind of axis."""
        regular, exact = self.regular_odds, self.exact_odds
        match kind:
            case AxisKind.STEP:
                return WarmupLength(median=self.median_steps, shape=self.shape)
            case AxisKind.EPOCH:
                return WarmupLength(
                    median=self.median_epochs, shape=self.shape, regular_odds=regular
                )
            case AxisKind.SECONDS | AxisKind.TICK:
                return WarmupLength(
                    median=self.median_s / (self.tick_s if kind is AxisKind.TICK else 1),
                    shape=self.shape_s,
                    regular_odds=self.regular_odds_s,
                    paced_odds=self.paced_odds,
                )
            case AxisKind.REQUEST:
                return WarmupLength(
                    median=self.median_steps,
                    shape=self.shape_s,
                    regular_odds=regular,
                    exact_odds=exact,
                )
            case AxisKind.INDEX:
                return WarmupLength(
                    median=self.median_cycles,
                    shape=self.shape,
                    regular_odds=regular,
                    exact_odds=exact,
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Materiality:
    """Which growth matters."""

    horizon_lengths: float = number(
        20_000.0, "median warm-ups", "that a run without a plan is looked ahead: a million steps"
    )
    least_bytes: float = number(
        100e6,
        "bytes",
        "growth by then that is negligible: 100 bytes a step for a million steps",
        "fixtures/corpus, own_*_steps: healthy bookkeeping; the least labelled leak is 720 a step",
    )
    background_per_step: Mapping[Role, float] = number(
        BACKGROUND_PER_STEP,
        "bytes or blocks",
        "that exact metrics gain per step (per second without steps) in healthy jobs",
        "fixtures/corpus, own_*_steps",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """From readings to what is judged: noise, tear-down, sawteeth and excursions."""

    exact_noise: float = number(1e-6, "level", "least noise of an exact metric: printed digits")
    page_noise: float = number(
        5e-5, "level", "least noise of a paged metric", "fixtures/corpus, own_stable_mlp"
    )
    drop_share: float = number(0.004, "level", "of a big drop")
    most_samples: int = number(25_000, "readings", "of more, the floors of blocks are judged")
    most_cycles: int = number(512, "cycles", "whose starts bound a period, evenly spread")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Regimes: how a series is cut."""

    bins: int = number(120, "bins", "that regimes are looked for in")
    flat_cost: float = number(
        3.0,
        "ln bins",
        "that a flat regime costs; a sloped one costs one more, a lone reading one less",
    )
    least_weight: float = number(0.01, "weight", "of a last regime that is counted")
    memory: float = number(0.9, "1", "most AR(1) coefficient of the noise about regimes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporting:
    """Numbers that do not change a verdict: which series decides, rates, confidence, how long."""

    falling_errors: float = number(3.0, "standard errors", "of a slope that is called falling")
    owns: float = number(0.8, "growth", "of a tree that a process has to itself: of two, neither")
    alone: float = number(0.9, "growth", "of all like it that a process has to itself")
    rate_widening: float = number(
        1.25, "1", "factor on the half width of a rate's interval", "benchmarks/decide.py, rate"
    )
    enough_samples: int = number(8, "readings", "that a series with too few should wait for")
    need_margin: float = number(
        1.5, "1", "factor on what is expected to settle a series", "benchmarks/decide.py"
    )
    hopeless_runs: float = number(
        40.0, "runs or usual warm-ups", "beyond which it is not decidable in this run"
    )
    fork_bytes: float = number(
        40e6,
        "bytes",
        "of pages shared with its parent that a fork copies as it runs: 24 MB with torch's loaders",
    )
    stop_gaps: int = number(8, "gaps", "fewest of which the longest may be a stop of the clock")
    open_confidence: float = number(0.9, "1", "most confidence in an inconclusive verdict")
    borrowed_confidence: float = number(0.95, "1", "most that is borrowed from another metric")
    most_confidence: float = number(0.999, "1", "most confidence in any verdict")
    later_growth: Mapping[AxisKind, float] = number(
        LATER_GROWTH,
        "1",
        "part of the stable runs shorter than any warm-up that grow later",
        "benchmarks/decide.py, starts",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What differs while a run is watched: every ramp is met in its middle, the longest ones most
    often, and the question is asked again and again."""

    leak_posterior: float = number(
        0.97, "1", "what `Prior.leak_posterior` is there", "benchmarks/live.py"
    )
    tail: float = number(
        0.5,
        "1",
        "largest shape of the survival of lengths in steps, except for exact metrics: one warm-up "
        "in twenty-five lasts longer than 35,000",
        "benchmarks/live.py --curve",
    )
    chance: float = number(
        0.01, "p", "that readings without growth are ever taken for growing", "Ville 1939"
    )
    patience: float = number(0.1, "1", "part of the readings after which it is judged again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All numbers of the decision. checks: parameters of rules, by name, in place of their own.
    off: names of rules that are not applied (`benchmarks/ablation.py`)."""

    common: Common = Common()
    prior: Prior = Prior()
    materiality: Materiality = field(default_factory=Materiality)
    preparation: Preparation = Preparation()
    segmentation: Segments = Segments()
    live: Live = Live()
    reporting: Reporting = Reporting()
    checks: Mapping[str, Any] = field(default_factory=dict)
    off: frozenset[str] = frozenset()

    def horizon(self, kind: AxisKind) -> float:
        """How far a run without a plan is looked ahead, axis units."""
        return self.materiality.horizon_lengths * self.prior.warmup_length(kind).median


DEFAULT = Policy()


def while_watched(policy: Policy, role: Role) -> Policy:
    """The policy that a series of this role must also pass while its run continues."""
    live, prior = policy.live, policy.prior
    return replace(
        policy,
        prior=replace(
            prior,
            shape=prior.shape if role in EXACT_ROLES else min(prior.shape, live.tail),
            leak_posterior=live.leak_posterior,
            least_rise=policy.common.little,
        ),
    )
