"""Every threshold and prior of the decision, in one frozen value.

Each field says its unit, its meaning and where the number comes from: a paper, a measurement of
this repository (the command is named), or "chosen". Change one with `dataclasses.replace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from memdiag.model import AxisKind, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupLength:
    """How long warm-ups go on growing: a log-logistic survival function.

    S(length) = 1 / (1 + (length / median) ** shape), with a tail so heavy that no length is
    impossible. `median` is in the axis's unit.
    """

    median: float
    shape: float

    def survival(self, length: float) -> float:
        """Probability that a warm-up's growth lasts longer than `length` (axis units)."""
        ratio = max(length, 0.0) / self.median
        return float(1.0 / (1.0 + ratio**self.shape))


# Where the medians and shapes come from: fixtures/corpus and what its threads say. Allocator
# pools and optimizer state take tens to about a hundred optimizer steps; data caches, first
# evaluations and variable lengths one or two epochs; workers that touch a Python dataset 70 s of
# straight line; a service under constant load up to four hours (siphon519); a server's cache
# sixty requests (ollama17924); a repeated operation a few cycles.
WARMUP_LENGTHS: Mapping[AxisKind, WarmupLength] = MappingProxyType(
    {
        AxisKind.STEP: WarmupLength(median=60.0, shape=1.5),
        AxisKind.EPOCH: WarmupLength(median=1.2, shape=2.0),
        AxisKind.SECONDS: WarmupLength(median=80.0, shape=0.75),
        AxisKind.REQUEST: WarmupLength(median=60.0, shape=1.0),
        AxisKind.INDEX: WarmupLength(median=4.0, shape=1.5),
    }
)

# How far a planless run is looked ahead when growth is weighed: the issue's own defaults for
# steps and time, and the same order of magnitude of work for the other axes (chosen).
HORIZONS: Mapping[AxisKind, float] = MappingProxyType(
    {
        AxisKind.STEP: 1e6,
        AxisKind.EPOCH: 1e3,
        AxisKind.SECONDS: 30 * 86400.0,
        AxisKind.REQUEST: 1e6,
        AxisKind.INDEX: 1e4,
    }
)

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
"""Meters without pages, pools or neighbours: what they read is what is held."""

NO_METERS = frozenset({Role.VIRTUAL, Role.CACHE})
"""Roles whose growth is no evidence: address space and reclaimable pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Thresholds and priors of the decision (docs/method.md explains each rule)."""

    # -- prior ------------------------------------------------------------------------------
    warmup_lengths: Mapping[AxisKind, WarmupLength] = field(default_factory=lambda: WARMUP_LENGTHS)
    """Survival of a warm-up's growth per kind of axis; see WARMUP_LENGTHS."""
    prior_leak_odds: float = 1.0
    """Odds of leak to warm-up for a series that climbs, before its length is looked at. Chosen."""
    leak_posterior: float = 0.9
    """LEAK is said above this posterior, 0..1. Chosen: one false alarm in ten *ambiguous* ramps."""
    plateau_odds: float = 12.0
    """Factor on the odds of a leak when growth began after a plateau: warm-ups in several stages
    exist, but of the corpus's bounded series fewer than one in ten shows one with a slope."""
    regular_odds: float = 4.0
    """Largest factor for growth by equal increments: about three of four warm-ups decelerate or
    move by few jumps (fixtures/corpus), and equal increments exclude those."""
    horizons: Mapping[AxisKind, float] = field(default_factory=lambda: HORIZONS)
    """Axis units over which growth is weighed where the run's plan is not known."""

    # -- preparation ------------------------------------------------------------------------
    min_samples: int = 4
    """Samples below which nothing is said. Chosen: three increments are the least that show
    whether they are alike."""
    exact_noise: float = 1e-9
    """Least noise of an exact meter, fraction of its level: floating-point printing. Chosen."""
    page_noise: float = 5e-5
    """Least noise of a paged meter (RSS, VRAM), fraction of its level: a flat idle process moves
    by a few pages (own_stable_mlp in fixtures/corpus)."""
    tear_down_share: float = 0.15
    """Largest part of a run, 0..1, that is set aside as tear-down after a final drop. Chosen; the
    corpus's longest is 8 %."""
    big_drop_noises: float = 8.0
    """A drop of more noise standard deviations than this ends a tooth or a spike. Chosen."""
    big_drop_share: float = 0.004
    """... and more than this fraction of the level. Chosen."""

    # -- segmentation -----------------------------------------------------------------------
    resolutions: tuple[int, ...] = (120, 40, 14)
    """Numbers of bins: fine ones find onsets, coarse ones turn staircases into lines. Chosen
    within 120..250 where exact dynamic programming costs milliseconds."""

    # -- trend ------------------------------------------------------------------------------
    alpha: float = 0.02
    """One-sided level of the test for growth, shared by the resolutions (Bonferroni)."""
    calm_growth: float = 0.02
    """Growth over one more run of the same length, as a fraction of the level, below which a
    regime counts as flat. Chosen."""
    flat_doubt: float = 0.1
    """Posterior weight of a growing last regime below which it is taken as flat. Chosen."""
    slowing: float = 0.6
    """Growth whose second half is slower than this part of its first half is slowing down:
    corpus, where bounded runs lie below and leaks above."""
    gate_r2: float = 0.8
    """Steadiness: R2 of a line through eight block medians of the growing regime. Chosen after
    sixty public host traces without a leak, of which the gate leaves none."""
    reclaimed_factor: float = 1.5
    """Growth is only news when it exceeds this many times what was given back before."""

    # -- materiality ------------------------------------------------------------------------
    negligible_share: float = 0.2
    """Growth over the horizon below this fraction of the level is negligible: a float per step
    (13 bytes) comes to 4 % of a small process in a million steps, 720 bytes per request on
    11 MB to sixty-five times of it. Chosen between the two."""
    horizon_runs: float = 3.0
    """The horizon is at least this many times what was recorded. Chosen."""

    # -- staircases -------------------------------------------------------------------------
    stair_waits: float = 3.0
    """Mean gaps between steps to wait since the last one before a staircase counts as ended:
    exp(-3) = 5 % for steps at random."""

    # -- how much longer --------------------------------------------------------------------
    enough_samples: int = 8
    """Samples that a series with too few is told to wait for. Chosen."""
    hopeless_runs: float = 8.0
    """More than this many times the run recorded is "not decidable in this run". Chosen."""

    # -- confidence -------------------------------------------------------------------------
    few_samples: int = 20
    """Below this many samples no confidence above `few_confidence` is printed."""
    few_confidence: float = 0.99
    """... namely this one."""


DEFAULT = Policy()
