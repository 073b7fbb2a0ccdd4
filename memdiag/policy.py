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
    regular_odds: float = 1.0
    """Factor on the odds of a leak for growth by equal increments: the share of warm-ups on this
    kind of axis that are *not* so regular, as odds. 1 where straight ramps are common."""
    exact_odds: float = 1.0
    """The same for an exact meter that grows by the very same amount every time."""

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
        AxisKind.EPOCH: WarmupLength(median=1.2, shape=2.0, regular_odds=2.0),
        AxisKind.SECONDS: WarmupLength(median=80.0, shape=0.75),
        AxisKind.REQUEST: WarmupLength(median=60.0, shape=1.0, regular_odds=4.0, exact_odds=10.0),
        AxisKind.INDEX: WarmupLength(median=4.0, shape=1.5, regular_odds=4.0, exact_odds=10.0),
        # Monitors look every one to sixty seconds: as long as of steps, which last as long. Chosen.
        AxisKind.TICK: WarmupLength(median=60.0, shape=1.5),
    }
)

# While a run is watched every ramp is met in the middle, the longest ones most often: a heavier
# tail than that of recorded warm-ups (chosen; one in twenty-five lasts longer than 35 000 steps).
# Seconds have a heavy one already.
LIVE_TAILS: Mapping[AxisKind, float] = MappingProxyType(
    {
        AxisKind.STEP: 0.5,
        AxisKind.EPOCH: 1.0,
        AxisKind.SECONDS: 0.75,
        AxisKind.REQUEST: 0.5,
        AxisKind.INDEX: 0.75,
        AxisKind.TICK: 0.5,
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
        AxisKind.TICK: 1e6,
    }
)

# What healthy trainings keep per optimizer step (loss histories, interned objects, the probe's own
# bookkeeping): malloc in use moved by at most 160 bytes and Python's blocks by at most 3.7 per step
# in the healthy recordings of fixtures/corpus (own_*_steps), leaks of 1 KB by 1460 bytes. Blocks
# moved by 6.5 where a step accumulates four backward passes and two figures are kept of it.
BACKGROUND_PER_STEP: Mapping[Role, float] = MappingProxyType(
    {Role.IN_USE: 200.0, Role.OBJECTS: 8.0}
)

# What may be kept for use again and counts as in use: Python's blocks include its free lists, of
# which that of tuples of one item takes 2,000, one of each backward pass of torch.
POOLS: Mapping[str, float] = MappingProxyType({"python_blocks": 2000.0})

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

PAGES = frozenset({Role.RESIDENT, Role.UNIQUE, Role.PROPORTIONAL})
"""Roles that count pages of a process, whatever is in them."""

