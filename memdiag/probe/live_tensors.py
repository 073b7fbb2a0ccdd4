"""Counts the live tensors of this process, without importing torch and without using any tensor.

The garbage collector knows every tensor with a Python object. A tensor that only the autograd graph
keeps has one in torch 2.13, if it ever had, and none in older versions, where it is not counted.
Nor are those hidden by `gc.freeze()`. The collector is asked for the referrers of the tensor
classes, which every instance is: that takes half as long as checking each object.

Each pass over all objects is a single call of C code, lazily chained. No other thread runs
meanwhile, so no object lives longer because of it, and none is destroyed here. No attribute of an
unknown object is read (a lazy proxy would run code), only its type and, for genuine tensors, what
torch keeps in C.
"""

from __future__ import annotations

import gc
import sys
from itertools import compress, islice, starmap, tee, zip_longest
from operator import mul, not_
from sys import getrefcount

from . import young_garbage
from .graph_descent import followed, has_deep_graph, most_levels
from .ring_format import ABSENT
from .tracked_objects import objects_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

# With more tensors than this, the count of their storages itself would take 15 MB.
_MANY = 100_000
_GENERATIONS = ((0,), (1,), (2,))
# All objects are counted only at every fourth count, because it takes as long as the rest,
# beginning with the first: it takes 8 bytes per object, which stay with malloc and do not grow.
_OBJECTS_EVERY = 4
# A running count that is off by more than this number plus this share at two counts in a row counts
# something else. Heuristic: a program's annotations and tables hold fewer references.
_OFF, _OFF_PART = 16, 0.05

# Counting this many takes some 40 ms; graphs of models have a twentieth of it. Heuristic.
MOST_NODES = 20_000


