"""Known sizes that one event may keep: a copy of the model, an optimizer state, a batch."""

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


def sizes(
    parameters: int,
    *,
    parameter_bytes: int = 4,
    optimizer_values: int = 2,
    optimizer_bytes: int = 4,
    batch_bytes: int | None = None,
) -> dict[KnownSize, int]:
    """Bytes of the things a training job may keep once too often.

    parameters: number of the model's parameters. parameter_bytes: of one (4: fp32, 2: bf16).
    optimizer_values: values that the optimizer keeps per parameter (Adam 2, momentum 1, SGD 0), of
        `optimizer_bytes` each. batch_bytes: one batch, if known.
    """
    if parameters <= 0 or parameter_bytes <= 0:
        raise ValueError("a model has parameters, and they have a size")
    model = parameters * parameter_bytes
    state = parameters * optimizer_values * optimizer_bytes
    known = {KnownSize.MODEL: model}
    if state > 0:
        known[KnownSize.OPTIMIZER_STATE] = state
        known[KnownSize.TRAINING_STATE] = 2 * model + state
    if batch_bytes is not None and batch_bytes > 0:
        known[KnownSize.BATCH] = batch_bytes
    return known


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
    """The same finding with growth per event matched with a model of this many parameters."""
    if parameters is None:
        return found
    known = sizes(parameters)
    return replace(found, series=tuple(_matched(finding, known) for finding in found.series))


def _matched(finding: Finding, known: Mapping[KnownSize, int]) -> Finding:
    if finding.unit is not Unit.BYTES:
        return finding
    alike = finding.recurring
    if alike is not None:
        found = match(alike.growth_per_event, known, spread=alike.spread)
        alike = replace(alike, match=found)
    return replace(finding, phases=matched(finding.phases, known), recurring=alike)
