"""What Python's garbage collector knows: classes, numbers, sizes, and the objects of some classes.

Each is read within one call of a function in C, during which no other thread runs, and no
collection either. Objects of other classes are not held for longer than that: they would be freed
later, and in another thread, than without memdiag. Of a tuple even a moment would be too long:
Python changes the length of one that it is making, as in `tuple(one for one in ...)`, only while
nothing else refers to it. With a list of all objects in another thread, the program would get a
SystemError (up to Python 3.13).
"""

from __future__ import annotations

import gc
import sys
import types
from array import array
from functools import partial
from itertools import chain, compress, groupby, repeat, starmap, tee
from operator import is_, is_not, itemgetter

from .plain_access import inherited_attribute
from .program_code import is_users

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any, TypeVar

    T = TypeVar("T")

_OLDEST_FIRST = ((2,), (1,), (0,))
_YOUNG = _OLDEST_FIRST[1:]
# Tuples within tuples, of which what refers to the outer one is looked for.
_MOST_NESTED = 2


def objects_of(known: Collection[int]) -> list[Any]:
    """The objects of these classes (identities), not of `tuple` or `list`. First come those that
    have survived most collections.
    """
    return _in_one_call(list, 2, partial(_of_classes, known))


def young_objects_of(known: Collection[int]) -> list[Any]:
    """The same of those that have survived fewer collections than most."""
    return _in_one_call(list, 2, partial(_of_classes, known), _YOUNG)


def objects_at(identities: Collection[int], known: Collection[int]) -> list[Any]:
    """Those objects of these classes that have these identities."""

    def chosen(*listings: Any) -> Iterator[Any]:
        asked = map(id, _of_classes(known, *listings[:2]))
        return compress(_of_classes(known, *listings[2:]), map(identities.__contains__, asked))

    return _in_one_call(list, 4, chosen)


def class_of_each() -> list[type]:
    """The class of each object."""
    return _in_one_call(list, 1, partial(map, type))


def sizes_of(known: Collection[int]) -> Iterator[tuple[int, int]]:
    """The identity of the class and the bytes of each object of these classes, whose size is read
    in C.
    """
    return _pairs(known, lambda things: map(id, map(type, things)), sys.getsizeof)


def lengths_of(known: Collection[int]) -> Iterator[tuple[int, int]]:
    """The identity and the length of each object of these classes, whose length is read in C."""
    return _pairs(known, partial(map, id), len)


def referrers(things: list[Any]) -> list[Any]:
    """What refers to some objects, but tuples: in their place what refers to these, or to tuples
    that they are in. None where comparing classes would run code of the program.
    """
    if not _are_compared_by_identity():
        return []
    kinds: list[Iterator[type]] = []
    some: list[Any] = []
    todo = [partial(_others, things, kinds)]
    for group in todo:  # the list grows in the loop
        found = _in_one_call(list, 0, group)
        some += [one for one in found if one is not None and one is not found]
        found.clear()  # it may be among those that are listed
        if any(kind is tuple for kind in kinds.pop()) and len(todo) <= _MOST_NESTED:
            todo.append(partial(_of_tuples, things, kinds, len(todo)))
    return some


def tasks_with(things: list[Any]) -> list[Any]:
    """The tasks of asyncio whose results are among some objects: `gc.get_referrers` misses them,
    because `TaskObj_traverse` (CPython, Modules/_asynciomodule.c) ignores the result of
    the visitor.
    """
    task = getattr(sys.modules.get("_asyncio"), "Task", None)
    tasks = [] if task is None else objects_of((id(task),))
    wanted = set(map(id, things))
    return [one for one in tasks if not wanted.isdisjoint(map(id, gc.get_referents(one)))]


def _in_one_call(
    collect: Callable[[Any], T],
    count: int,
    things: Callable[..., Iterator[Any]],
    generations: tuple[tuple[int], ...] = _OLDEST_FIRST,
) -> T:
    """Collect things in one call. A collection meanwhile could run code of the program.

    things: called with `count` listings of all objects. These are alike but for the youngest, which
    are made meanwhile. (One listing and `tee` would hold itself, as the objects of `tee` are among
    those listed.) They are read to their ends, where they let go of all: they hold themselves, too.
    generations: of the collector, those whose objects are listed.
    """
    listings = [chain.from_iterable(starmap(gc.get_objects, generations)) for _ in range(count)]
    ends = [compress(one, repeat(False)) for one in listings]
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return collect(chain(things(*listings), *ends))
    finally:
        if was_enabled:
            gc.enable()


def _of_classes(known: Collection[int], kept: Any, asked: Any) -> Iterator[Any]:
    # By identity: metaclasses may define how classes are hashed and compared.
    return compress(kept, map(known.__contains__, map(id, map(type, asked))))


def _pairs(
    known: Collection[int], first: Callable[[Any], Iterator[int]], second: Callable[[Any], int]
) -> Iterator[tuple[int, int]]:
    """Two numbers of each object of these classes."""

    def numbers(*listings: Any) -> Iterator[int]:
        firsts = first(_of_classes(known, *listings[:2]))
        return chain.from_iterable(zip(firsts, map(second, _of_classes(known, *listings[2:]))))

    found = _in_one_call(partial(array, "Q"), 4, numbers)
    return zip(found[::2], found[1::2])


def _others(things: list[Any], kinds: list[Iterator[type]]) -> Iterator[Any]:
    """What refers to some objects, but tuples. kinds: gets the classes of all, for later."""
    return _of_kind(is_not, _referring(iter([things])), kinds)


def _of_tuples(things: list[Any], kinds: list[Iterator[type]], depth: int) -> Iterator[Any]:
    """What refers to the tuples that refer to some objects, at `depth` tuples from these."""
    groups: Iterator[Iterable[Any]] = iter([things])
    for _ in range(depth):
        groups = iter([_of_kind(is_, _referring(groups), [])])
    return _of_kind(is_not, _referring(groups), kinds)


def _are_compared_by_identity() -> bool:
    """Return True if no metaclass of the program defines how classes are compared (`groupby`
    compares them). Those of libraries, as of typing_extensions, do no more than that."""
    todo = type.__subclasses__(type)
    seen: set[int] = set()
    while todo:
        kind = todo.pop()
        compares = inherited_attribute(kind, "__eq__")
        if type(compares) is types.FunctionType and is_users(compares.__code__.co_filename):
            return False
        if id(kind) not in seen:
            seen.add(id(kind))
            todo += type.__subclasses__(kind)
    return True


def _referring(groups: Iterator[Iterable[Any]]) -> Iterator[Any]:
    return chain.from_iterable(starmap(gc.get_referrers, groups))


def _of_kind(
    test: Callable[[Any, Any], bool], things: Iterator[Any], kinds: list[Iterator[type]]
) -> Iterator[Any]:
    """The things whose class is (or is not) `tuple`. They are read once the first is asked for.

    `tee` keeps classes and groups, not the things: it is among the objects that are listed. The
    None at the end is what `groupby` refers to afterwards.
    """
    groups, again = tee(groupby(chain(things, (None,)), type))
    asked, all_kinds = tee(map(itemgetter(0), again))
    kinds.append(all_kinds)
    return chain.from_iterable(
        compress(map(itemgetter(1), groups), map(partial(test, tuple), asked))
    )
