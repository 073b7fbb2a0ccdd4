"""What the names of a program keep, as the probe has measured it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memdiag.values.holders import Holder, ProcessHolders


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """A container that holds at most `bound` items, and has `items`.

    per_s: bytes per second that it grows by on the host, device_per_s: on devices. left_s: seconds
    until it is full at that pace.
    """

    name: str
    items: float
    bound: float
    per_s: float
    device_per_s: float
    left_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the names of a process keep.

    per_s: bytes per second on the host by which the place grows that grows most. filling: the
    containers that grow and have a greatest length.
    """

    per_s: float = 0.0
    filling: tuple[Filling, ...] = ()


def kept(processes: Sequence[ProcessHolders]) -> Mapping[str, Kept]:
    """What each process keeps.

    Several places may lead to the same objects. What no name leads to is kept by none.
    """
    found: dict[str, Kept] = {}
    for one in processes:
        named = [
            (h, late_rate([(size.at_s, size.size) for size in h.sizes]) or 0.0)
            for h in one.holders
            if all(name.kind != "unreached" for name in h.path)
        ]
        before = found.get(one.process, Kept())
        found[one.process] = Kept(
            per_s=max([before.per_s, *(rate * h.host_bytes_per_unit for h, rate in named)]),
            filling=before.filling + tuple(filter(None, (_filling(*pair) for pair in named))),
        )
    return found


def _filling(holder: Holder, items_per_s: float) -> Filling | None:
    # Of containers that are items of another one, it is not known how many there are.
    is_one = holder.unit == "items" and all(name.kind != "item" for name in holder.path)
    if holder.bound is None or not is_one or items_per_s <= 0:
        return None
    items = holder.sizes[-1].size
    return Filling(
        name=holder.path[-1].name,
        items=items,
        bound=float(holder.bound),
        per_s=items_per_s * holder.host_bytes_per_unit,
        device_per_s=items_per_s * holder.device_bytes_per_unit,
        left_s=max(holder.bound - items, 0.0) / items_per_s,
    )


def late_rate(points: Sequence[tuple[float, float]]) -> float | None:
    """Growth per unit of the first column over the second half of (position, size)."""
    if len(points) < 2:
        return None
    at, sizes = zip(*points, strict=True)
    half = (at[-1] - at[0]) / 2
    grown: float = sizes[-1] - float(np.interp(at[0] + half, at, sizes))
    return grown / half if half > 0 else None
