"""Readings of single processes put together to those of the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memdiag.capture.process.sampler import Reading
from memdiag.values.measurements import Unavailable

ADDITIVE = ("rss_bytes", "uss_bytes", "pss_bytes", "swap_bytes")


def numbers(readings: dict[str, Reading]) -> dict[str, int | float]:
    """What could be read: `readings` itself where that is all of it, as nearly always."""
    if Unavailable not in map(type, readings.values()):
        return readings  # type: ignore[return-value]
    return {
        metric: reading
        for metric, reading in readings.items()
        if not isinstance(reading, Unavailable)
    }


def totals(
    old: Sequence[Mapping[str, Reading]], young: Sequence[Mapping[str, Reading]]
) -> dict[str, Reading]:
    """Sums over all processes; a sum that lacks an old one is not known.

    A slow source's round may have missed those that are younger than the round.
    """
    totals: dict[str, Reading] = {}
    present = set().union(*old, *young)
    for metric in present.intersection(ADDITIVE):
        values = [readings[metric] for readings in old if metric in readings]
        is_complete = len(values) == len(old)
        values += [readings[metric] for readings in young if metric in readings]
        reason = next((value for value in values if type(value) is Unavailable), None)
        if reason is not None:
            totals[metric] = reason
        elif is_complete:
            totals[metric] = sum(values)  # type: ignore[arg-type]  # they are numbers
    return totals
