"""Finds objects in reference cycles that nothing refers to, before Python's collector frees them.

Looks at the youngest generation alone, which the collector keeps small, and finds what its next run
would free, by its own method (CPython, Modules/gcmodule.c): an object with more references than
other young objects have to it is referred to from outside. Nothing is collected or freed here. Only
types, reference counts and referents are read, so no code of the program runs.
"""

from __future__ import annotations

import gc
import sys
from _thread import get_ident
from collections import Counter
from sys import getrefcount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

# Of more than this many, which only a collector that is off leaves, the youngest are looked at:
# some 4 ms. Listing the most of all takes 10 ms. Heuristic.
LOOKED_AT, MOST_OBJECTS = 5_000, 1_000_000
# If the collector ran during a look, what the look refers to would survive, and wait for an older
# generation's turn. So there is none within this many objects of the next run.
_ROOM = 50
_GENERATOR = 0x20  # CO_GENERATOR, as in `inspect`


def is_collected() -> bool:
    """Return True if Python's collector runs by itself."""
    return gc.isenabled() and gc.get_threshold()[0] > 0


def young() -> int:
    """The number of objects in the youngest generation."""
    return gc.get_count()[0]


def unreachable(before: int = 0) -> tuple[list[Any], float] | None:
    """The young objects that nothing outside of them refers to, and by how much to multiply what
    they hold, as only the youngest were looked at; None if it cannot look now.

    before: how many of the young objects there were before the program's work began. The youngest
    stand for those since then: what imports make stays in use.
    """
    count, threshold = young(), gc.get_threshold()[0]
    if count > MOST_OBJECTS or (is_collected() and count + _ROOM > threshold):
        return None
    if _may_make_a_tuple():
        return None
    objects = gc.get_objects(generation=0)
    times = max(1.0, (len(objects) - before) / LOOKED_AT)
    del objects[:-LOOKED_AT]
    return unreachable_among(objects, Counter()), times


def unreachable_among(objects: list[Any], held: Counter[int]) -> list[Any]:
    """Those of some objects that nothing outside of them refers to, nor leads to from there.

    held: the references from the probe, by the identity of the object, beside that of the list.
    """
    inside = Counter(map(id, gc.get_referents(*objects)))
    outside = [
        have - inside[id(one)] - held[id(one)] - _ONLOOKERS for one, have in _references(objects)
    ]
    waiting = {id(one): one for one in objects}
    reached = [one for one, others in zip(objects, outside) if others > 0]
    while reached:
        for one in reached:
            waiting.pop(id(one), None)
        referents = gc.get_referents(*reached)
        reached = list({id(one): one for one in referents if id(one) in waiting}.values())
    return list(waiting.values())


def _may_make_a_tuple() -> bool:
    """Return True while another thread runs a generator: perhaps for `tuple(...)`, which fails if
    the tuple that it is making is among the objects that are looked at (see tracked_objects.py)."""
    own = get_ident()
    # (Not the frame of this function: it would refer to itself.)
    for frame in [one for thread, one in sys._current_frames().items() if thread != own]:
        at: Any = frame
        while at is not None:
            if at.f_code.co_flags & _GENERATOR:
                return True
            at = at.f_back
    return False


def buffer_bytes(objects: Sequence[Any]) -> int:
    """Bytes of the strings of bytes and NumPy arrays that these objects alone refer to."""
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    kinds = (bytes, bytearray, array)
    buffers = [one for one in gc.get_referents(*objects) if type(one) in kinds]
    inside = Counter(map(id, buffers))
    # (The list refers to each as often as the objects do.)
    own = {
        id(one): one
        for one, have in _references(buffers)
        if have - _ONLOOKERS + 1 == 2 * inside[id(one)]
    }
    return sum(map(sys.getsizeof, own.values()))


def _references(objects: Iterable[Any]) -> Iterable[tuple[Any, int]]:
    """Each object with the number of references to it."""
    counts = list(map(getrefcount, objects))
    return zip(objects, counts)


# The references that the list of objects and the look itself add.
_ONLOOKERS = list(map(getrefcount, [object()]))[0]  # noqa: RUF015
