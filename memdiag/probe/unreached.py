"""Finds objects that become ever more although no name leads to them: in reference cycles that are
not collected, or held by code in C, as by the graph of autograd.

A look counts the objects of each class that the garbage collector knows. A class whose number has
risen at each look is a place of its own, if nothing that a name leads to refers to some of its
objects, directly or by a few steps. So is a class of the program that names do lead to, as in a
tree, of which no single place grows. A look takes 30 ms, the one that finds the place 0.3 s or
more, so they are taken only while memory grows that the names do not explain, and a few times.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
import weakref
from array import array
from collections import Counter
from itertools import takewhile
from math import inf
from time import thread_time

from .guard import ours
from .kept_bytes import per_object
from .places import OBJECTS
from .plain_access import Fields, class_attribute, class_name, module_file, module_name
from .program_code import is_ours, is_users
from .tracked_objects import class_of_each, objects_of, referrers, tasks_with
from .young_garbage import unreachable_among

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .kept_bytes import Arrays
    from .name_walk import NameWalk
    from .places import Place, Places

MOST_LOOKS = 10
# So many more of a class at each look, of which the first compares with nothing. Heuristic.
_LEAST_MORE, _LEAST_LOOKS = 8, 3
_MOST_CLASSES = 12
# Objects of a class that are measured, and of these the ones whose referrers are searched.
_MEASURED, _SEARCHED = 60, 3
# Steps to referrers, 10 to 20 ms each, and how many there may be: more are held by one container.
# Heuristic.
_MOST_STEPS, _MOST_REFERRERS = 12, 500
# Objects on the way from an attribute back to its object.
_MOST_ON_WAY = 500
# Of the growth of the largest class, what a class of the program has to have to stand for it.
_STANDS_FOR = 0.5
# Places of a class that are looked at, and the part of its objects there that one place has to be
# above to lead to all of them. Heuristic.
_MOST_PLACES, _MOST_OF = 500, 0.8
# The number of callbacks of `atexit`, beside the numbers of objects by the identity of their class.
_ATEXIT, _CALLBACKS = "atexit", -1
# Callbacks for one object that they keep. Heuristic.
_LEAST_CALLBACKS, _MOST_CALLBACKS = 0.5, 2.0
# What is part of others, and not what one would name; so are weak references of any class.
_PARTS = frozenset(
    map(
        id,
        (
            dict,
            list,
            set,
            tuple,
            types.BuiltinFunctionType,
            types.CellType,
            types.FrameType,
            types.FunctionType,
            types.MethodType,
        ),
    )
)
_Frame = types.FrameType


class Unreached:
    """The looks of one process.

    found: the places, each with what one more object of the class keeps, as `per_object` gives it.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._looks: list[tuple[int, Counter[int]]] = []
        # The same between looks, of what may still be of interest. (Counters of all classes would
        # be thousands of objects: memory that seems to be the program's.)
        self._before: list[tuple[int, array[int], array[int]]] = []
        self.found: dict[Place, dict[str, Any]] = {}
        self._classes: dict[Place, int] = {}
        self._reached: set[int] = set()  # classes of which a name leads to some objects

    @property
    def looks(self) -> int:
        """How many there were."""
        return len(self._before)

    def look(
        self,
        number: int,
        walk: NameWalk,
        arrays: Arrays,
        least_bytes: float = 0.0,
        longest_s: float = inf,
    ) -> None:
        """Look at the objects that the collector knows, at walk `number`.

        least_bytes: what the objects of a class have to have grown by to be a place. If the walk
        has not found all that names lead to, only what it has found shows what leads to them.
        longest_s: CPU time for the search for what refers to them.
        """
        self._looks = [
            (at, Counter(dict(zip(classes, counts)))) for at, classes, counts in self._before
        ]
        try:
            self._look(number, walk, arrays, least_bytes, longest_s)
        finally:
            self._before = [
                (at, array("q", counts), array("q", counts.values()))
                for at, counts in self._of_interest()
            ]
            self._looks = []

    def _of_interest(self) -> list[tuple[int, Counter[int]]]:
        """The looks without the classes that have not had more objects at each."""
        if len(self._looks) < 2:
            return self._looks
        kept = {_CALLBACKS, *self._classes.values(), *self._rising()}
        return [
            (at, Counter({key: counts[key] for key in kept if key in counts}))
            for at, counts in self._looks
        ]

    def _rising(self) -> list[int]:
        """The classes of which there were more at each look."""
        looks = [counts for _, counts in self._looks]
        return [
            key
            for key in looks[-1]
            if all(a[key] + _LEAST_MORE <= b[key] for a, b in zip(looks, looks[1:]))
        ]

    def _look(
        self, number: int, walk: NameWalk, arrays: Arrays, least_bytes: float, longest_s: float
    ) -> None:
        counts: Counter[int] = Counter(map(id, class_of_each()))
        counts[_CALLBACKS] = _callbacks()
        for place, key in self._classes.items():
            place.measured(number, "objects", counts[key])
        self._looks.append((number, counts))
        if self.found or len(self._looks) < _LEAST_LOOKS:
            return
        (_, first), *_ = self._looks
        left_out = {_CALLBACKS, *_PARTS, *arrays.storage_classes}
        rising = [key for key in self._rising() if key not in left_out]
        rising.sort(key=lambda key: first[key] - counts[key])
        wanted: dict[int, list[Any]] = {key: [] for key in rising[:_MOST_CLASSES]}
        places: dict[int, Counter[Place]] = {key: Counter() for key in wanted}
        objects = objects_of(wanted)
        while objects:  # (each group has the newest first)
            one = objects.pop()
            at = walk.seen.get(id(one))
            if at is None:
                wanted[id(type(one))].append(one)
            elif len(places[id(type(one))]) < _MOST_PLACES:
                places[id(type(one))][at] += 1
        one = None
        measured = [
            self._measured(group[::-1], arrays, _above_most(places[key]))
            for key, group in wanted.items()
            if len(group) > _MEASURED and not _is_part(type(group[0]))
        ]
        wanted.clear()
        most = max((one.grown_bytes for one in measured), default=0.0)
        least_bytes = max(least_bytes, _STANDS_FOR * most)
        groups = [one for one in measured if one.grown_bytes >= least_bytes]
        self._take(groups, walk, arrays, longest_s)

    def _measured(self, group: list[Any], arrays: Arrays, above: Place | None) -> _Group:
        # (The newest may be in use, and so are the oldest.)
        some = group[: 1 + 3 * len(group) // 4][-_MEASURED:]
        counts = [counted[id(type(group[0]))] for _, counted in self._looks]
        group.clear()
        return _Group(some, counts, per_object(some, arrays), above)

    def _take(self, groups: list[_Group], walk: NameWalk, arrays: Arrays, longest_s: float) -> None:
        for one in groups:
            one.attribute = _attribute_in_cycle(one.some[-1], arrays)
        groups.sort(key=lambda one: (not one.file, not one.attribute, -one.grown_bytes))
        until_s = thread_time() + longest_s
        held = Counter(id(x) for group in groups for x in group.some)
        for group in groups:
            ours = {id(groups), *(id(x) for one in groups for x in (one, one.__dict__, one.some))}
            if _is_garbage(group.some, held):
                self._add(group)
                return
            if group.key in self._reached:
                continue
            is_unreached, above = _is_unreached(group.some, walk.seen, ours, until_s)
            if is_unreached and walk.has_all_names:
                self._add(group)
                return
            if group.file and above is not None and above is not self._places.root:
                self._add(group, above)
                return
            is_cut = is_unreached is None and not walk.has_all_names
            if is_cut and group.file and group.above is not None:
                self._add(group, group.above)
                return
            if is_unreached is False:
                self._reached.add(group.key)

    def _add(self, one: _Group, above: Place | None = None) -> None:
        """above: the place that leads to the objects, None without one."""
        place = above or self._places.root
        labels = [
            (("unreached", one.name), one.module, one.file),
            (("attribute", one.attribute), one.name, one.file),
        ]
        if above is not None:
            labels = [((OBJECTS, one.name), one.module, one.file)]
        elif self._is_in_callbacks(one):
            labels = [(("registered", _ATEXIT), _ATEXIT, "")]
        for label, *about in labels:
            if label[1]:
                place = self._places.child(place, label, functools.partial(tuple, (*about, 0)))
        for (number, _), count in zip(self._looks, one.counts):
            place.measured(number, "objects", count)
        self.found[place] = {**one.about, "container": "", "is_estimated": False}
        self._classes[place] = one.key

    def _is_in_callbacks(self, one: _Group) -> bool:
        """Return True if there are as many more callbacks of `atexit` as objects: those are in a
        list of C that refers to nothing for the garbage collector.
        """
        counts = [counted[_CALLBACKS] for _, counted in self._looks]
        grown = one.counts[-1] - one.counts[0]
        is_rising = all(before < after for before, after in zip(counts, counts[1:]))
        more = counts[-1] - counts[0]
        return is_rising and _LEAST_CALLBACKS * grown <= more <= _MOST_CALLBACKS * grown


class _Group:
    """Objects of one class. some: from the oldest to the newest. counts: at each look. attribute:
    the one by which an object leads back to itself, "" without one. above: the place that leads to
    most others of the class, as far as the walk has come.
    """

    def __init__(
        self, some: list[Any], counts: list[int], about: dict[str, Any], above: Place | None
    ) -> None:
        self.some, self.counts, self.about, self.above = some, counts, about, above
        kind = type(some[0])
        self.key = id(kind)
        # (The class of a function of autograd is made from the program's.)
        forward = class_attribute(kind, "_forward_cls")
        kind = forward if issubclass(type(forward), type) else kind
        self.name, self.module = class_name(kind), module_name(kind)
        file = module_file(sys.modules.get(self.module))
        self.file = file if file and is_users(file) else ""
        self.attribute = ""
        self.grown_bytes = (counts[-1] - counts[0]) * about["bytes"]


def _above_most(places: Counter[Place]) -> Place | None:
    """The innermost place that is above most of these, or one of them, None if there is none.
    Not within a chain, whose first link is as far as a name leads.
    """
    counts: Counter[Place] = Counter()
    if sum(places.values()) < _MEASURED:
        return None
    for place, number in places.items():
        for above in takewhile(lambda one: not one.is_in_chain, place.path()):
            counts[above] += number
    most = [one for one, number in counts.items() if number >= _MOST_OF * sum(places.values())]
    return max(most, key=lambda one: len(one.path()), default=None)


def _is_part(kind: type) -> bool:
    return issubclass(kind, weakref.ref) or is_ours(module_name(kind))


def _callbacks() -> int:
    """The number of callbacks of `atexit`, 0 if that is not known."""
    count = getattr(sys.modules.get(_ATEXIT), "_ncallbacks", None)
    return int(count()) if type(count) is types.BuiltinFunctionType else 0


def _is_garbage(things: list[Any], held: Counter[int]) -> bool:
    """Return True if some of these objects are in reference cycles that nothing refers to: their
    references come from what they lead to. Takes no search for what refers to them.
    """
    near = things[-_SEARCHED:]
    chosen = set(map(id, near))
    seen = set(chosen)
    for one in near:  # the list grows in the loop
        for found in gc.get_referents(one):
            if len(near) < _MOST_ON_WAY and id(found) not in seen and gc.is_tracked(found):
                seen.add(id(found))
                if not issubclass(type(found), (type, types.ModuleType, _Frame)):
                    near.append(found)
    one = found = None
    return not chosen.isdisjoint(map(id, unreachable_among(near, held)))


def _is_unreached(
    things: list[Any], known: Mapping[int, Place], ours: set[int], until_s: float
) -> tuple[bool | None, Place | None]:
    """True if nothing that a name leads to refers to these objects; None if that is not known after
    some steps, or once the time is over. And the place that leads to them, if that was found.
    """
    level: list[Any] = things[-_SEARCHED:]
    seen = {*map(id, level), id(level), id(things), *ours}
    for _ in range(_MOST_STEPS):
        # (Not the frame of this function: it would refer to itself.)
        found = [one for one in referrers(level) if type(one) is not _Frame]
        seen.add(id(found))
        above = [one for one in found if id(one) not in seen] or tasks_with(level)
        places = [known[id(one)] for one in above if id(one) in known]
        if places or any(map(_is_namespace, above)):
            return False, places[0] if places else None
        if not above:
            return True, None
        seen.update(map(id, above))
        seen.add(id(above))
        level = above
        if len(seen) > _MOST_REFERRERS:
            return False, None
        if thread_time() > until_s:
            break
    return None, None


def _is_namespace(thing: Any) -> bool:
    return type(thing) is types.ModuleType or (type(thing) is dict and "__builtins__" in thing)


def _attribute_in_cycle(thing: Any, arrays: Arrays) -> str:
    """The attribute by which an object leads back to itself, "" if there is none."""
    for name, value in _attributes(thing, arrays):
        if _leads_to(value, thing, arrays):
            return name
    return ""


def _attributes(thing: Any, arrays: Arrays) -> Iterator[tuple[str, Any]]:
    kind = type(thing)
    if arrays.is_tensor(kind):
        yield "grad", arrays.grad(thing)
        return
    fields = Fields(kind)
    attributes = list((fields.of(thing) or {}).items())
    yield from (pair for pair in attributes if type(pair[0]) is str)
    for name, get in fields.slots:
        try:
            yield name, get(thing)
        except ours(AttributeError):  # not assigned yet
            continue


def _leads_to(start: Any, end: Any, arrays: Arrays) -> bool:
    todo = [start]
    seen: set[int] = set()
    kept: list[Any] = []  # else an address may be used again
    while todo and len(seen) < _MOST_ON_WAY:
        one = todo.pop()
        if one is end:
            return True
        if id(one) in seen or issubclass(type(one), (type, types.ModuleType)):
            continue
        seen.add(id(one))
        kept.append(one)
        todo += arrays.referents(one)
    return False
