"""What the names of a program keep, as the probe has measured it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from memdiag.values.holders import Holder, ProcessHolders


def kept_per_s(processes: Sequence[ProcessHolders]) -> Mapping[str, float]:
    """Bytes per second on the host by which the place grows that grows most, for each process.

    Several places may lead to the same objects. What no name leads to is kept by none.
    """
    kept: dict[str, float] = {}
    for one in processes:
        named = [h for h in one.holders if all(name.kind != "unreached" for name in h.path)]
        grown = [_per_s(holder) for holder in named]
        kept[one.process] = max([kept.get(one.process, 0.0), *grown])
    return kept


def _per_s(holder: Holder) -> float:
    per_s = late_rate([(one.at_s, one.size) for one in holder.sizes]) or 0.0
    return per_s * (holder.bytes_per_unit - holder.device_bytes_per_unit)


def late_rate(points: Sequence[tuple[float, float]]) -> float | None:
    """Growth per unit of the first column over the second half of (position, size)."""
    if len(points) < 2:
        return None
    at, sizes = zip(*points, strict=True)
    half = (at[-1] - at[0]) / 2
    grown: float = sizes[-1] - float(np.interp(at[0] + half, at, sizes))
    return grown / half if half > 0 else None
