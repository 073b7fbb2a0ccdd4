"""Counts the live tensors of this process, without importing torch and without touching any.

The garbage collector knows every tensor that has a Python object; one that lives in the autograd
graph alone has none, and is not counted. Nor is what `gc.freeze()` hid.

Each pass over all objects is one single call of C code, lazily chained: while it runs no other
thread does, so no object lives a moment longer for it, and none is ever destroyed here because
we held it last. No attribute of a foreign object is read (a lazy proxy would run its code): the
type, and of genuine tensors what torch keeps in C.
"""

from __future__ import annotations

import gc
import sys
from itertools import chain, compress, starmap, tee, zip_longest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

# With more tensors than this, what a look at their storages holds itself would be felt (15 MB).
_MANY = 100_000
_GENERATIONS = ((0,), (1,), (2,))


class TensorCount:
    """Counts tensors by device, and the bytes of their storages where they are not too many."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._seen = _MANY  # until we know better
        self.kinds: set[str] = set()  # of devices that tensors were on

    def __call__(self) -> dict[str, int] | None:
        """Readings by metric.

        None where a look would run code of the program's (inside a mode that intercepts every
        access to a tensor), or where threads run truly in parallel.
        """
        torch = self._torch
        free_threaded = not getattr(sys, "_is_gil_enabled", lambda: True)()
        if free_threaded or torch._C._len_torch_function_stack():
            return None
        readings = {"gc_objects": _objects()}
        tensors = _Tensors(torch)
        if self._seen < _MANY:
            rows = list(tensors.with_storages())
            storages = {row[2]: row[3] for row in rows if row[2] is not None}
            readings["tensor_bytes"] = sum(storages.values())
            counts = _counted(row[:2] for row in rows)
        else:
            counts = _counted(tensors.with_devices())
        self._seen = sum(counts.values())
        for name in ("tensors_cpu", "tensors_cuda", "tensors_other"):
            readings[name] = 0
        for (_, device), count in counts.items():
            kind = getattr(device, "type", "")
            self.kinds.add(kind)
            readings[_metric(kind)] += count
        return readings


class _Tensors:
    """Lazy looks at all tensors: what is iterated runs in C alone, once it is consumed in C."""

    def __init__(self, torch: Any) -> None:
        base = torch._C.TensorBase
        self._device = base.device.__get__
        self._storage = base.untyped_storage
        self._address = torch._C.StorageBase._cdata.__get__
        self._bytes = torch._C.StorageBase.nbytes
        # Of these the getters answer in C; of subclasses they would ask `__torch_function__`.
        self._plain = {torch.Tensor, torch.nn.Parameter}
        self._kinds = self._plain | _subclasses(torch.Tensor)

    def with_devices(self) -> Iterator[tuple[type | None, Any]]:
        """(a tensor's type, a plain tensor's device): as long as the longer of the two."""
        every, plain = tee(_of_types(self._kinds, _all_objects()))
        return zip_longest(map(type, every), map(self._device, _of_types(self._plain, plain)))

    def with_storages(self) -> Iterator[tuple[type | None, Any, int | None, int]]:
        """The same, with the identity and size of the plain tensor's storage."""
        every, rest = tee(_of_types(self._kinds, _all_objects()))
        first, second = tee(_of_types(self._plain, rest))
        storages, again = tee(map(self._storage, second))
        return zip_longest(
            map(type, every),
            map(self._device, first),
            map(self._address, storages),
            map(self._bytes, again),
        )


def _all_objects() -> Iterator[Any]:
    return chain.from_iterable(starmap(gc.get_objects, _GENERATIONS))


def _of_types(kinds: set[type], objects: Iterable[Any]) -> Iterator[Any]:
    # By identity: types of types may define how they are hashed and compared.
    identities = frozenset(map(id, kinds))
    kept, asked = tee(objects)
    return compress(kept, map(identities.__contains__, map(id, map(type, asked))))


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
