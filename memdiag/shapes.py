"""Numbers of how one series is prepared, cut into regimes and described: groups of the policy."""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.parameters import number


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """From readings to what is judged: noise, tear-down, sawteeth and excursions."""

    exact_noise: float = number(1e-6, "level", "least noise of an exact meter: printed digits")
    page_noise: float = number(
        5e-5, "level", "least noise of a paged meter", "fixtures/corpus, own_stable_mlp"
    )
    tear_down_share: float = number(
        0.15, "run", "most that is set aside after a final drop", "fixtures/corpus: up to 8 %"
    )
    drop_noises: float = number(8.0, "noise", "standard deviations of a big drop")
    drop_share: float = number(0.004, "level", "of a big drop")
    floor_cycles: int = number(5, "drops", "fewest from which readings are judged on floors")
    floor_gaps: float = number(5.0, "median gaps", "longest stretch without one")
    floor_readings: float = number(
        20.0, "readings", "a drop, from which they are judged without excursions, not on floors"
    )
    peak_cycles: int = number(8, "cycles", "fewest from which a rise of their peaks is told")
    cycles: int = number(2, "drops", "fewest that make cycles")
    brief_share: float = number(0.05, "readings", "an excursion that is brief")
    brief_total: float = number(0.3, "readings", "of all excursions that are left out, at most")
    brief_return: float = number(0.1, "height", "how near an excursion ends to where it began")
    sudden: float = number(
        0.5, "height", "of an excursion that its first jump has: no tooth's climb"
    )
    positions: int = number(
        12, "positions", "below which steps with twice as many readings give way to time"
    )
    linger: float = number(
        3.0, "readings of a step", "at the last step: of more, the rest comes after the program"
    )
    most_samples: int = number(25_000, "readings", "of more, the floors of blocks are judged")
    moving: float = number(0.8, "differences", "that are not 0, from which readings move freely")
    range_noise: float = number(1e-7, "range", "least noise of one reading")
    tear_down_samples: int = number(24, "readings", "fewest of which a tear-down is set aside")
    tear_down_drop: float = number(0.02, "level", "least drop of a tear-down")
    recovery: float = number(0.5, "drop", "that comes back, or came before: no tear-down")
    base_misfit: float = number(
        1.5, "expected scatter", "of the starts of cycles, from which they have no common climb"
    )
    spiky: float = number(0.2, "noise", "between spikes, below which they are cycles")
    regular_off: float = number(0.7, "readings", "that a fitted start of a regular cycle is off by")
    most_cycles: int = number(512, "cycles", "whose starts bound a period, evenly spread")
    teeth: int = number(3, "teeth", "fewest whose levels are compared")
    tooth_readings: int = number(3, "readings", "fewest of a tooth that has a level")
    tooth_memory: float = number(0.99, "1", "most AR(1) coefficient of the noise about teeth")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Regimes: how a series is cut."""

    bins: int = number(120, "bins", "that regimes are looked for in")
    flat_cost: float = number(3.0, "ln bins", "that a flat regime costs")
    line_cost: float = number(4.0, "ln bins", "that a sloped regime costs")
    first_cost: float = number(2.0, "ln bins", "that a lone first reading costs")
    least_bins: int = number(4, "bins", "of fewer, all are one flat regime")
    few_bins: int = number(10, "bins", "of fewer, two bins make a regime")
    regime_bins: int = number(3, "bins", "fewest of a regime")
    tail_bins: int = number(3, "bins", "fewest of a last regime")
    least_weight: float = number(0.01, "weight", "of a last regime that is counted")
    clip: float = number(3.0, "noise", "most standard deviations of a residual", "Huber 1964")
    memory: float = number(0.9, "1", "most AR(1) coefficient of the noise about regimes")
    uneven: float = number(
        3.0, "1", "times the readings of another part that make readings dense in one"
    )
    held: float = number(
        0.75, "blocks", "that hold readings: R2 = 0.9 of six is t >= 6", "Common.block_r2"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SaturationFit:
    """When a saturating curve describes a climb."""

    misfit: float = number(3.0, "1", "most residual variance over that of the noise")
    evidence: float = number(
        6.0, "BIC", "by which the curve must beat a line", "Kass and Raftery 1995: strong"
    )
    creep_errors: float = number(
        2.5, "standard errors", "of growth beside the curve, from which it goes on"
    )
    samples: int = number(5, "bins", "fewest that a curve is fitted to")
    shortest: float = number(0.01, "climb", "least time constant that is tried: a jump")
    longest: float = number(2.0, "climb", "greatest time constant that is tried: hardly bent")
    times: int = number(14, "times", "that are tried in one pass, geometrically spaced")
    passes: int = number(3, "passes", "each about the best of the one before: three digits")


@dataclass(frozen=True, slots=True, kw_only=True)
class StairSteps:
    """Steps between flat treads."""

    flat_tread: float = number(0.25, "jump", "rise of a tread: half of it is a ramp")
    least_rise: float = number(4.0, "noise", "standard deviations that a staircase rises by")
    alike: float = number(5.0, "1", "factor within which steps of one staircase differ")
    edge_bins: int = number(3, "bins", "of a sloped regime that is an edge between treads")
    jump_noises: float = number(1.5, "noise", "long-run standard deviations of a jump")
    jump_floors: float = number(3.0, "noise", "least standard deviations of a bin in a jump")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveTurns:
    """Slow waves."""

    turn: float = number(1 / 2, "range", "by which a level turns back at a high or a low")
    noises: float = number(6.0, "noise", "standard deviations of a bin that a wave is high")
