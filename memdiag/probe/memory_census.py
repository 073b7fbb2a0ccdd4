"""Counts what is in memory at one moment: the largest tensors and arrays, and objects by type.

Each tensor gets the place that a name walk has reached it by. What no name reaches is looked for
among the objects that refer to it. Nothing that was found is kept, and no code of the program runs.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import Counter, deque
from itertools import compress, repeat
from math import inf
from operator import is_
from time import monotonic, thread_time

from .guard import ours
from .plain_access import (
    basic_bytes,
    class_name,
    length,
    module_name,
    simple_name,
    size_getter,
)
from .program_code import is_ours
from .tracked_objects import class_of_each, objects_of, referrers, sizes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Tuple

    from .kept_bytes import Arrays
    from .name_walk import Found, NameWalk
    from .places import Place

    # Its place (None: unknown; a tuple: a place and labels below it), class, shape, dtype, device,
    # whether it needs a gradient, and whether it is a leaf of a graph.
    Key = Tuple[Any, ...]

# With more blocks of Python's allocator than this a pass over all objects takes too long: an object
# has two or three blocks, and a million objects take 60 ms. Heuristic.
_MOST_BLOCKS = 4_000_000
# Of more tensors, every n-th stands for n, except large ones. One takes 2 us. Heuristic.
_MOST_TENSORS, _LARGE_BYTES = 20_000, 1 << 20
# What is written: groups of tensors and arrays, on the host and on devices, and types. Heuristic.
_MOST_GROUPS, _MOST_TYPES = 20, 30
# CPU time after which nothing more is begun; what was begun takes 40 ms beside torch. Heuristic.
_LONGEST_S = 0.5
# Tensors that are looked at between two readings of the clock.
_CHECK_EVERY = 200
# Groups without a name whose holders are looked for, and how far up. Heuristic.
_MOST_UNNAMED, _MOST_LEVELS = 8, 3
_LONGEST_NAME = 40
_GC_HEADER_BYTES = 16
_VARIABLE = frozenset(map(id, (dict, list, tuple, set, frozenset)))
_SEQUENCES = (list, tuple, set, frozenset, deque)
_CONTAINERS = frozenset(("dict", "list", "tuple", "set", "frozenset", "deque"))
_NOT_HOLDERS = (types.FrameType, types.ModuleType, types.CodeType)


def census(
    arrays: Arrays, walk: NameWalk | None, *, with_types: bool, until_s: float = inf
) -> dict[str, Any]:
    """A census as plain JSON.

    walk: one that has just ended and holds what it found; None: the census has no holders.
    with_types: count the objects by type, which takes half of the time. until_s: when nothing more
    is begun, on the monotonic clock.
    The result has `tensors` (their number and bytes), `groups` (of tensors and arrays that are
    alike, at one place), `types` (name, number, bytes of objects), and `notes`.
    """
    return _Census(arrays, walk, until_s).take(with_types=with_types)


class _Census:
    def __init__(self, arrays: Arrays, walk: NameWalk | None, until_s: float) -> None:
        self._arrays, self._walk = arrays, walk
        self._cpu_until_s, self._until_s = thread_time() + _LONGEST_S, until_s
        self._groups: dict[Key, list[float]] = {}  # number, bytes
        self._examples: dict[Key, Any] = {}  # a tensor of each group
        self._gradients: dict[int, Any] = {}
        self._inside: dict[Key, str] = {}  # class of an object that holds a group without a place
        self._types: dict[str, list[int]] = {}
        self._totals = [0, 0]
        self._notes: list[str] = []
        self._left_out: list[str] = []
        self._unreadable: Counter[str] = Counter()  # by the error

    def _is_over(self) -> bool:
        """Return True if there is no time left."""
        return thread_time() > self._cpu_until_s or monotonic() > self._until_s

    def take(self, *, with_types: bool) -> dict[str, Any]:
        if _are_countable():
            if with_types:
                self._count_types()
            kinds = self._arrays.tensors
            tensors = objects_of(frozenset(map(id, kinds))) if kinds else []
            self._count_tensors(tensors)
            del tensors[:]
            self._spread()
            self._find_unnamed()
        else:
            self._notes.append("there are too many Python objects to count them")
        self._count_named()
        if self._left_out:
            self._notes.append(f"the time was over before {', '.join(self._left_out)}")
        for error, count in self._unreadable.items():
            self._notes.append(f"{count} tensors or arrays could not be read: {error}")
        largest = self._largest(is_host=True) + self._largest(is_host=False)
        by_type = sorted(self._types.items(), key=lambda one: -one[1][1])[:_MOST_TYPES]
        return {
            "tensors": self._totals,
            "groups": [
                {**_described(key, *numbers), "inside": self._inside.get(key, "")}
                for key, numbers in largest
            ],
            "types": [[name, *numbers] for name, numbers in by_type],
            "notes": self._notes,
        }

    def _largest(self, *, is_host: bool) -> list[tuple[Key, list[float]]]:
        """The largest groups in the memory of the host, or of devices."""
        of = [one for one in self._groups.items() if (str(one[0][4]) == "cpu") is is_host]
        some = [one for one in of if one[1][0] >= 0.5]
        return sorted(some, key=lambda one: -one[1][1])[:_MOST_GROUPS]

    # -- what the garbage collector knows --------------------------------------------------------

    def _count_types(self) -> None:
        each = class_of_each()
        counts, kinds = Counter(map(id, each)), dict(zip(map(id, each), each))
        sizes = Counter(
            {known: count * basic_bytes(kinds[known]) for known, count in counts.items()}
        )
        for known in _VARIABLE:
            sizes[known] = 0
        for known, size in sizes_of(_VARIABLE):
            sizes[known] += size - _GC_HEADER_BYTES
        for known, count in counts.items():
            if not is_ours(module_name(kinds[known])):
                self._add_type(kinds[known], count, sizes[known] + count * _GC_HEADER_BYTES)

    def _add_type(self, kind: type, count: int, size_bytes: int) -> None:
        known = self._types.setdefault(_type_name(kind), [0, 0])
        known[0] += count
        known[1] += size_bytes

    def _count_tensors(self, tensors: list[Any]) -> None:
        """Count tensors by place and form. A storage counts with the first of its tensors; those
        with a place come first.
        """
        torch: Any = sys.modules.get("torch")
        if not tensors or _is_intercepted(torch):
            return
        self._find_gradients(torch, tensors)
        addresses, sizes = self._arrays.storages(tensors)
        rest = dict(zip(addresses, sizes))
        self._totals = [len(tensors), sum(rest.values())]
        for kind in self._arrays.tensors:
            own = dict(_of_kind(kind, zip(addresses, sizes), tensors))
            if own and self._types:
                self._add_type(kind, 0, sum(own.values()))
        each = len(tensors) // _MOST_TENSORS + 1
        if each > 1:
            self._notes.append(f"of tensors below 1 MiB one in {each} was looked at")
        is_taken = [size >= _LARGE_BYTES or _mixed(at) % each == 0 for at, size in enumerate(sizes)]
        columns = [list(compress(column, is_taken)) for column in (tensors, addresses, sizes)]
        # The largest first, in case there is not enough time.
        order = sorted(range(len(columns[2])), key=columns[2].__getitem__, reverse=True)
        columns = [list(map(column.__getitem__, order)) for column in columns]
        columns.append(list(map(self._place_of, columns[0])))
        for is_named in (True, False):
            chosen = [(place is not None) is is_named for place in columns[-1]]
            self._group(torch, [list(compress(column, chosen)) for column in columns], rest, each)

    def _group(self, torch: Any, columns: list[list[Any]], rest: dict[int, int], each: int) -> None:
        """Add tensors to their groups.

        columns: tensors, addresses and sizes of their storages, places. rest: the storages that do
        not count yet. each: the number of tensors that a small one stands for.
        """
        tensors = columns[0]
        for at in range(0, len(tensors), _CHECK_EVERY):
            if at and self._is_over():
                self._left_out.append(f"{len(tensors) - at} small tensors were looked at")
                break
            some = slice(at, at + _CHECK_EVERY)
            forms = self._forms(torch, tensors[some])
            for form, tensor, address, size, place in zip(forms, *(one[some] for one in columns)):
                if form is None:
                    continue
                key = (place, *form)
                weight = 1 if size >= _LARGE_BYTES else each
                numbers = self._groups.get(key)
                if numbers is None:
                    numbers = self._groups[key] = [0, 0]
                    self._examples[key] = tensor
                numbers[0] += weight
                numbers[1] += weight * rest.pop(address, 0)

    def _forms(self, torch: Any, tensors: list[Any]) -> list[Any]:
        """The forms of tensors, None of those that have none: nested ones have no shape."""
        try:
            return list(_forms(torch, tensors))
        except ours(Exception) as error:
            if len(tensors) == 1:
                self._leave_out(error)
                return [None]
            return [form for one in tensors for form in self._forms(torch, [one])]

    def _leave_out(self, error: Exception) -> None:
        """Count what could not be read, by the error."""
        self._unreadable[type(error).__name__] += 1

    def _place_of(self, thing: Any) -> Any:
        place = None if self._walk is None else self._walk.seen.get(id(thing))
        if place is not None and place.parent is not None:
            return place
        return self._gradients.get(id(thing))

    def _find_gradients(self, torch: Any, tensors: list[Any]) -> None:
        """Add the gradients, and give each the place of its tensor: no object refers to them, and
        some have no object of their own.
        """
        get, is_leaf = torch._C.TensorBase.grad.__get__, torch._C.TensorBase.is_leaf.__get__
        known = set(map(id, tensors))
        leaves = [one for one in compress(tensors, map(is_leaf, tensors)) if get(one) is not None]
        for leaf in leaves:
            gradient, place = get(leaf), self._place_of(leaf)
            if place is not None:
                self._gradients[id(gradient)] = (place, ("attribute", "grad", "Tensor", "", 0))
            if id(gradient) not in known and self._arrays.is_tensor(type(gradient)):
                tensors.append(gradient)

    # -- what no name has reached ----------------------------------------------------------------

    def _spread(self) -> None:
        """A walk visits only some of the items of a large container: give the places of these the
        tensors of the same form that have no place.
        """
        found = {} if self._walk is None else self._walk.found
        missing: dict[Key, dict[Key, float]] = {}
        for key, (count, _) in self._groups.items():
            known = found.get(key[0])
            if known is not None and known.objects > count:
                missing.setdefault((None, *key[1:]), {})[key] = known.objects - count
        for key, places in missing.items():
            if key not in self._groups:
                continue
            part = min(1.0, self._groups[key][0] / sum(places.values()))
            for place, count in places.items():
                self._move(key, place, min(1.0, part * count / self._groups[key][0]))

    def _move(self, key: Key, other: Key, share: float) -> None:
        """Move a part of a group to another one."""
        numbers, others = self._groups[key], self._groups.setdefault(other, [0, 0])
        for at, number in enumerate(numbers):
            others[at] += share * number
            numbers[at] -= share * number

    def _find_unnamed(self) -> None:
        """Look for the holders of the largest groups without a place. One tensor stands for all."""
        unnamed = [key for key, numbers in self._groups.items() if not key[0] and numbers[0] >= 1]
        unnamed.sort(key=lambda key: -self._groups[key][1])
        waiting = [(key, self._examples[key], ()) for key in unnamed[:_MOST_UNNAMED]]
        self._examples.clear()
        for _ in range(_MOST_LEVELS):
            if not waiting:
                break
            if self._is_over():
                self._left_out.append("the holders of tensors without a name were found")
                break
            waiting = self._one_level_up(waiting)

    def _one_level_up(self, waiting: Any) -> Any:
        things = [thing for _, thing, _ in waiting]
        wanted = {id(thing) for thing in things}
        own = {id(things), id(waiting)}
        holders: dict[int, list[Any]] = {}
        for holder in referrers(things):
            if id(holder) in own or issubclass(type(holder), _NOT_HOLDERS) or _is_ours(holder):
                continue
            for inside in _referred(holder) & wanted:
                holders.setdefault(inside, []).append(holder)
        higher = []
        for key, thing, labels in waiting:
            found = holders.get(id(thing), ())
            named = [(h, self._place_of(h)) for h in found if self._place_of(h) is not None]
            if named:
                holder, place = named[0]
                label = _label(holder, thing)
                below = (getattr(place, "children", None) or {}).get(label[:2])
                outer = place if type(place) is tuple else (place,)
                where = below if below and not labels else (*outer, label, *labels)
                self._move(key, (where, *key[1:]), 1.0)
            elif found:
                if self._inside.get(key, "list") in _CONTAINERS:  # what holds those says more
                    self._inside[key] = _kind_of(found[0])
                higher.append((key, found[0], (_label(found[0], thing), *labels)))
        return higher

    # -- what only names lead to -----------------------------------------------------------------

    def _count_named(self) -> None:
        """Count arrays and texts, which the collector does not know, and the tensors too if it
        was not asked, as the walk has found them.
        """
        for place, found in () if self._walk is None else self._walk.found.items():
            if self._is_over():
                self._left_out.append("all arrays were counted")
                break
            try:
                if found.bytes:
                    self._count_place(place, found)
            except ours(Exception) as error:
                self._leave_out(error)

    def _count_place(self, place: Place, found: Found) -> None:
        """Count what a walk has found at a place, of each class by the objects that stand for all:
        items of one list may differ.
        """
        by_kind: dict[int, list[Any]] = {}
        for one in found.samples:
            by_kind.setdefault(id(type(one)), []).append(one)
        each = found.objects / len(found.samples)
        for some in by_kind.values():
            kind = type(some[0])
            form: tuple[tuple[int, ...], str] = (), ""
            if self._arrays.is_array(kind):
                form, size = self._arrays.form(some[0]), self._bytes_of_arrays(some, each)
            elif self._arrays.is_tensor(kind) and self._totals[0]:
                continue
            elif len(by_kind) == 1:
                size = found.bytes
            elif length(some[0], kind) < 0:
                size = each * sum(map(size_getter(kind), some))
            else:
                continue
            key = (place, simple_name(kind), *form, "cpu", False, True)
            numbers = self._groups.setdefault(key, [0, 0])
            numbers[0] += each * len(some)
            numbers[1] += size

    def _bytes_of_arrays(self, arrays: list[Any], each: float) -> float:
        """The bytes of arrays, each of which stands for a number of them: those of one owner once,
        and none of owners that are counted elsewhere.
        """
        known = {id(one) for one in arrays}
        owners = {id(owner): owner for owner in map(self._arrays.owner, arrays)}
        own = [
            self._arrays.array_bytes(owner)
            for owner in owners.values()
            if (id(owner) in known or self._place_of(owner) is None)
            and not self._arrays.is_tensor(type(self._arrays.array_base(owner)))
        ]
        return sum(own) * (1 if len(owners) == 1 < len(arrays) else each)


def _forms(torch: Any, tensors: list[Any]) -> Iterator[Any]:
    """For each tensor its class, shape, dtype, device, whether it needs a gradient, and whether it
    is a leaf of a graph. All of it runs in C.
    """
    base = torch._C.TensorBase
    get = [base.shape, base.dtype, base.device, base.requires_grad, base.is_leaf]
    columns = [map(one.__get__, tensors) for one in get]
    return zip(map(simple_name, map(type, tensors)), *columns)


def _mixed(number: int) -> int:
    """A number that has no pattern in common with its neighbors'."""
    return (number * 2654435761 & 0xFFFFFFFF) >> 12


