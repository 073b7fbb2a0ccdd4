"""Readings that cannot be memory: sentinels, values after an underflow, lone outliers.

They become missing readings, with a note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memdiag.values.measurements import Role

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats

# No machine holds a petabyte: such values are 2^63-1, 2^64-1 or unsigned differences below zero.
_MOST = 1e15
# A lone reading is an outlier if it differs from all others by this factor: a lost decimal point or
# a wrong unit changes it by 1000. Heuristic.
_FACTOR = 100.0
# Memory does not grow by this factor for a few readings only, wherever they stand. (It does fall so
# far where an allocator is emptied.) Heuristic.
_NO_GROWTH = 1e4
# At most this share of the readings are outliers, but this many may always be. Heuristic.
_SHARE = 0.02
_LONE, _TOGETHER = 1, 2
_READINGS_AT_LEAST = 8
# The user's own counter and differences of counters may be negative.
_MAY_BE_NEGATIVE = frozenset({Role.COUNTER})


def without_impossible(values: Floats, name: str, role: Role | None) -> tuple[Floats, list[str]]:
    """The values with NaN for those that cannot be readings, and a note for each kind of them."""
    notes: list[str] = []
    if not len(values):
        return values, notes
    lowest, highest = np.fmin.reduce(values), np.fmax.reduce(values)
    if lowest > 0 and highest < min(_FACTOR * lowest, _MOST):  # most series: nothing to look for
        return values, notes
    if highest >= _MOST:
        values = _without(values, values >= _MOST, f"of {name} above 1 PB", notes)
    if lowest < 0 and role not in _MAY_BE_NEGATIVE:
        values = _without(values, values < 0, f"of {name} below zero", notes)
    if (above := _far_above(values)) is not None:
        what = f"of {name} {_NO_GROWTH:,.0f} times larger than all others (outlier)"
        values = _without(values, above, what, notes)
    if (lone := _lone_outliers(values)) is not None:
        what = f"of {name} {_FACTOR:.0f} times larger or smaller than all others (outlier)"
        values = _without(values, lone, what, notes)
    return values, notes


def _without(values: Floats, wrong: NDArray[np.bool_], what: str, notes: list[str]) -> Floats:
    number = int(wrong.sum())
    first = float(values[np.argmax(wrong)])
    readings = "1 reading" if number == 1 else f"{number} readings"
    notes.append(f"{readings} {what}: taken as missing, the first is {first:,.6g}")
    return np.where(wrong, np.nan, values)


def _far_above(values: Floats) -> NDArray[np.bool_] | None:
    """The few readings that are larger than all others by more than memory grows; None if there are
    none.
    """
    known = values[np.isfinite(values)]
    if known.size < _READINGS_AT_LEAST:
        return None
    ranked = np.sort(known)[-1 - _at_most(known.size, _TOGETHER) :]
    jump = _gap(ranked, _NO_GROWTH)
    if jump is None or ranked[jump - 1] <= 0:
        return None
    above: NDArray[np.bool_] = values >= ranked[jump]
    return above


def _at_most(readings: int, least: int) -> int:
    return max(least, int(_SHARE * readings))


def _lone_outliers(values: Floats) -> NDArray[np.bool_] | None:
    """Single readings that all others differ from by orders of magnitude; None if there are none.

    The readings before and after must be like all others: a value that stays is a change.
    """
    seen = np.flatnonzero(np.isfinite(values))
    if seen.size < _READINGS_AT_LEAST:
        return None
    known = values[seen]
    usual = float(known[0])
    if usual <= 0 or (usual / _FACTOR < known.min() and known.max() < usual * _FACTOR):
        return None
    at_most = _at_most(seen.size, _LONE)
    far = np.zeros(seen.size, dtype=bool)
    ranked = np.sort(known)
    above = ranked[-1 - at_most :]
    if (jump := _gap(above, _FACTOR)) is not None:
        far |= known >= above[jump]
    below = ranked[: at_most + 1]
    if (jump := _gap(below, _FACTOR)) is not None:
        far |= known < below[jump]
    if not far.any() or far[0] or far[-1] or bool((far[1:] & far[:-1]).any()):
        return None
    wrong = np.zeros(len(values), dtype=bool)
    wrong[seen[far]] = True
    return wrong


def _gap(ranked: Floats, factor: float) -> int | None:
    """The place after the first gap of this factor among ascending values; None without one."""
    wide = np.flatnonzero((ranked[1:] >= factor * ranked[:-1]) & (ranked[1:] > 0))
    return int(wide[0]) + 1 if wide.size else None
