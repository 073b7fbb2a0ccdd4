"""Finds what grows although no name of the program leads to it: held by libraries, by suspended
generators that a loop runs over, and by objects that only C code refers to.

A look compares the lengths of all containers that the garbage collector knows with those of the
look before, and searches for what refers to those that grew. It takes 0.1 s or more, so it is taken
only while memory grows that the names do not explain, and a few times. It finds where to begin: the
walks after it measure. What has no such beginning is left to `unreached`.
"""

from __future__ import annotations

import gc
import sys
import types
import weakref
from array import array
from collections import OrderedDict, deque
from time import thread_time

from .plain_access import has_weak_references, is_pythons_own, module_attributes, module_name
from .program_code import (
    GENERATORS,
    delegate,
    generator_frame,
    is_ours,
    is_users,
    is_users_class,
)
from .tracked_objects import lengths_of, objects_at, objects_of, referrers, young_objects_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

# Each at 1.6 times the age of the one before. Heuristic: in a slow program the first come too soon.
MOST_LOOKS = 6
# Exactly these, whose lengths are read in C.
_GENERATORS = frozenset(map(id, GENERATORS))
_KINDS = frozenset(map(id, (list, dict, set, deque, OrderedDict)))
_LEAST_ITEMS = 8
# Each step from an object to what refers to it takes 25 ms beside torch, from 100 objects 75 ms;
# three times as much if tuples refer to them. Heuristic.
_MOST_FOLLOWED, _MOST_STEPS, _MOST_REFERRERS = 4, 6, 100
_MOST_GENERATORS = 50
# Objects that have survived less than two collections. Heuristic: by default there are fewer.
_MOST_YOUNG = 30_000
_Frame = types.FrameType


class Unnamed:
    """The looks of one process, and where the walks begin beside the names of the program.

    globals: (module, name) in libraries. objects: weak references to generators and instances.
    """

    def __init__(self) -> None:
        # Identities and lengths at the last look. (A dictionary of them would be thousands of
        # objects: memory that seems to be the program's.)
        self._before = array("Q"), array("q")
        self.globals: list[tuple[str, str]] = []
        self.objects: list[weakref.ref[Any]] = []
        self.looks = 0
        self._followed: set[int] = set()  # without finding anything

    def look(self, known: Collection[int], longest_s: float) -> None:
        """Look at the objects that the collector knows.

        known: identities of what names lead to, which is left out. longest_s: CPU time for the
        search for what refers to them.
        """
        self.looks += 1
        before = dict(zip(*self._before))
        identities, lengths = self._before = array("Q"), array("q")
        grown: dict[int, int] = {}
        for identity, number in lengths_of(_KINDS):
            if number >= _LEAST_ITEMS and identity not in known:
                identities.append(identity)
                lengths.append(number)
                if number > before.get(identity, number):
                    grown[identity] = number - before[identity]
        # Those that were followed in vain come last.
        order = sorted(grown, key=lambda one: (one in self._followed, -grown[one]))
        most = order[:_MOST_FOLLOWED]
        growing = objects_at(set(most), _KINDS) if most else []
        growing.sort(key=lambda one: most.index(id(one)))
        self.look_at_generators(known)
        until_s = thread_time() + longest_s
        ours = {id(growing)}
        for one in growing:
            if thread_time() < until_s and not self._follow(one, ours, known, until_s):
                self._followed.add(id(one))

    def look_at_generators(self, known: Collection[int]) -> bool:
        """Begin at suspended generators of the program as well. Returns True if there are new ones.

        known: as for `look`.
        """
        return self._begin_at_generators(objects_of(_GENERATORS), known)

    def look_at_young_generators(self, known: Collection[int]) -> bool:
        """The same for those made a short time ago, unless too many objects have been.

        known: as for `look`.
        """
        first, second, _ = gc.get_count()
        if first + second * gc.get_threshold()[0] > _MOST_YOUNG:  # collections may be disabled
            return False
        return self._begin_at_generators(young_objects_of(_GENERATORS), known)

    def _begin_at_generators(self, generators: list[Any], known: Collection[int]) -> bool:
        generators = [one for one in generators if id(one) not in known]
        inner = set(map(id, map(delegate, generators)))
        outer = [one for one in generators if _is_suspended(one) and id(one) not in inner]
        return self._begin_at(outer[-_MOST_GENERATORS:])

    def _begin_at(self, things: list[Any]) -> bool:
        old = [thing for thing in [one() for one in self.objects] if thing is not None]
        new = [thing for thing in things if not any(thing is one for one in old)]
        self.objects = [weakref.ref(thing) for thing in old + new]
        return bool(new)

    def _follow(self, thing: Any, ours: set[int], known: Collection[int], until_s: float) -> bool:
        """Go from an object to what refers to it, until that has a name or is of the program.

        Returns True if something was found.
        """
        level, name = [thing], None
        for _ in range(_MOST_STEPS):
            if not level or thread_time() > until_s:
                break
            # (Not the frame of this function: it would refer to itself.)
            above_all = [one for one in referrers(level) if type(one) is not _Frame]
            found, is_home = _global_of(above_all, level)
            name = found if is_home else name or found
            if is_home:
                break
            above: list[Any] = []
            ours |= {id(level), id(above_all), id(above)}
            for one in above_all:
                kind = type(one)
                if id(one) in ours or id(one) in known:
                    continue
                if name is None and is_users_class(kind) and has_weak_references(kind):
                    return self._begin_at([one])
                above.append(one)
            above.reverse()  # the oldest first: registries, not their items
            above.sort(key=lambda one: type(one) is not dict)  # namespaces first
            level = above[:_MOST_REFERRERS]
        if name is None or name in self.globals:
            return False
        self.globals.append(name)
        return True


def _is_suspended(generator: Any) -> bool:
    frame = generator_frame(generator)
    return frame is not None and is_users(frame.f_code.co_filename)


def _global_of(things: list[Any], level: list[Any]) -> tuple[tuple[str, str] | None, bool]:
    """The global that refers to one of some objects, and whether its module defines their class."""
    modules = {
        id(module_attributes(module)): name
        for name, module in list(sys.modules.items())
        if type(module) is types.ModuleType and type(name) is str and not is_ours(name)
    }
    wanted = set(map(id, level))
    found = None
    for one in things:
        if id(one) not in modules:
            continue
        module = modules[id(one)]
        for key, value in list(one.items()):
            if id(value) in wanted and type(key) is str:
                kind = type(value)
                defined = value if issubclass(kind, type) else kind
                if is_pythons_own(defined) or module_name(defined) == module:
                    return (module, key), True
                found = found or (module, key)
    return found, False
