"""Known sizes that one event may keep: a copy of the model, an optimizer state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memdiag.values.findings import Finding, KnownSize, PhaseGrowth, RecordingFinding, SizeMatch
from memdiag.values.measurements import Unit

# Multiples outside this range are not copies of the thing: heuristic.
LEAST_MULTIPLE, MOST_MULTIPLE = 0.1, 100.0
# Whole multiples are met within the spread of the events, and allocators round up by about as much
# (2 MB blocks on copies of tens of MB and more): heuristic.
WHOLE_TOLERANCE = 0.02


def sizes(model_bytes: int) -> dict[KnownSize, int]:
    """Bytes of the things a training job may keep once too often.

    The optimizer keeps two values of each parameter, as Adam does.
    """
    return {
        KnownSize.MODEL: model_bytes,
        KnownSize.OPTIMIZER_STATE: 2 * model_bytes,
        KnownSize.TRAINING_STATE: 4 * model_bytes,
    }


def as_large_as(size_bytes: float, model_bytes: int, batch_bytes: int = 0) -> KnownSize | None:
    """The thing that has this size, with up to 5% of overhead; None if none has, or several have.

    model_bytes, batch_bytes: of the parameters and of a batch of data, 0 if unknown. Of a batch up
    to 5% may be missing: labels beside the inputs.
    """
    least = {**sizes(model_bytes), KnownSize.BATCH: batch_bytes * (1 - OVERHEAD)}
    alike = [
        what
        for what, size in {**sizes(model_bytes), KnownSize.BATCH: batch_bytes}.items()
        if size >= LEAST_BYTES and least[what] - 0.5 <= size_bytes <= size * (1 + OVERHEAD)
    ]
    return alike[0] if len(alike) == 1 else None


def activation_of(
    size_bytes: float, known: Sequence[tuple[int, tuple[str, ...]]]
) -> tuple[str, ...]:
    """The classes of the modules whose outputs have this size, with up to 5% of overhead; () if
    none have, or outputs of several sizes.

    known: sizes of outputs with the classes.
    """
    alike = [
        classes
        for size, classes in known
        if size >= LEAST_BYTES and size <= size_bytes <= size * (1 + OVERHEAD)
    ]
    return alike[0] if len(alike) == 1 else ()


# What a copy has beside its numbers (heuristic), and the smallest thing that a size identifies.
OVERHEAD, LEAST_BYTES = 0.05, 4096


def match(
    growth_bytes: float, known: Mapping[KnownSize, int], *, spread: float | None = None
) -> SizeMatch | None:
    """The known size that growth is a multiple of, or None where none comes near.

    A size that growth is a whole multiple of, within the events' spread, comes first, the largest
    of several (one training state rather than four models). Otherwise growth is expressed in
    models: a copy that is rounded up or that leaves a part out is not a whole number.
    """
    tolerance = WHOLE_TOLERANCE + (spread or 0.0)
    near = [
        SizeMatch(multiple=growth_bytes / size, what=what, size_bytes=size)
        for what, size in known.items()
        if LEAST_MULTIPLE <= growth_bytes / size <= MOST_MULTIPLE
    ]
    whole = [m for m in near if _is_whole(m.multiple, tolerance)]
    if whole:
        return max(whole, key=lambda m: m.size_bytes)
    return next((m for m in near if m.what is KnownSize.MODEL), None)


def _is_whole(multiple: float, tolerance: float) -> bool:
    nearest = round(multiple)
    return nearest >= 1 and abs(multiple - nearest) <= min(tolerance * multiple, 0.25)


def matched(
    phases: Sequence[PhaseGrowth], known: Mapping[KnownSize, int]
) -> tuple[PhaseGrowth, ...]:
    """The same phases with what their events' growth is a multiple of."""
    return tuple(
        replace(row, match=match(row.growth_per_event.value, known, spread=row.spread))
        for row in phases
    )


def with_model_sizes(found: RecordingFinding, parameters: int | None) -> RecordingFinding:
    """The same finding with growth per event matched with a model of this many parameters, of
    4 bytes each."""
    if parameters is None:
        return found
    known = sizes(4 * parameters)
    return replace(found, series=tuple(_matched(finding, known) for finding in found.series))


def _matched(finding: Finding, known: Mapping[KnownSize, int]) -> Finding:
    if finding.unit is not Unit.BYTES:
        return finding
    alike = finding.recurring
    if alike is not None:
        found = match(alike.growth_per_event, known, spread=alike.spread)
        alike = replace(alike, match=found)
    return replace(finding, phases=matched(finding.phases, known), recurring=alike)