class TensorCount:
    """Counts tensors by device, and the bytes of their storages unless there are too many."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._tensors = _Tensors(torch)
        self._looks = 0
        self._young_before = 0
        self.kinds: set[str] = set()  # of devices that tensors were on
        self.running = RunningCount(torch)

    def begin(self) -> None:
        """The program has done its first step: imports, some in that step, have made what there
        is."""
        self._young_before = young_garbage.young()

    def __call__(self, *, at_step: bool = False) -> dict[str, int] | None:
        """Readings by metric.

        at_step: a step has just ended in this thread. Then autograd's nodes are counted too (this
        thread releases them) and the running count is corrected.

        None if a count would run code of the program (inside a mode that intercepts every access
        to a tensor), or without the GIL.
        """
        torch = self._torch
        free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
        if free_threaded or torch._C._len_torch_function_stack():
            return None
        readings = {}
        if self._looks % _OBJECTS_EVERY == 0:
            readings["gc_objects"] = _objects()
        self._looks += 1
        readings["gc_enabled"] = int(young_garbage.is_collected())
        garbage = self._garbage()
        asked = self._tensors.look_for_kinds()
        referring = self.running.referring()
        counts = self._look(readings, garbage, at_step=at_step)
        if not counts and sys.version_info < (3, 9):
            # Instances may not refer to their class: check all objects.
            self._tensors.refer = False
            counts = self._look(readings, garbage, at_step=at_step)
            self._tensors.refer = not counts
        self._tensors.learn(asked, {id(kind) for kind, _ in counts})
        seen = readings["tensors"] = sum(counts.values())
        for name in ("tensors_cpu", "tensors_cuda", "tensors_other"):
            readings[name] = 0
        for (_, device), count in counts.items():
            kind = getattr(device, "type", "")
            self.kinds.add(kind)
            readings[_metric(kind)] += count
        if at_step:
            self.running.correct(referring, seen)
        return readings

    def _garbage(self) -> tuple[float, int, dict[int, int]] | None:
        """What nothing refers to: how many times as much there is, the bytes of its buffers, and
        the number of its tensors by storage."""
        self._young_before = min(self._young_before, young_garbage.young())
        found = young_garbage.unreachable(self._young_before)
        if found is None:
            return None
        objects, times = found
        addresses = _counted(self._tensors.addresses(objects))
        return times, young_garbage.buffer_bytes(objects), addresses

    def _look(
        self,
        readings: dict[str, int],
        garbage: tuple[float, int, dict[int, int]] | None,
        *,
        at_step: bool,
    ) -> dict[Any, int]:
        """Tensors by class and device. Other values are added to `readings`."""
        if self.running.referring() >= _MANY:
            return _counted(self._tensors.with_devices())
        results = most_levels() if at_step and not has_deep_graph() else 0
        rows = list(self._tensors.with_storages(results=results + 1 if results else 0))
        storages = {row[2]: row[3] for row in rows if row[2] is not None}
        readings["tensor_bytes"] = sum(storages.values())
        if garbage is not None:
            times, buffer_bytes, addresses = garbage
            bytes_on = {True: buffer_bytes, False: 0}  # {on the host: bytes}
            uses, devices = _counted(row[2] for row in rows), {row[2]: row[1] for row in rows}
            for address, tensors in addresses.items():
                if uses.get(address) == tensors:  # (else a tensor in use shares the storage)
                    on_host = getattr(devices[address], "type", "") == "cpu"
                    bytes_on[on_host] += storages[address]
            readings["gc_unreachable_bytes"] = int(times * bytes_on[True])
            readings["gc_unreachable_device_bytes"] = int(times * bytes_on[False])
        if results or not any(row[4] for row in rows):
            found = [row[5] for row in rows if row[5] is not None]
            nodes = None if len(found) > results else count_graph_nodes(found)
            readings["graph_nodes"] = ABSENT if nodes is None else nodes
        return _counted(row[:2] for row in rows)


class RunningCount:
    """The number of tensors, from the reference counts of their classes, in 0.1 us.

    Every instance of a class that was made in Python refers to it. The number of other references
    rarely changes, and is known from the last full count.
    """

    def __init__(self, torch: Any) -> None:
        self._tensor, self._parameter = torch.Tensor, torch.nn.Parameter
        self._others: int | None = None
        self._mismatches = 0

    def __call__(self) -> int:
        """The number of tensors now, ABSENT if unknown."""
        others = self._others
        if others is None:
            return ABSENT
        return max(0, getrefcount(self._tensor) + getrefcount(self._parameter) - others)

    def referring(self) -> int:
        """The references now, for `correct`."""
        return getrefcount(self._tensor) + getrefcount(self._parameter)

    def correct(self, referring: int, tensors: int) -> None:
        """There were `tensors` tensors when their classes had `referring` references."""
        others = referring - tensors
        if self._others is not None:
            off = abs(others - self._others)
            self._mismatches = self._mismatches + 1 if off > _OFF + _OFF_PART * tensors else 0
        self._others = None if self._mismatches > 1 else others


class _Tensors:
    """Lazy looks at all tensors: what is iterated runs in C alone, once it is consumed in C."""

    def __init__(self, torch: Any) -> None:
        base = torch._C.TensorBase
        self._device = base.device.__get__
        self._storage = base.untyped_storage
        self._address = torch._C.StorageBase._cdata.__get__
        self._bytes = torch._C.StorageBase.nbytes
        self._is_grown = base.requires_grad.__get__
        self._is_inference = getattr(base, "is_inference", lambda _: False)  # from torch 1.9 on
        self._is_view = base._is_view
        self._version = base._version.__get__
        self._result_of = base.grad_fn.__get__
        self._root = torch.Tensor
        # The getters of these are in C; those of subclasses would call `__torch_function__`.
        self._plain: tuple[type, ...] = (torch.Tensor, torch.nn.Parameter)
        self._kinds: tuple[type, ...] = self._plain
        self._unused: dict[int, int] = {}
        self.refer = True  # instances refer to their class, as the collector sees it

    def look_for_kinds(self) -> dict[int, int]:
        """Find the classes of tensors. Those without instances are skipped until their reference
        count changes. Returns the argument for `learn`.
        """
        kinds = [kind for kind in _subclasses(self._root) if kind not in self._plain]
        referred = {id(kind): getrefcount(kind) for kind in kinds}
        asked = [kind for kind in kinds if self._unused.get(id(kind)) != referred[id(kind)]]
        self._kinds = (*self._plain, *asked)
        self._unused = {known: n for known, n in self._unused.items() if known in referred}
        return {id(kind): referred[id(kind)] for kind in asked}

    def learn(self, asked: dict[int, int], used: set[int]) -> None:
        """Of the classes in `asked`, only those in `used` have instances."""
        for kind, referred in asked.items():
            if kind in used:
                self._unused.pop(kind, None)
            else:
                self._unused[kind] = referred

    def addresses(self, objects: Iterable[Any]) -> Iterator[int]:
        """The identity of the storage of each plain tensor among these."""
        return map(self._address, map(self._storage, _of_types(self._plain, objects)))

    def with_devices(self) -> Iterator[tuple[type | None, Any]]:
        """Rows (a tensor's type, a plain tensor's device), as many as the longer of the two."""
        every, plain = tee(self._all(self._kinds))
        return zip_longest(map(type, every), map(self._device, _of_types(self._plain, plain)))

    def with_storages(
        self, *, results: int = 0
    ) -> Iterator[tuple[type | None, Any, int | None, int, bool | None, Any]]:
        """The same rows with the identity and size of the plain tensor's storage. Two more columns
        are not aligned: if a tensor that is not a parameter needs a gradient, and `grad_fn`s, at
        most `results` of them.
        """
        every, rest = tee(self._all(self._kinds))
        first, second, third, fourth = tee(_of_types(self._plain, rest), 4)
        storages, again = tee(map(self._storage, second))
        return zip_longest(
            map(type, every),
            map(self._device, first),
            map(self._address, storages),
            map(self._bytes, again),
            map(self._is_grown, _of_types((self._root,), third)),
            islice(self._results(fourth), results),
        )

    def _results(self, tensors: Iterable[Any]) -> Iterator[Any]:
        """The `grad_fn`s of tensors. Views that were changed in place are left out: torch would
        create the node anew, and warn.
        """
        kept, asked = tee(tensors)
        kept, asked = tee(compress(kept, map(self._is_grown, asked)))
        kept, views, changed = tee(compress(kept, map(not_, map(self._is_inference, asked))), 3)
        odd = map(mul, map(self._is_view, views), map(self._version, changed))
        return map(self._result_of, compress(kept, map(not_, odd)))

    def _all(self, kinds: Sequence[type]) -> Iterator[Any]:
        """All instances of exactly these classes."""
        if self.refer:
            return _of_types(kinds, iter(gc.get_referrers(*kinds)))
        # (`tee` would be among all objects, and so hold itself, and with it all others.)
        return iter(objects_of(frozenset(map(id, kinds))))


def _of_types(kinds: Sequence[type], objects: Iterable[Any]) -> Iterator[Any]:
    kept, asked = tee(objects)
    return compress(kept, _are_of_types(kinds, asked))


def _are_of_types(kinds: Sequence[type], objects: Iterable[Any]) -> Iterator[bool]:
    # By identity: metaclasses may define how classes are hashed and compared.
    return map(frozenset(map(id, kinds)).__contains__, map(id, map(type, objects)))


def _objects() -> int:
    return sum(map(len, starmap(gc.get_objects, _GENERATIONS)))


def _subclasses(kind: type) -> set[type]:
    found: set[type] = set()
    new = [kind]
    while new:
        one = new.pop()
        found.add(one)
        subclasses: list[type] = type.__subclasses__(one)
        new += [kind for kind in subclasses if kind not in found]
    return found


def _counted(items: Iterable[Any]) -> dict[Any, int]:
    from collections import Counter

    return Counter(items)


def _metric(kind: str) -> str:
    return f"tensors_{kind}" if kind in ("cpu", "cuda") else "tensors_other"


def count_graph_nodes(results: Iterable[Any]) -> int | None:
    """The number of autograd nodes that are reachable from the `grad_fn`s `results`, included.

    None if there are more than MOST_NODES, or too many one behind the other. A graph that is
    retained is not visible in any tensor that Python knows.
    """
    behind, is_all = followed(results, MOST_NODES)
    return len(behind) if is_all else None
