"""Walks to known places only: through their names, and to nothing else.

The places are those that a walk of all names has found. What an object refers to is the same as in
that walk (`name_walk`), so the sizes are the same.
"""

from __future__ import annotations

import sys

from .name_walk import NameWalk
from .plain_access import module_attributes
from .program_code import awaiting_frames, running_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .kept_bytes import Arrays
    from .name_walk import Found
    from .places import Place, Places
    from .unnamed import Unnamed

# Objects in which a place is looked up: the hooks of each layer are one place. Heuristic.
_MOST_REACHED = 16


class Reached:
    """An object at a place, and the object (or frame) that refers to it by the place's name."""

    __slots__ = ("owner", "value")

    def __init__(self, owner: Any, value: Any) -> None:
        self.owner, self.value = owner, value


class KnownPlacesWalk(NameWalk):
    """One walk. `reached` holds objects, as `found` does: let go of it at once."""

    def __init__(
        self, places: Places, arrays: Arrays, unnamed: Unnamed, wanted: Iterable[Place]
    ) -> None:
        """wanted: the places to walk to."""
        super().__init__(places, arrays, unnamed)
        self._more_items = 0
        self._on_way = {above for place in wanted for above in place.path()}
        self._roots = [place for place in self._on_way if place.parent is places.root]
        self.reached: dict[Place, list[Reached]] = {}
        self._owner: Any = None

    def _begin(self) -> None:
        for place in self._roots:
            module = sys.modules.get(place.owner) if place.kind == "global" else None
            if module is not None:
                self._owner = module_attributes(module)
                value = self._owner.get(place.name)
                self._put(value, self._places.root, ("global", place.name), 1.0, 0)

    def _frames(self) -> tuple[list[Any], list[Any]]:
        # By the name of the variable: in the tree of places it is one place for all functions.
        names = {place.name for place in self._roots if place.kind == "local"}
        if not names:
            return [], []
        running = [frame for frame in running_frames() if _binds(frame, names)]
        return running, [frame for frame in awaiting_frames() if _binds(frame, names)]

    def _groups(self, frames: list[Any], awaiting: int) -> list[list[Any]]:
        return [frames]

    def _put_frame(self, frame: Any, place: Place, weight: float, depth: int) -> None:
        self._owner = frame
        super()._put_frame(frame, place, weight, depth)

    def _put(
        self,
        thing: Any,
        place: Place,
        label: tuple[str, ...],
        weight: float,
        depth: int,
        about: Any = None,
    ) -> None:
        child = (place.children or {}).get(label)
        # (The links of a chain lead back to a place above: its first link stands for all.)
        if child is None or child.parent is not place or child not in self._on_way:
            return
        known = self.reached.setdefault(child, [])
        if len(known) < _MOST_REACHED and all(one.value is not thing for one in known):
            known.append(Reached(self._owner, thing))
        self._todo.append((thing, child, weight, depth + 1))

    def _visit(self, thing: Any, kind: type, place: Place, weight: float, depth: int) -> None:
        self._owner = thing
        super()._visit(thing, kind, place, weight, depth)

    def _record(self, thing: Any, place: Place, weight: float, depth: int) -> Found:
        if place.kind == "cache" and place in self._on_way:
            self.reached.setdefault(place, []).append(Reached(thing, thing))
        return super()._record(thing, place, weight, depth)

    def _behind(self, roots: list[Any]) -> dict[int, list[Any]]:
        """Graphs take too long to count: their places have no size."""
        return {}


def _binds(frame: Any, names: set[str]) -> bool:
    code = frame.f_code
    return not names.isdisjoint((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
