"""Attribution of growth to phases: which phase, how much per event, and whether it is chance.

Two methods. A fit of the whole course (`event_regression`) shows which phases growth keeps step
with, through noise, quanta and transient memory. Attributing kept growth interval by interval
(`interval_growth`) shows which events grew and how evenly, and decides where a series is too short
for the fit; then a phase's share is compared with what chance would give if growth were independent
of the tags.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.analysis.attribution.event_design import Group
from memdiag.analysis.attribution.event_regression import PhaseEffect, Regression, regress
from memdiag.analysis.attribution.interval_growth import (
    Kept,
    Stretch,
    charged,
    evenly,
    event_growth,
    kept_growth,
    noise_of,
)
from memdiag.analysis.attribution.transient_phase_memory import without_transient
from memdiag.analysis.stats.rotation_test import cycles_between, rotated
from memdiag.analysis.stats.student_t import quantile
from memdiag.values.findings import Interval, PhaseGrowth, RecurringGrowth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats, Phases

    Mask = NDArray[np.bool_]

# An event grew if it kept this fraction of the phase's mean growth per event: heuristic, enough to
# separate "one model copy" from "nothing".
GROWING_FRACTION = 0.25
# Events that grow by more noise standard deviations than this show one by one: heuristic.
CLEAR_NOISE = 3.0
LEAST_EVENTS = 2  # of the phase that comes most often: where none recurs, tags do not help
# Rows of a table that a person still reads; of more phases, those that were charged with the most
# are looked at, as the work grows faster than their number.
MOST_PHASES = 12
# Events of several phases add the same if they differ by no more than this, and are at least this
# many: heuristic, far above rounding to pages and blocks, far below chance.
RECURRING_SPREAD, RECURRING_EVENTS = 0.1, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """The rows of the phases, largest share first, and growth that all of them share."""

    phases: tuple[PhaseGrowth, ...] = ()
    recurring: RecurringGrowth | None = None


def attribute(
    x: Floats, y: Floats, phases: Phases, *, noise: float | None = None, seed: int = 0
) -> Attributed:
    """Charge the growth of a regime to the phases it spans.

    x, y: the growing regime, shape (n,), x not decreasing, y finite and rising when memory is used.
    phases: tags of the same samples. Samples before the first and after the last tag belong to no
        known phase and are left out; untagged ones in between are "outside every phase" and count.
    noise: standard deviation of a reading, in y's unit; estimated if not given.
    seed: of the random rotations used where there are too many to try them all.
    Nothing where nothing is tagged, nothing grows or no phase comes a second time.

    Shares are parts of the kept growth within the tagged stretch. A parent of nested phases
    (`train` of `train/forward`) holds its children's growth, and is left out where one blamed child
    holds most of it, so that the deepest phase is named.
    """
    _check(x, y, phases)
    tagged = np.flatnonzero(phases.codes >= 0)
    if len(tagged) == 0 or len(y) < 3:
        return Attributed()
    settled, even, plain = without_transient(y, phases.codes)
    noise = noise_of(settled[even]) if noise is None else noise
    kept = kept_growth(y, plain, noise)
    first, last = max(int(tagged[0]), 1), int(tagged[-1])
    if last < first or kept.growth.sum() <= 0:
        return Attributed()
    groups = list(_groups(phases))
    tests = len(groups)
    stretch = Stretch.of(x, phases.codes, kept, noise, first, last)
    if tests > MOST_PHASES:
        groups = sorted(groups, key=lambda group: -_charge(stretch, group))[:MOST_PHASES]
    found = [_grown(stretch, group, tests, seed) for group in groups]
    rows = [row for row in found if row is not None]
    if max((row.events for row in rows), default=0) < LEAST_EVENTS:
        return Attributed()
    clear = _clear(rows, kept, noise)
    part = slice(first - 1, last + 1)
    inside = [Group(name=group.name, member=group.member[part]) for group in groups]
    fitted = regress(x[part], y[part], even[part], inside, tests=tests, seed=seed)
    if fitted is not None:
        rows = _weighed(rows, fitted, clear)
    elif not clear:
        rows = [replace(row, p_value=1.0) for row in rows]
    rows = [row for row in rows if not _explained_by_child(row, rows)]
    shown = tuple(sorted(rows, key=lambda row: (-row.share, row.phase))[:MOST_PHASES])
    blamed = any(row.is_attributed for row in shown)
    return Attributed(
        phases=shown, recurring=_recurring(stretch, phases) if clear and not blamed else None
    )


def _recurring(stretch: Stretch, phases: Phases) -> RecurringGrowth | None:
    """The amount that every event of several phases adds alike; None where they do not."""
    tags = phases.codes[stretch.ends if stretch.at_end else stretch.begins]
    codes = [int(code) for code in np.unique(tags) if code >= 0]
    grown = [_events(stretch, tags == code) for code in codes]
    if len(codes) < 2 or min(len(growth) for growth in grown) < 2:
        return None
    growth = np.concatenate(grown)
    spread = float(growth.std(ddof=1) / growth.mean()) if growth.mean() > 0 else math.inf
    if len(growth) < RECURRING_EVENTS or spread > RECURRING_SPREAD:
        return None
    return RecurringGrowth(
        phases=tuple(phases.names[code] for code in codes),
        events=len(growth),
        growth_per_event=float(growth.mean()),
        least=float(growth.min()),
        most=float(growth.max()),
        spread=spread,
    )


def _events(stretch: Stretch, inside: Mask) -> Floats:
    return event_growth(charged(stretch, inside), inside, stretch.ends_open)


def _clear(rows: Sequence[PhaseGrowth], kept: Kept, noise: float) -> bool:
    """Return True if the growth of one event would stand out from the noise by itself."""
    events = max((row.events for row in rows), default=1)
    return float(kept.growth.sum()) / events > CLEAR_NOISE * noise


def _weighed(rows: Sequence[PhaseGrowth], fitted: Regression, clear: bool) -> list[PhaseGrowth]:
    """Let the fit of the whole course decide; chance has to say the same of both readings."""
    found = {effect.name: effect for effect in fitted.found}
    weighed = []
    for row in rows:
        if row.phase in found:
            weighed.append(_with_effect(row, found[row.phase], clear))
        elif not any(_nested(row.phase, name) or _nested(name, row.phase) for name in found):
            p_value = max(row.p_value, fitted.others[row.phase], 1.0 if found else 0.0)
            weighed.append(replace(row, p_value=p_value))
    return weighed


def _nested(inner: str, outer: str) -> bool:
    return inner.startswith(outer + "/")


def _with_effect(row: PhaseGrowth, effect: PhaseEffect, clear: bool) -> PhaseGrowth:
    """The row of a phase that growth keeps step with. Where its events do not show one by one,
    they are taken to grow alike."""
    seen = clear and row.is_attributed
    growing = row.growing_events if seen else row.events
    value, half = (size * row.events / growing for size in (effect.per_event, effect.half_width))
    return replace(
        row,
        growing_events=growing,
        growth_per_event=Interval.around(value, half),
        spread=row.spread if seen else None,
        share=min(1.0, effect.share),
        p_value=effect.p_value,
        times_elsewhere=None,
    )


def _check(x: Floats, y: Floats, phases: Phases) -> None:
    if not len(x) == len(y) == len(phases.codes):
        raise ValueError("x, y and phase codes must have the same length")


def _groups(phases: Phases) -> Iterator[Group]:
    """Every tagged phase with what is nested in it, parents that have no tag of their own too."""
    used = [phases.names[code] for code in np.unique(phases.codes) if code >= 0]
    prefixes = {"/".join(name.split("/")[:depth]) for name in used for depth in range(1, 9)}
    for name in sorted({*used, *prefixes}):
        inside = [
            code
            for code, other in enumerate(phases.names)
            if other == name or other.startswith(name + "/")
        ]
        yield Group(name=name, member=np.isin(phases.codes, inside))


def _charge(stretch: Stretch, group: Group) -> float:
    """Growth within the phase's intervals."""
    ends = stretch.ends if stretch.at_end else stretch.begins
    return float(stretch.growth[group.member[ends]].sum())


