"""Readings of single processes put together to those of the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memdiag.capture.sampler import Reading
from memdiag.model import Unavailable

ADDITIVE = ("rss_bytes", "uss_bytes", "pss_bytes", "swap_bytes")


def numbers(readings: Mapping[str, Reading]) -> dict[str, int | float]:
    """What could be read."""
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
    for metric in ADDITIVE:
        values = [readings[metric] for readings in (*old, *young) if metric in readings]
        reasons = [value for value in values if isinstance(value, Unavailable)]
        complete = all(metric in readings for readings in old)
        if reasons:
            totals[metric] = reasons[0]
        elif values and complete:
            totals[metric] = sum(value for value in values if not isinstance(value, Unavailable))
    return totals
