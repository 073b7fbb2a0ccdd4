"""Reads a place between two lines of the program: has it grown?

It is read through its name, because a list may be a new one each time. What refers to it by that
name is looked up at each step anew, and given up at once if nothing but the probe refers to it.
"""

from __future__ import annotations

import gc
import types
from sys import getrefcount

from .guard import ours
from .kept_bytes import Kept
from .places import ALL_ITEMS, ITEM
from .plain_access import (
    CONTEXT_VALUE,
    SHARES_LOCALS,
    ContextVar,
    Fields,
    cached,
    class_attribute,
    context_value,
    is_cache,
    length,
    newest,
    oldest,
    uses_locals,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .kept_bytes import Arrays
    from .known_places import KnownPlacesWalk, Reached
    from .places import Place

# Python makes them longer in place, if nothing else refers to them.
_TEXTS = (str, bytes, bytearray)
# Items that are measured for each line, and for how long. Heuristic.
_MOST_MEASURED, _MEASURING_S = 3, 0.001


class WatchedPlace:
    """A place, and the lines at which it has grown.

    hits: (identity of the code, line) -> how often. sizes: by the same, where several lines add
    items, bytes of some that each has added.
    """

    def __init__(self, place: Place, arrays: Arrays, *, is_important: bool) -> None:
        """is_important: the window is over only when it has seen this place grow."""
        self.place, self.is_important = place, is_important
        self.hits: dict[tuple[int, int], int] = {}
        self.sizes: dict[tuple[int, int], list[int]] = {}
        self._arrays = arrays
        self._path = place.path()
        self._known: dict[Place, Any] = {}
        self._sizes: dict[int, Any] = {}
        self._replaced: set[Place] = set()
        self._reads: list[_Read] = []
        self._is_counted, self._is_of_items = True, False
        self._before: Any = None

    @property
    def hit_count(self) -> int:
        """How often it has grown at a known line."""
        return sum(self.hits.values())

    def look_up(self, walk: KnownPlacesWalk) -> None:
        """Look up what refers to the place. walk: its `reached` is of this moment.

        If the object at the place is replaced from step to step, what is read is the outermost name
        that leads to a new object: the head of a chain, or the tuple that has the new state. Of
        items that are replaced it is their container.
        """
        is_first = not self._known
        for above in self._path:
            reached = walk.reached.get(above, [])
            if not reached:
                continue
            # (What is changed in place is not another object: a container that grows, and on the
            # way there the parameter that an optimizer updates.)
            is_same = above is not self.place or above.unit == "items"
            # (A container that gets another item replaces none.)
            lengths = [length(one.owner, type(one.owner)) for one in reached]
            marks = [id(x.value) if is_same else self._identity(x.value) for x in reached]
            known = self._known.setdefault(above, (lengths, marks))
            if known[1] != marks and not (_is_item(above) and known[0] != lengths):
                self._replaced.add(above)
            self._known[above] = lengths, marks
        target = self.place
        for above in reversed(self._path):
            if above not in self._replaced:
                break
            target = above
        self._is_counted = target is self.place and target.unit == "items"
        self._is_of_items = _is_item(target) and target in self._replaced
        reached = walk.reached.get(target, [])
        if self._is_of_items:
            reached = list({id(one.owner): one for one in reached}.values())
        elif is_first and not self._is_counted and any(map(_is_item, self._path)):
            reached = []  # whether items are replaced is seen at the second step
        self._reads = [_Read(target, one, is_of_items=self._is_of_items) for one in reached]
        self._before = None

    def read(self, frame: Any, *, is_traced: bool) -> bool:
        """Read it. Return True if it has grown since the last time.

        frame: the function that runs. is_traced: it has just called its trace function.
        """
        now = self._now(frame, is_traced)
        if now is None:
            return False
        before, self._before = self._before, now
        if before is None or now == before:
            return False
        return not self._is_counted or now > before

    def hit(self, key: tuple[int, int], frame: Any, *, is_traced: bool) -> None:
        """It has grown at a line. If it grows at others as well, measure what this one has added.

        frame, is_traced: as for `read`.
        """
        self.hits[key] = self.hits.get(key, 0) + 1
        known = self.sizes.setdefault(key, [])
        if len(self.hits) > 1 and self._is_counted and len(known) < _MOST_MEASURED:
            for one in self._reads[:1]:
                known.append(self._newest_bytes(one.value(frame, is_traced)))

    def weight(self, key: tuple[int, int]) -> float:
        """The bytes that a line has added, estimated; 0 if what some line adds is not known."""
        if not all(self.sizes.values()):
            return 0.0
        return self.hits[key] * sum(self.sizes[key]) / len(self.sizes[key])

    def _newest_bytes(self, container: Any) -> int:
        """What the newest item of a container keeps and the oldest does not."""
        kind = type(container)
        if length(container, kind) < 1:
            return 0
        old = Kept(self._arrays, longest_s=_MEASURING_S)
        old.add(oldest(container, kind, 1))
        new = Kept(self._arrays, without=old, longest_s=_MEASURING_S)
        new.add(newest(container, kind, 1))
        return new.total()[0]

    def release(self) -> None:
        """Let go of all objects."""
        self._reads, self._before = [], None

    def _now(self, frame: Any, is_traced: bool) -> Any:
        if len(self._reads) == 1:
            value = self._reads[0].value(frame, is_traced)
            return None if value is None else self._mark(value)
        total: Any = None
        for one in self._reads:
            value = one.value(frame, is_traced)
            if value is not None:
                mark = self._mark(value)
                total = mark if total is None else total + mark
        return total

    def _mark(self, value: Any) -> Any:
        if self._is_of_items:
            return _identities(value)
        return self._size(value) if self._is_counted else self._identity(value)

    def _size(self, value: Any) -> int:
        kind = type(value)
        if kind is list:
            return len(value)
        found = length(value, kind)
        if found >= 0:
            return found
        if is_cache(kind):
            return cached(value)[0]
        if self._arrays.is_array(kind):
            return self._arrays.array_bytes(value)
        attributes = Fields(kind).of(value)
        return len(gc.get_referents(value) if attributes is None else attributes)

    def _identity(self, value: Any) -> tuple[Any, ...]:
        kind = type(value)
        if self._arrays.is_tensor(kind):
            return (id(value), self._arrays.version(value))
        if self._arrays.is_array(kind):
            return (id(value), self._arrays.array_bytes(value))
        if kind in _TEXTS:
            return (id(value), len(value))
        size = self._sizes.get(id(kind), self)
        if size is self:
            size = self._sizes[id(kind)] = Fields(kind).size
        return (id(value),) if size is None else (id(value), size(value))


def _is_item(place: Place) -> bool:
    return (place.kind, place.name) == ITEM


def _identities(container: Any) -> tuple[int, ...]:
    """Those of the items of a container."""
    kind = type(container)
    items = newest(container, kind, ALL_ITEMS)
    return tuple([id(one[1]) for one in items] if issubclass(kind, dict) else map(id, items))


class _Read:
    """One way to a value.

    holder: what refers to the value by `name`: a dictionary, a cell, an object with slots, or the
    value itself if it has no name. For a local variable only the function's code is known, so that
    no frame is kept.
    """

    __slots__ = ("_code", "_get", "_holder", "_name")

    def __init__(self, place: Place, reached: Reached, *, is_of_items: bool) -> None:
        """is_of_items: the value is the container of the items at the place."""
        self._name, self._code = place.name, None
        way: Any = (reached.owner, _itself) if is_of_items else _access(place, reached)
        self._holder, self._get = way
        if type(self._holder) is types.FrameType:
            self._holder, self._code = None, self._holder.f_code

    def value(self, frame: Any, is_traced: bool) -> Any:
        """The value, None if there is none (any more)."""
        if self._code is not None:
            return _local(frame, self._code, self._name, is_traced)
        if self._holder is None:
            return None
        if getrefcount(self._holder) <= _ONLY_OURS:
            self._holder = None
            return None
        return self._get(self._holder, self._name)


def _access(place: Place, reached: Reached) -> tuple[Any, Any]:
    owner, kind = reached.owner, place.kind
    if type(owner) is types.FrameType:
        return owner, None
    if kind in ("global", "key") and issubclass(type(owner), dict):
        return owner, dict.get
    if kind == "closure":
        names = owner.__code__.co_freevars
        return owner.__closure__[names.index(place.name)], _cell
    if (kind, place.name) == CONTEXT_VALUE and type(owner) is ContextVar:
        return owner, _context_value
    if kind == "attribute":
        return _attribute_access(place.name, reached)
    return reached.value, _itself


def _attribute_access(name: str, reached: Reached) -> tuple[Any, Any]:
    owner = reached.owner
    if issubclass(type(owner), type):
        return owner, class_attribute
    fields = Fields(type(owner))
    attributes = fields.of(owner)
    if attributes is not None and name in attributes:
        return attributes, dict.get
    slot = next((get for known, get in fields.slots if known == name), None)
    return (owner, _slot(slot)) if slot is not None else (reached.value, _itself)


def _slot(get: Any) -> Any:
    def read(owner: Any, _: str) -> Any:
        try:
            return get(owner)
        except ours(AttributeError):
            return None

    return read


def _cell(cell: Any, _: str) -> Any:
    try:
        return cell.cell_contents
    except ours(ValueError):
        return None


def _context_value(variable: Any, _: str) -> Any:
    return context_value(variable)


def _itself(value: Any, _: str) -> Any:
    return value


def _local(frame: Any, code: Any, name: str, is_traced: bool) -> Any:
    """A local variable of the innermost call of a function; None if it does not run here."""
    at = frame
    while at is not None and at.f_code is not code:
        at = at.f_back
    if at is None or uses_locals(code):
        return None
    if not SHARES_LOCALS:
        return at.f_locals.get(name)
    kept = at.f_locals
    value = kept.get(name)
    if not (is_traced and at is frame):  # (what a trace function removes is removed for good)
        kept.clear()
    return value


class _OneReference:
    __slots__ = ("_holder",)

    def __init__(self) -> None:
        self._holder = object()

    def count(self) -> int:
        return getrefcount(self._holder)


_ONLY_OURS = _OneReference().count()