def _of_kind(kind: type, rows: Iterable[Any], objects: list[Any]) -> Iterator[Any]:
    """The rows of the objects that are of exactly this class."""
    return compress(rows, map(is_, map(type, objects), repeat(kind)))


def _type_name(kind: type) -> str:
    module = module_name(kind)
    name = class_name(kind)[:_LONGEST_NAME]
    return name if module in ("builtins", "") else f"{module[:_LONGEST_NAME]}.{name}"


def _are_countable() -> bool:
    """Return True if a pass over all objects takes little time, and no other thread runs in it."""
    is_locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    blocks = getattr(sys, "getallocatedblocks", lambda: 0)()
    return is_locked and blocks <= _MOST_BLOCKS


def _is_intercepted(torch: Any) -> bool:
    """Return True inside a mode that would run code of the program at each access to a tensor."""
    depth = getattr(torch._C, "_len_torch_function_stack", lambda: 0)
    return bool(depth())


def _is_ours(thing: Any) -> bool:
    return is_ours(module_name(type(thing)))


def _kind_of(thing: Any) -> str:
    """The class of an object, with the function of a generator or a coroutine."""
    name = simple_name(type(thing))
    if type(thing) in (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType):
        name = f"{name} {thing.__qualname__}"
    return name[:_LONGEST_NAME]


