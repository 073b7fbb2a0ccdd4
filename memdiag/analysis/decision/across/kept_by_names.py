"""What the names of a program keep, as the probe has measured it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memdiag.values.holders import Holder, ProcessHolders


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """A container that holds at most `bound` items, and has `items`. name: without braces. left_s:
    seconds until it is full at its present pace."""

    name: str
    items: float
    bound: float
    left_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The place in a process that grows most, of those that a name leads to.

    per_s: bytes per second on the host, device_per_s: on devices. filling: the container that it
    is, if that has a greatest length.
    """

    per_s: float
    device_per_s: float
    filling: Filling | None = None


def kept(processes: Sequence[ProcessHolders]) -> Mapping[str, Kept]:
    """The place that grows most in each process where one does.

    Several places may lead to the same objects. What no name leads to is kept by none.
    """
    found: dict[str, Kept] = {}
    for one in processes:
        named = [h for h in one.holders if all(name.kind != "unreached" for name in h.path)]
        grown = [known for holder in named if (known := _kept(holder)) is not None]
        before = [found[one.process]] if one.process in found else []
        if grown:
            found[one.process] = max(before + grown, key=lambda k: k.per_s + k.device_per_s)
    return found


def _kept(holder: Holder) -> Kept | None:
    units_per_s = late_rate([(one.at_s, one.size) for one in holder.sizes]) or 0.0
    if units_per_s <= 0:
        return None
    return Kept(
        per_s=units_per_s * (holder.bytes_per_unit - holder.device_bytes_per_unit),
        device_per_s=units_per_s * holder.device_bytes_per_unit,
        filling=_filling(holder, units_per_s),
    )


def _filling(holder: Holder, items_per_s: float) -> Filling | None:
    # Of containers that are items of another one, it is not known how many there are.
    if holder.bound is None or holder.unit != "items" or any(n.kind == "item" for n in holder.path):
        return None
    items = holder.sizes[-1].size
    return Filling(
        name=holder.path[-1].name.translate(_WITHOUT_BRACES),
        items=items,
        bound=float(holder.bound),
        left_s=max(holder.bound - items, 0.0) / items_per_s,
    )


_WITHOUT_BRACES = str.maketrans("{}", "()")  # they stand for numbers in a sentence


def late_rate(points: Sequence[tuple[float, float]]) -> float | None:
    """Growth per unit of the first column over the second half of (position, size)."""
    if len(points) < 2:
        return None
    at, sizes = zip(*points, strict=True)
    half = (at[-1] - at[0]) / 2
    grown: float = sizes[-1] - float(np.interp(at[0] + half, at, sizes))
    return grown / half if half > 0 else None