def _grown(stretch: Stretch, group: Group, tests: int, seed: int) -> PhaseGrowth | None:
    """What one phase kept; None where it has no interval in the stretch."""
    member_end, member_begin = group.member[stretch.ends], group.member[stretch.begins]
    total = float(stretch.growth.sum())
    if total <= 0 or not member_end.any() or not member_begin.any():
        return None
    inside = member_end if stretch.at_end else member_begin
    per_event = _events(stretch, inside)
    share = min(1.0, float(per_event.sum()) / total)
    growing = per_event[per_event > GROWING_FRACTION * per_event.mean()]
    growth, *readings = evenly(stretch, member_end, member_begin)
    p_value = rotated(growth, readings, cycles_between(readings[0] > 0.5), seed=seed)
    return PhaseGrowth(
        phase=group.name,
        events=len(per_event),
        growing_events=len(growing),
        growth_per_event=_mean_interval(growing),
        spread=_spread(growing),
        share=share,
        p_value=min(1.0, p_value * tests),
        times_elsewhere=_times_elsewhere(stretch, inside, per_event),
    )


def _mean_interval(growth: Floats) -> Interval:
    """Mean with its 95 % Student interval; of one event the value alone."""
    if len(growth) == 0:
        return Interval.around(0.0)
    mean = float(growth.mean())
    if len(growth) == 1:
        return Interval.around(mean)
    error = float(growth.std(ddof=1) / np.sqrt(len(growth)))
    return Interval.around(mean, quantile(len(growth) - 1, 0.975) * error)


def _spread(growth: Floats) -> float | None:
    if len(growth) < 2:
        return None
    return float(growth.std(ddof=1) / growth.mean())


def _times_elsewhere(stretch: Stretch, inside: Mask, per_event: Floats) -> float | None:
    """Growth per width inside over growth per width outside; None where all is inside.

    Outside, growth up to the noise of its ends may have gone unseen, so that much is allowed for.
    """
    part = float(stretch.weights[inside].sum() / stretch.weights.sum())
    if part >= 1.0:
        return None
    grown = float(per_event.sum())
    unseen = stretch.noise * math.sqrt(2 * len(per_event))
    elsewhere = max(float(stretch.growth.sum()) - grown, 0.0) + unseen
    return None if elsewhere <= 0 else grown / part / (elsewhere / (1.0 - part))


def _explained_by_child(row: PhaseGrowth, rows: Sequence[PhaseGrowth]) -> bool:
    return any(
        other.is_attributed
        and other.phase.startswith(row.phase + "/")
        and other.share >= row.share / 2
        for other in rows
    )