NO_METERS = frozenset({Role.VIRTUAL, Role.CACHE, Role.HOLES, Role.EVENTS})
"""Roles whose growth is no evidence: address space, reclaimable pages, what only ever rises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Thresholds and priors of the decision (docs/method.md explains each rule)."""

    # -- prior ------------------------------------------------------------------------------
    warmup_lengths: Mapping[AxisKind, WarmupLength] = field(default_factory=lambda: WARMUP_LENGTHS)
    """Survival of a warm-up's growth per kind of axis; see WARMUP_LENGTHS."""
    prior_leak_odds: float = 1.0
    """Odds of leak to warm-up for a series that climbs, before its length is looked at. Chosen."""
    leak_posterior: float = 0.9
    """LEAK is said above this posterior, 0..1. Chosen: one false alarm in ten *ambiguous* ramps
    at worst."""
    plateau_odds: float = 60.0
    """Factor on the odds of a leak when growth began after an endless plateau; after one of
    length P it is 1 + plateau_odds * (1 - S(P)), as warm-ups in several stages pause. Chosen so
    that a leak which sets in after fifteen steps is told once it has gone on for thirty."""
    idle_share: float = 0.35
    """A plateau with which the run begins, shorter than this part of the growth after it, is a
    program that has not begun yet: imports, a card that idles. Chosen."""
    slowed_odds: float = 0.5
    """Factor on the odds when growth was more than twice as fast before: the slow end of a
    warm-up looks like that. Chosen."""
    round_share: float = 0.5
    """Part of all warm-ups, 0..1, that ends with passes over the data or cycles of the phases
    (caches, touched data sets, first evaluations and checkpoints), not with steps (pools, optimizer
    state). Chosen: fixtures/corpus has as many kinds of the one as of the other. It bounds the
    factor on the odds by 2, so that no ramp of 138 steps is called a leak for its rounds alone."""
    least_round: float = 1 / 6
    """Rounds shorter than this part of the median of warm-up lengths on the axis (10 steps, 13 s)
    go with the steps and tell nothing that they do not. Chosen."""
    least_cycles: int = 2
    """Whole cycles of every phase, or one pass, that must have been seen within the growth."""
    even_rounds: float = 0.5
    """Spread of a phase's cycles over their mean up to which it comes round; tags of single steps
    that sparse samples meet by chance have 1. Chosen."""
    regular_r2: float = 0.99
    """R2 of a straight line from which increments count as equal. Chosen; of the corpus's leaks
    most are above, of its bounded runs that still look rising few."""
    even_r2: float = 0.97
    """... and from which they count half (the square root of the factor). Chosen, likewise."""
    exact_spread: float = 1e-3
    """Range of increments over their mean below which they are the same. Chosen."""
    in_use_odds: float = 1.5
    """Factor on the odds for equal increments per step of memory in use, and of objects: pages,
    pools and holes, which fill for hundreds of steps, are no part of it. So a leak is told after
    some 180 steps in place of 260. Chosen."""
    exact_increments: int = 8
    """Fewest increments that are called the same every time. Chosen."""
    collected_growth: float = 2.5
    """A heap that grew this many times over without a collection is past what collectors wait
    for: Go doubles (GOGC=100), V8 lets it grow by at most four."""
    collections: int = 3
    """Big drops after which a heap counts as collected. Chosen."""
    tail_samples: int = 4
    """A regime of fewer samples is no evidence of a leak: three increments at least. Chosen."""
    horizons: Mapping[AxisKind, float] = field(default_factory=lambda: HORIZONS)
    """Axis units over which growth is weighed where the run's plan is not known."""

    # -- preparation ------------------------------------------------------------------------
    min_samples: int = 4
    """Samples below which nothing is said. Chosen: three increments are the least that show
    whether they are alike."""
    exact_noise: float = 1e-6
    """Least noise of an exact meter, fraction of its level: printed digits. Chosen."""
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

    floor_cycles: int = 5
    """Fewest big drops from which readings are judged on their floors. Chosen."""
    floor_gaps: float = 5.0
    """... and the longest stretch without one, in median gaps: rarer ones are events. Chosen."""
    floor_readings: float = 20.0
    """Readings a drop from which they are judged without excursions, not on floors. Chosen."""
    brief_share: float = 0.05
    """An excursion of this part of the readings at most, or a single one, is brief. Chosen."""
    brief_total: float = 0.3
    """... and left out if all of them are no more than this part. Chosen."""
    brief_return: float = 0.1
    """... if it ends no further from where it began than this part of its height. Chosen."""
    blur_factor: float = 1.5
    """Growth of floors must exceed what a sample may miss of a cycle by this factor. Chosen."""
    blur_errors: float = 3.0
    """... and still exceed it when so many standard errors are taken off. Chosen."""

    # -- segmentation -----------------------------------------------------------------------
    resolution: int = 120
    """Number of bins that regimes are looked for in. Chosen: exact dynamic programming over 120
    costs a millisecond or two."""
    blocks: int = 8
    """Coarse blocks that turn a staircase into a line. Chosen."""
    block_r2: float = 0.9
    """R2 of a line through the blocks from which growth is certain whatever the noise: t >= 7.3
    at 6 degrees of freedom, above the 5.6 that hold for every AR(1) noise at 95 %
    (`benchmarks/decide.py --sizes`)."""
    window_samples: int = 24
    """Fewest samples of a coarse line: three a block. Chosen."""

    # -- trend ------------------------------------------------------------------------------
    alpha: float = 0.004
    """One-sided level of the test for growth. Chosen: a run without growth then has to pass all
    other rules as well."""
    calm_growth: float = 0.02
    """Growth over one more run of the same length, as a fraction of the level, below which a
    regime counts as flat. Chosen."""
    faint_share: float = 0.025
    """A last regime that rises by less than this part of the climb before it ..."""
    faint_errors: float = 10.0
    """... leaks only if its slope is so many standard errors: the end of a climb, its noise and the
    choice of where it ends make smaller slopes. From 4800 bounded runs: 6 of 10 false leaks were
    such, at 4 to 9.5 errors, and 3 of 880 leaks that were found."""
    at_limit_share: float = 0.02
    """A plateau this near a limit, as a part of it, is the limit's and not the program's. Chosen:
    what the kernel and the libraries keep for themselves beside it."""
    peak_cycles: int = 8
    """Fewest cycles on a level floor from which a rise of their peaks is told. Chosen."""
    converging_share: float = 0.05
    """Growth that saturates has an end; if what is left of it is below this fraction of the
    level, the warm-up is as good as over. Chosen."""
    creep_errors: float = 2.5
    """Growth beside a saturating curve above this many standard errors goes on. Chosen."""
    converging_evidence: float = 6.0
    """Difference of BIC by which a saturating curve must beat a line (Kass and Raftery, JASA 90,
    1995: "strong")."""
    flat_doubt: float = 0.5
    """Weight of a growing last regime against a flat one below which it is taken as flat. With
    one growing series in ten (chosen prior) this leaves a posterior of growth below 10 %."""
    slowing: float = 0.6
    """Growth whose second half is slower than this part of its first half is slowing down:
    corpus, where bounded runs lie below and leaks above."""
    immaterial_share: float = 5e-4
    """Unclear movements of less than this fraction of the level are called flat. Chosen: a
    hundred pages of a gigabyte."""
    plateau_climbs: float = 0.8
    """A plateau at the very end of a run (see `short_share`) lasts at least this many times as
    long as the upper half of the climb before it took; a shorter one may be a pause. Chosen."""
    hint: float = 0.2
    """p-value of growth of the cycles' means from which flat floors are no proof. Chosen."""
    kept_share: float = 0.1
    """Floors and ceilings of cycles that rise by less than this part of a cycle stay. Chosen."""
    cycles: int = 2
    """Fewest big drops that make readings cycles. Chosen."""
    wave_samples: int = 60
    """Fewest readings in which growth is judged on the turning points of slow waves. Chosen."""
    wave_falls: int = 4
    """... and fewest falls from a high to a low. Chosen: eight turning points or so make a line."""
    teeth_errors: float = 4.0
    """Standard errors by which the levels of three or four teeth must rise so that they are not
    called bounded. Of 36 bounded ones of benchmarks/_series.py the highest was 3.9, a leak's 31."""
    gate_r2: float = 0.8
    """Steadiness: R2 of a line through eight block medians of the growing regime. Chosen after
    sixty public host traces without a leak, of which the gate leaves none."""
    reclaimed_factor: float = 1.5
    """Growth is only news when it exceeds this many times what was given back before."""

    grown_quanta: float = 3.0
    """Growth of fewer allocator steps than this is no evidence of a leak. Chosen."""
    flat_quanta: float = 1.0
    """... and a regime that rose by fewer than this is flat. Chosen."""

    # -- rate ------------------------------------------------------------------------------
    rate_widening: float = 1.25
    """Factor on the half width of a rate's 95 % interval, for the start of the regime having been
    picked from the same data. Measured: benchmarks/decide.py, row "rate"."""

    # -- materiality ------------------------------------------------------------------------
    negligible_share: float = 0.02
    """Growth over the horizon below this fraction of the level is negligible. Chosen."""
    negligible_bytes: float = 100e6
    """... and growth of bytes below this, unless it is `negligible_times` the level: 100 bytes a
    step for a million steps. Bookkeeping of a healthy training grows by up to that (fixtures/
    corpus, own_*_steps), a list of losses by 13, the smallest labelled leak by 720 a request."""
    negligible_times: float = 0.5
    """See `negligible_bytes`. Chosen."""
    collectives_bytes: float = 4e6
    """What may be kept of the last 2,000 collectives in a rank of a distributed job (torch's flight
    recorder, `TORCH_FR_BUFFER_SIZE`): 1.6 MB were measured with gloo and one collective a step,
    370 bytes each and a list that doubles; none with a size of 0. NCCL's entries have stack traces
    as well. Chosen: more than twice of what was measured."""
    background_per_step: Mapping[Role, float] = field(default_factory=lambda: BACKGROUND_PER_STEP)
    """Growth per optimizer step that an exact meter shows in healthy jobs: BACKGROUND_PER_STEP."""
    pools: Mapping[str, float] = field(default_factory=lambda: POOLS)
    """Growth of a metric that a pool of the interpreter may be, which fills: POOLS."""
    touched_bytes: float = 1e6
    """Growth of pages by less than this is memory that a process touches for the first time as well
    as a leak. Chosen: the largest in fixtures/corpus whose truth is open is 0.6 MB in 1,000 steps,
    and workers of a healthy DataLoader go up by 60 KB in a straight line over 300."""
    touched_share: float = 5e-3
    """... and less than this fraction of the level, for small processes, ..."""
    touched_least_bytes: float = 2.0**18
    """... or less than this: Python's allocator takes as much at a time at least. Chosen."""
    horizon_runs: float = 3.0
    """The horizon is at least this many times what was recorded. Chosen."""

    # -- staircases -------------------------------------------------------------------------
    stair_waits: float = 3.0
    """Mean gaps between steps to wait since the last one before a staircase counts as ended:
    exp(-3) = 5 % for steps at random."""
    stair_waits_regular: float = 1.5
    """The same, in longest gaps, for a staircase of even gaps. Chosen."""
    stair_pause: float = 2.0
    """Median gaps that a staircase which goes on waits at most. Chosen."""
    stair_equal: float = 1.25
    """Two steps whose heights differ by less than this factor are of one kind. Chosen."""
    stair_r2: float = 0.95
    """R2 of the line through the steps of a staircase that goes on for ever. Chosen."""
    stair_steps: int = 4
    """Fewest upward steps that show a staircase. Chosen."""
    short_share: float = 0.2
    """... and one shorter than this is taken for a tread of the line. Chosen."""
    settled_share: float = 0.35
    """A plateau shorter than this part of the run does not overrule a line through the whole run
    at coarser resolution. Chosen: correlated noise of 100 samples shows false plateaus of 25 %."""

    # -- how much longer --------------------------------------------------------------------
    enough_samples: int = 8
    """Samples that a series with too few is told to wait for. Chosen."""
    need_margin: float = 1.5
    """Factor on what is expected to settle a series, so that four in five are settled by then.
    Measured: benchmarks/decide.py, row "how much longer"."""
    hopeless_runs: float = 40.0
    """More than this many times the run recorded is "not decidable in this run". Chosen."""

    # -- while a run is watched ----------------------------------------------------------------
    live_posterior: float = 0.97
    """Posterior from which a run that goes on is called a LEAK, 0..1. Chosen with `live_tails`:
    growth from the start must be so slow that a warm-up would take 60 000 steps, or have gone on
    for twice as long. Measured: benchmarks/live.py."""
    live_tails: Mapping[AxisKind, float] = field(default_factory=lambda: LIVE_TAILS)
    """Largest shape of the lengths' survival function (`WarmupLength`) there: LIVE_TAILS."""
    live_rise: float = 0.1
    """Part of the level by which nine warm-ups in ten rise at least: fixtures/corpus, series
    labelled warmup that have a first reading before they rise."""
    live_lasted: float = 0.5
    """Part of the time that growth of a paged meter from its start has gone on which counts, 0..1.
    Chosen: ramps of 60 000 steps are slow to end as they were slow to come."""
    live_even_odds: float = 3.5
    """Factor on the odds for an exact meter that grows along a straight line (`regular_r2`).
    Chosen: such growth is called a leak after 200 to 300 steps, as in a finished recording."""
    live_plateau_odds: float = 10.0
    """What `plateau_odds` is there. Chosen below it, as warm-ups pause for hundreds of steps
    (own_warm_replay_buffer_steps in fixtures/corpus)."""
    live_slowed: float = 2.0
    """Growth that was this many times as fast before has slowed down. Chosen."""
    live_settled: float = 0.25
    """... and must have gone on for this part of the time before. Chosen."""
    live_creep_errors: float = 4.0
    """... and where a saturating curve fits, exceed it by so many standard errors. Chosen above
    `creep_errors`, as it is asked dozens of times."""

    live_chance: float = 0.01
    """Probability, 0..1, that floors without growth are ever taken for growing, however often
    they are looked at (Ville 1939). Chosen."""
    live_patience: float = 0.1
    """The rules are asked again after this part of the samples since growth was evident, or
    that there were before, for a sawtooth: fifty times from 20 samples to 2000. Chosen."""
    live_times: int = 2
    """Times running that the rules must say LEAK, on more readings each time. Chosen."""
    live_tail_bins: int = 8
    """Fewest coarse floors that growth is seen in. Chosen."""
    live_alpha: float = 1e-4
    """p-value of growth that is looked at fifty times, where the e-process says little: from tooth
    to tooth, in correlated noise, after a step. Chosen: half a percent in all."""

    # -- confidence -------------------------------------------------------------------------
    open_confidence: float = 0.9
    """Most confidence in "it cannot be told": no one can be surer of that. Chosen."""
    least_span_s: float = 2.0
    """In so short a time, and with few samples, only the start of a program was seen: its
    interpreter and imports. Chosen."""
    few_samples: int = 20
    """Below this many samples no confidence above `few_confidence` is printed."""
    most_confidence: float = 0.999
    """No verdict is surer than this. Chosen."""
    few_confidence: float = 0.99
    """... namely this one."""


DEFAULT = Policy()