def _referred(holder: Any) -> set[int]:
    """Identities of what an object refers to, directly or by a tuple."""
    return {one for value in gc.get_referents(holder) for one in _reached(value)}


def _reached(value: Any) -> list[int]:
    """Identities of a value, and of its items if it is a tuple."""
    return [id(value), *map(id, gc.get_referents(value) if type(value) is tuple else ())]


def _label(holder: Any, thing: Any) -> tuple[str, str, str, str, int]:
    """How `holder` refers to `thing`."""
    kind = type(holder)
    if issubclass(kind, dict):
        keys = (
            key
            for key, value in list(dict.items(holder))
            if value is thing or (type(value) is tuple and id(thing) in _reached(value))
        )
        key = next(keys, None)
        if type(key) is str and len(key) < _LONGEST_NAME and length(holder, kind) < 100:
            return "key", key, "", "", 0
        return "item", "", "", "", 0
    if issubclass(kind, _SEQUENCES):
        return "item", "", "", "", 0
    return "inside", simple_name(kind)[:_LONGEST_NAME], "", "", 0


def _path(place: Any) -> list[Any]:
    """The names that lead to a group: of its place, and below it those found without a walk."""
    if place is None:
        return []
    first, *labels = place if type(place) is tuple else (place,)
    return [(p.kind, p.name, p.owner, p.file, p.line) for p in first.path()] + labels


def _described(key: Key, count: float, size_bytes: float) -> dict[str, Any]:
    place, kind, shape, dtype, device, needs_grad, is_leaf = key
    return {
        "path": _path(place),
        "type": kind[:_LONGEST_NAME],
        "shape": [int(length) for length in shape],
        "dtype": str(dtype).replace("torch.", ""),
        "device": str(device),
        "count": round(count),
        "bytes": round(size_bytes),
        "graph": needs_grad and not is_leaf,
    }
