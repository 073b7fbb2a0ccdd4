"""How many bytes an object keeps: its own, and those of everything that hangs on it.

Storages of tensors are counted once per storage, arrays by the array that owns the memory, and an
autograd graph by its nodes and the tensors that they have saved. Modules are left out, and classes
that their module has under their name: they would be there anyway.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import deque
from math import inf
from time import thread_time

from .graph_descent import Descent, has_deep_graph, may_follow, may_read_node
from .guard import ours
from .plain_access import (
    CUDA_BLOCK_BYTES,
    Fields,
    cached,
    class_attributes,
    class_bytes,
    device_getter,
    has_getter,
    hides_memory,
    is_cache,
    is_made_at_run_time,
    length,
    newest,
    oldest,
    set_attributes,
    simple_name,
    size_getter,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# What a node takes with its edges and metadata: 770 to 790 B over 20,000 nodes, torch 2.13.
NODE_BYTES = 780
# A tensor without its storage: in malloc (over 20,000 kept `torch.empty`, torch 2.13), in Python.
_TENSOR_IN_MALLOC, _TENSOR_IN_PYTHON = 357, 80
_ARRAY_BYTES = 112
_FUNCTION_BYTES, _FRAME_BYTES = 150, 400
# Limits of one object, and of the time for one place. Heuristic.
_MOST_OBJECTS, _LONGEST_S = 10_000, 0.02
# Nodes of one graph while there is a graph that is too deep, beside which few may be followed.
_BESIDE_DEEP = 300
_CHECK_EVERY = 32
# Items that are measured together: what they share is counted once. Heuristic.
_NEWEST = 20
# As many newer ones than these at most are left out. Heuristic.
_MOST_IN_USE = 50
# Python's own allocator hands out blocks up to this size; it and malloc give multiples of 16 bytes,
# of which malloc needs 8 (CPython since 3.8, and glibc, on 64 bits).
SMALL_BYTES = 512
_UNIT_BYTES, _BEFORE_BYTES = 16, 8
_LEFT_OUT = (
    types.ModuleType,
    types.BuiltinFunctionType,
    property,
    staticmethod,
    classmethod,
)
_OF_CODE = (types.FrameType, types.FunctionType, types.CodeType, type)
_MOST_VIEWS = 20
_LONGEST_DTYPE = 60  # structured ones may have hundreds of fields
# The methods that give the parts of a sparse tensor, by its layout.
_OF_ROWS = ("crow_indices", "col_indices", "values")
_OF_COLUMNS = ("ccol_indices", "row_indices", "values")
_SPARSE = {
    "sparse_coo": ("_indices", "_values"),
    "sparse_csr": _OF_ROWS,
    "sparse_bsr": _OF_ROWS,
    "sparse_csc": _OF_COLUMNS,
    "sparse_bsc": _OF_COLUMNS,
}
# Of the keys of storages, and of what objects in C have on devices, beside the identities of
# objects.
STORAGE, DEVICE = "storage", "device"
# What an array may have its memory from, and is counted by itself.
LENDERS = (bytes, bytearray, memoryview)


class Arrays:
    """The getters in C of numpy's arrays and torch's tensors, of those that are imported."""

    def __init__(self) -> None:
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        self.array: Any = None
        self.tensors: tuple[Any, ...] = ()
        # Made by asking tensors for them. Identities.
        self.storage_classes: tuple[int, ...] = ()
        # Another version, or another module of this name, lacks what is read here.
        try:
            array: Any = numpy.ndarray  # type: ignore[union-attr]
            self._array_bytes, self._array_base = array.nbytes.__get__, array.base.__get__
            self._array_shape, self._array_dtype = array.shape.__get__, array.dtype.__get__
            self._array_flat = array.ravel
            self.array = array
        except ours(AttributeError):
            self.array = None
        try:
            self._use_torch(torch)
        except ours(AttributeError):
            self.tensors = ()

    def _use_torch(self, torch: Any) -> None:
        base, storage = torch._C.TensorBase, torch._C.StorageBase
        self._storage, self._device = base.untyped_storage, base.device.__get__
        self._address, self._bytes = storage.data_ptr, storage.nbytes
        self._node, self._is_view = base.grad_fn.__get__, base._is_view
        self._base = base._base.__get__
        self._version, self._hooks = base._version.__get__, base._backward_hooks.__get__
        self._is_inference = getattr(base, "is_inference", lambda _: False)
        self._layout, self._strided = base.layout.__get__, torch.strided
        self._sparse = {  # of the layouts that this version has
            getattr(torch, layout): [getattr(base, name) for name in names]
            for layout, names in _SPARSE.items()
            if hasattr(torch, layout) and all(hasattr(base, name) for name in names)
        }
        self._is_leaf, self._grad = base.is_leaf.__get__, base.grad.__get__
        self._numel, self._element_size = base.numel, base.element_size
        self._saved_by: dict[int, list[str]] = {}
        # The getters of other subclasses would call `__torch_function__`.
        self.tensors = (torch.Tensor, torch.nn.Parameter)
        self.storage_classes = (id(torch.UntypedStorage),)

    def is_tensor(self, kind: type) -> bool:
        """Return True for the classes of tensors whose getters are in C."""
        return any(kind is one for one in self.tensors)

    def is_array(self, kind: type) -> bool:
        """Return True for numpy's arrays and their subclasses."""
        return self.array is not None and issubclass(kind, self.array)

    def owner(self, array: Any) -> Any:
        """The array that owns the memory of a view."""
        for _ in range(_MOST_VIEWS):
            base = self._array_base(array)
            if base is None or not issubclass(type(base), self.array):
                break
            array = base
        return array

    def array_bytes(self, array: Any) -> int:
        """Bytes of the memory that an array owns."""
        return int(self._array_bytes(array))

    def objects(self, array: Any, most: int) -> tuple[int, list[Any]]:
        """How many objects an array holds, and about `most` of them from all over it.

        Of an array that owns its memory: it is not copied.
        """
        if type(array) is not self.array or self._array_dtype(array).char != "O":
            return 0, []
        flat = self._array_flat(array, "K")
        return len(flat), flat[:: max(1, len(flat) // most)].tolist()

    def newest_objects(self, array: Any, most: int) -> tuple[int, list[Any]]:
        """How many objects an array holds, and of these the first one and the last `most`; from all
        over it if it has several dimensions.
        """
        owner = self.owner(array)
        number, some = self.objects(owner, most)
        if len(self._array_shape(owner)) == 1 and number > most:
            flat = self._array_flat(owner, "K")
            some = [*flat[:1].tolist(), *flat[-most:].tolist()]
        return number, some

    def form(self, array: Any) -> tuple[tuple[int, ...], str]:
        """The shape and dtype of an array."""
        return self._array_shape(array), str(self._array_dtype(array))[:_LONGEST_DTYPE]

    def array_base(self, array: Any) -> Any:
        """What an owning array has its memory from, None if it is its own."""
        return self._array_base(array)

    def storage(self, tensor: Any) -> tuple[int, int, bool]:
        """The address and bytes of a tensor's storage, and whether it is on a device."""
        try:
            if self._layout(tensor) is self._strided:
                storage = self._storage(tensor)
                is_on_device = self._device(tensor).type not in ("cpu", "meta")
                return int(self._address(storage)), int(self._bytes(storage)), is_on_device
            parts = [self.storage(part) for part in self._parts(tensor)]
        except ours(Exception):  # a wrapper without a storage
            parts = []
        address, _, is_on_device = parts[-1] if parts else (id(tensor), 0, False)
        return address, sum(size for _, size, _ in parts), is_on_device

    def own_bytes(self, tensor: Any) -> int:
        """The bytes of a tensor's elements, of which its storage may have more."""
        try:
            return int(self._numel(tensor) * self._element_size(tensor))
        except ours(Exception):
            return 0

    def _parts(self, tensor: Any) -> list[Any]:
        """The indices and values of a sparse tensor; [] of others."""
        return [get(tensor) for get in self._sparse.get(self._layout(tensor), ())]

    def storages(self, tensors: list[Any]) -> tuple[list[int], list[int]]:
        """The addresses and the bytes of the storages of tensors."""
        try:
            found = list(map(self._storage, tensors))
            return list(map(self._address, found)), list(map(self._bytes, found))
        except ours(Exception):  # some are sparse
            some = [self.storage(one) for one in tensors]
            return [one[0] for one in some], [one[1] for one in some]

    def node(self, tensor: Any) -> Any:
        """The autograd node that made a tensor, None without one.

        Of a view whose memory was changed in place, the node of what it is a view of: torch might
        make its own anew, and warn. Beside a graph that is too deep, only few: `has_unread_graph`
        is true of the others.
        """
        try:
            if self._is_view(tensor) and self._version(tensor):
                tensor = self._base(tensor)
                if not self.is_tensor(type(tensor)):
                    return None
            if self._is_inference(tensor) or self._is_leaf(tensor) or not may_read_node():
                return None
            return self._node(tensor)
        except ours(Exception):
            return None

    def has_unread_graph(self, tensor: Any) -> bool:
        """Return True if beside a graph that is too deep, the one of a tensor was not read."""
        try:
            return has_deep_graph() and not self._is_leaf(tensor)
        except ours(Exception):
            return False

    def version(self, tensor: Any) -> int:
        """How often a tensor was changed in place, -1 if that is not counted."""
        try:
            return -1 if self._is_inference(tensor) else int(self._version(tensor))
        except ours(Exception):
            return -1

    def hooks(self, tensor: Any) -> Any:
        """The hooks of a tensor, None without any."""
        return self._hooks(tensor)

    def grad(self, tensor: Any) -> Any:
        """The gradient of a leaf of a graph, None without one."""
        try:
            return self._grad(tensor) if self._is_leaf(tensor) else None
        except ours(Exception):
            return None

    def referents(self, thing: Any) -> list[Any]:
        """What an object refers to, through the graph of autograd as well."""
        found, kind = gc.get_referents(thing), type(thing)
        if self.is_tensor(kind):
            found += [self.node(thing), self.grad(thing)]
        elif self.tensors and has_getter(kind, "next_functions"):
            try:
                found += [node for node, _ in thing.next_functions]
                found += self.saved(thing)
            except ours(Exception):  # freed by a backward pass
                pass
            if has_getter(kind, "variable"):
                found.append(thing.variable)
        return found

    def saved(self, node: Any) -> list[Any]:
        """The tensors that a node has saved, without calling hooks that would unpack them.

        Before torch 2.9 there is no such way, and they are not counted.
        """
        found = []
        kind = type(node)
        names = self._saved_by.get(id(kind))
        if names is None:
            names = [name for name in dir(node) if name.startswith("_raw_saved_")]
            self._saved_by[id(kind)] = names
        for name in names:
            try:
                raw = getattr(node, name)
                for one in raw if type(raw) in (tuple, list) else (raw,):
                    if one.unpack_hook is None and self.is_tensor(type(one.data)):
                        found.append(one.data)
            except ours(Exception):  # freed by a backward pass
                continue
        return found


class Kept:
    """What objects keep together: bytes by the identity of what has them.

    has_graph: a tensor with an autograd graph is in it. has_unread_graph: whose nodes do not count
    since there is a graph that is too deep.
    """

    def __init__(
        self, arrays: Arrays, without: Kept | None = None, *, longest_s: float = _LONGEST_S
    ) -> None:
        """without: what that keeps is left out. longest_s: CPU time until there is none left."""
        self._arrays = arrays
        self.found: dict[Any, int] = {} if without is None else dict.fromkeys(without.found, 0)
        self._sizes: dict[int, Callable[[Any], int]] = {}
        self._hiding: set[int] = set()  # classes
        self._device_sizes: dict[int, tuple[Callable[[Any], int], int]] = {}  # by class
        self._on_device: set[Any] = set()
        self._in_tensors: set[Any] = set()
        self._of_parameters: set[Any] = set()  # keys of what nodes have saved of them
        # Bytes of which only a part is kept by itself: the rest of what a view is of.
        self._beside_views = 0
        self._has_traceback = False
        # Else an address may be used again: objects of this one, and of those that count with it.
        # (Lists: if `Kept` held each other, what was counted would stay until a collection.)
        self._held: list[Any] = []
        self._all_held: list[list[Any]] = [] if without is None else without._all_held
        self._all_held.append(self._held)
        self._until_s = thread_time() + longest_s
        self.has_graph = self.has_unread_graph = False
        self.nodes = 0

    def add(self, thing: Any) -> None:
        """Count an object and what hangs on it."""
        todo, most = [thing], len(self.found) + _MOST_OBJECTS
        # (The list grows in the loop. The nearest come first: of a chain that is cut off, each link
        # has been counted with what it keeps.)
        for number, one in enumerate(todo, 1):
            if number % _CHECK_EVERY == 0 and (len(self.found) > most or self.is_over()):
                return
            if id(one) not in self.found and one is not None:
                self._count(one, type(one), todo)

    def leave_out(self, other: Kept) -> None:
        """Do not count what another one has counted, which was made without this one."""
        self.found.update(dict.fromkeys(other.found, 0))

    def is_over(self) -> bool:
        """Return True if there is no time left."""
        return thread_time() > self._until_s

    def total(self) -> tuple[int, int]:
        """Bytes in all, and on devices."""
        return sum(self.found.values()), sum(map(self.found.__getitem__, self._on_device))

    def kind(self) -> str:
        """What most of the bytes are of: "graph" wherever there is one, "tensors", "native" (what
        malloc has beside), or "python_objects" in Python's own allocator."""
        if self.has_graph:
            return "graph"
        sizes = dict.fromkeys(("tensors", "native", "python_objects"), 0)
        for key, size in self.found.items():
            is_small = size <= SMALL_BYTES
            of = "python_objects" if is_small else "native"
            if key in self._in_tensors:
                of = "tensors"
            sizes[of] += size
        return max(sizes, key=lambda of: sizes[of])

    def through(self) -> str:
        """What leads to most of the bytes and could do without: "view" (of a part of an array), or
        "traceback" (of an exception), else ""."""
        if self._has_traceback:
            return "traceback"
        return "view" if 2 * self._beside_views > self.total()[0] else ""

    def small_bytes(self) -> float:
        """The mean size of the small blocks among them, 0 if there are few."""
        small = [
            _TENSOR_IN_PYTHON if key in self._in_tensors else size
            for key, size in self.found.items()
            if 0 < size <= SMALL_BYTES and type(key) is int  # else a storage
        ]
        return sum(small) / len(small) if len(small) > 4 else 0.0

    def count_of(self, kind: type) -> int:
        """The number of objects of exactly this class among them."""
        return sum(1 for one in self._held if type(one) is kind)

    def hiding(self) -> tuple[int, str]:
        """The number of objects in C whose memory is not known, and the class of the last one: they
        refer to no others but such.
        """
        held = (one for one in self._held if id(type(one)) in self._hiding)
        found = [type(one) for one in held if not any(map(self._is_known, gc.get_referents(one)))]
        return len(found), simple_name(found[-1]) if found else ""

    def _is_known(self, thing: Any) -> bool:
        return id(type(thing)) not in self._hiding and _is_object(thing)

    def _count(self, one: Any, kind: type, todo: list[Any]) -> None:
        if issubclass(kind, _LEFT_OUT):
            return
        found = self.found
        if issubclass(kind, _OF_CODE):
            self._count_code(one, kind, todo)
        elif self._arrays.is_tensor(kind):
            self._count_tensor(one, todo)
        elif self._arrays.is_array(kind):
            self._count_array(one, todo)
        elif kind is dict and ("__builtins__" in one or "__build_class__" in one):
            return  # of a module, and of `builtins`
        else:
            found[id(one)] = self._size_of(one, kind)
            self._held.append(one)
            device_size = self._device_sizes.get(id(kind))
            if device_size is not None:
                self._count_on_device(one, *device_size)
            self._has_traceback = self._has_traceback or kind is types.TracebackType
            if gc.is_tracked(one) or kind in (tuple, dict):
                todo += gc.get_referents(one)
            if issubclass(kind, dict):
                todo += self._texts_of_keys(one)

    def _texts_of_keys(self, one: Any) -> list[Any]:
        """The keys of a dictionary of texts, which the collector does not see; [] if the first one
        is known: records have the same keys.
        """
        keys = list(dict.keys(one))
        return keys if keys and type(keys[0]) is str and id(keys[0]) not in self.found else []

    def _count_code(self, one: Any, kind: type, todo: list[Any]) -> None:
        found = self.found
        if kind is types.FrameType:
            found[id(one)] = _FRAME_BYTES
            todo += [x for x in gc.get_referents(one) if type(x) not in (dict, types.FrameType)]
        elif kind is types.FunctionType:
            found[id(one)] = _FUNCTION_BYTES
            todo += gc.get_referents(one)
        elif kind is types.CodeType:
            found[id(one)] = sys.getsizeof(one)
            todo += [one.co_consts, one.co_names, getattr(one, "co_linetable", None)]
        elif is_made_at_run_time(one):
            found[id(one)] = class_bytes(one)
            todo += [value for _, value in class_attributes(one)]

    def _count_array(self, one: Any, todo: list[Any]) -> None:
        owner = self._arrays.owner(one)
        base = self._arrays.array_base(owner)
        if owner is one or id(owner) not in self.found:
            size = self._arrays.array_bytes(owner)
            if base is not None and self._lends(base, type(base), size):
                size = 0
            self.found[id(owner)] = _ARRAY_BYTES + size
            self._beside_views += max(0, size - self._arrays.array_bytes(one))
        if owner is not one:
            self.found[id(one)] = _ARRAY_BYTES
        self._held += [one, owner]
        todo.append(base)
        if gc.is_tracked(one):  # of a subclass
            todo.append(set_attributes(one))
        todo += self._arrays.objects(owner, _MOST_OBJECTS)[1]

    def _lends(self, base: Any, kind: type, size: int) -> bool:
        """Return True if the memory that an array has from another object counts for that one."""
        is_known = self._arrays.is_tensor(kind) or kind in LENDERS
        return is_known or self._size_of(base, kind) >= size

    def _size_of(self, one: Any, kind: type) -> int:
        size = self._sizes.get(id(kind))
        if size is None:
            size = self._sizes[id(kind)] = size_getter(kind)
            if hides_memory(kind):
                self._hiding.add(id(kind))
            device_size = device_getter(kind)
            if device_size is not None:
                self._device_sizes[id(kind)] = device_size
        return _block_bytes(size(one))

    def _count_on_device(self, one: Any, size_of: Callable[[Any], int], unit: int) -> None:
        """Count the part of what an object has that is on a device as memory of that."""
        size = size_of(one)
        if size > 0:
            key = (DEVICE, id(one))
            self.found[id(one)] = max(0, self.found[id(one)] - size)
            self.found[key] = _whole_units(size, unit)
            self._on_device.add(key)
            self._in_tensors.add(key)

    def _count_tensor(self, tensor: Any, todo: list[Any]) -> None:
        todo.append(set_attributes(tensor))
        node = self._count_storage(tensor)
        if node is not None:
            self._count_graph(node)
        elif self._arrays.has_unread_graph(tensor):
            self.has_graph = self.has_unread_graph = True
        else:
            todo.append(self._arrays.grad(tensor))

    def _count_storage(self, tensor: Any) -> Any:
        """Count a tensor without its graph; the node that made it, None without one."""
        self._held.append(tensor)
        self.found[id(tensor)] = _TENSOR_IN_MALLOC + _TENSOR_IN_PYTHON
        address, size, is_on_device = self._arrays.storage(tensor)
        key = (STORAGE, address)
        self._in_tensors.update((key, id(tensor)))
        is_lent = key in self._of_parameters and type(tensor).__name__ != "Parameter"
        if key not in self.found and not is_lent:
            self.found[key] = _whole_units(size, CUDA_BLOCK_BYTES) if is_on_device else size
            self._beside_views += max(0, size - self._arrays.own_bytes(tensor))
            if is_on_device:
                self._on_device.add(key)
        return self._arrays.node(tensor)

    def _count_graph(self, root: Any) -> None:
        """Count nodes, each with the tensors that it has saved: where it is cut off, what was
        counted is that of whole nodes. Parameters are left out: their modules keep them.
        """
        self.has_graph = True
        found = self.found
        if id(root) in found:  # of a tensor that another node has saved
            return
        if not may_follow(0):
            self.has_unread_graph = True
            return
        most = self.nodes + _BESIDE_DEEP if has_deep_graph() else inf
        nodes = Descent([root], without=found)
        for node in nodes:
            found[id(node)] = 0
            is_checked = self.nodes % _CHECK_EVERY == _CHECK_EVERY - 1
            if self.nodes >= most or (is_checked and self.is_over()):
                break
            self._held.append(node)
            if type(node).__name__ == "AccumulateGrad":
                self._leave_out_parameter(node)
                continue
            self.nodes += 1
            found[id(node)] = NODE_BYTES
            saved = [one for one in self._arrays.saved(node) if id(one) not in found]
            for before in map(self._count_storage, saved):
                nodes.add(before, node)
        may_follow(nodes.levels())

    def _leave_out_parameter(self, node: Any) -> None:
        variable = node.variable
        if type(variable).__name__ == "Parameter" and id(variable) not in self.found:
            key = (STORAGE, self._arrays.storage(variable)[0])
            self.found.pop(key, None)  # counts again where the parameter itself is kept
            self._on_device.discard(key)
            self._of_parameters.add(key)


def _block_bytes(size: int) -> int:
    """The bytes that an allocator uses for a request of `size` bytes."""
    return _whole_units(size if size <= SMALL_BYTES else size + _BEFORE_BYTES, _UNIT_BYTES)


def _is_object(thing: Any) -> bool:
    """Return False for a class, and for a dictionary of attributes without any."""
    is_empty = type(thing) is dict and not thing
    return not is_empty and not issubclass(type(thing), type)


def _whole_units(size: int, unit: int) -> int:
    return -(-size // unit) * unit


# What one more program keeps that a function was compiled to: it is in C, and its size is not known
# (but it is not nothing).
COMPILED = {
    "bytes": 1.0,
    "device_bytes": 0.0,
    "hiding": 1.0,
    "hiding_type": "executable",
    "small_bytes": 0.0,
    "type": "program",
    "kind": "native",
    "through": "",
    "bound": None,
}


def per_item(containers: list[Any], arrays: Arrays, counted: Kept | None = None) -> dict[str, Any]:
    """What one more item of a container keeps: what the newest items keep together, without what
    an old one keeps as well, divided by their number.

    The result has `bytes`, `device_bytes`, `small_bytes`, `type`, `kind`, `through`, `bound`,
    `hiding` and `hiding_type`. counted: what other places keep, which is left out; what this one
    keeps is added.
    """
    old = Kept(arrays, without=counted)
    recent: list[tuple[Any, ...]] = []  # key and value of a dictionary, or the item alone
    slots, name, bound = 0.0, "", None
    for container in containers:
        things, bound, number = _items_of(container, arrays)
        kind = type(things)
        if number < 1 or len(recent) >= _NEWEST:
            continue
        old.found.update({id(container): 0, id(things): 0})  # to which items may refer
        # (The newest of all may be in use elsewhere, even through the items.)
        skipped = min(_MOST_IN_USE, number // 4)
        found = newest(things, kind, skipped + max(1, min(_NEWEST, number // 2)))[skipped:]
        if number > len(found):
            for one in _parts(oldest(things, kind, 1), kind):
                for part in one:
                    old.add(part)
        recent += _parts(found, kind)
        slots = size_getter(kind)(things) / number
        name = name or simple_name(type(found[0][1] if issubclass(kind, dict) else found[0]))
    new, count = Kept(arrays, without=old), 0
    whole = on_device = 0
    hiding = 0, ""
    for one in recent:
        for part in one:
            new.add(part)
        if new.is_over() and count:
            break  # not all of this one is counted
        whole, on_device = new.total()
        hiding = new.hiding()
        count += 1
    if counted is not None:
        counted.leave_out(new)
    each = max(count, 1)
    return {
        "bytes": whole / each + slots,
        "device_bytes": on_device / each,
        "hiding": hiding[0] / each,
        "hiding_type": hiding[1],
        "small_bytes": new.small_bytes(),
        "type": name,
        "kind": new.kind(),
        "through": new.through(),
        "bound": bound if type(bound) is int else None,
    }


def _parts(items: list[Any], kind: type) -> list[tuple[Any, ...]]:
    """What makes up each item. (The pairs of a dictionary are made by asking for them.)"""
    return items if issubclass(kind, dict) else [(one,) for one in items]


def per_object(things: list[Any], arrays: Arrays) -> dict[str, Any]:
    """What one object of a class keeps, of which some, oldest first, are given: what the newest
    keep together, without what the oldest keeps as well, divided by the number of objects of the
    class in that. They may lead to each other. The rest is as for items.
    """
    old = Kept(arrays)
    old.add(things[0])
    new = Kept(arrays, without=old)
    for one in things[-_NEWEST:]:
        new.add(one)
        if new.is_over():
            break
    return _per_unit(things[0], new, float(new.count_of(type(things[0]))))


def _items_of(container: Any, arrays: Arrays) -> tuple[Any, Any, int]:
    """The built-in container that holds the items, its greatest length, and how many there are."""
    kind = type(container)
    things, bound = container, None
    if is_cache(kind):
        number, bound, entries = cached(container)
        return entries, bound, number if entries else 0
    if arrays.is_array(kind):
        number, some = arrays.newest_objects(container, _MOST_IN_USE + _NEWEST)
        return some, None, number
    if length(container, kind) < 0:  # an object with attributes that are set anew, or in C
        attributes = Fields(kind).of(container)
        things = gc.get_referents(container) if attributes is None else attributes
    elif issubclass(kind, deque):
        bound = deque.maxlen.__get__(container)
    return things, bound, length(things, type(things))


def per_link(things: list[Any], arrays: Arrays, counted: Kept | None = None) -> dict[str, Any]:
    """What one more object of a chain keeps, of which the first ones are given, the newest first:
    what they keep without what the last of them keeps as well. The rest is as for items.
    """
    old = Kept(arrays, without=counted, longest_s=_LONGEST_S / 4)
    if len(things) > 1:
        old.add(things[-1])
    kept, units = Kept(arrays, without=old), 0
    whole = on_device = 0
    # (A container may refer to others of its class that are not links.)
    is_direct = any(one is two for one in gc.get_referents(things[0]) for two in things[1:2])
    for one in things[-2::-1] or things:
        kept.add(one)
        if kept.is_over() and units:
            break  # not all of this one is counted
        whole, on_device = kept.total()
        units = units + 1 if is_direct else kept.count_of(type(one))
    if not whole:  # the last one leads to all others
        return of_object(things[0], arrays, counted)
    if counted is not None:
        counted.leave_out(kept)
    about = _per_unit(things[0], kept, float(units))
    return {**about, "bytes": whole / max(1, units), "device_bytes": on_device / max(1, units)}


def of_object(
    thing: Any, arrays: Arrays, counted: Kept | None = None, *, first_bytes: float | None = None
) -> dict[str, Any]:
    """What a unit of a place keeps by which `thing` is reached: one object of several of its class,
    or a byte that the walk has counted. The rest is as for items.

    first_bytes: what a place of bytes had at first. A tensor that was as large then has grown by
    its graph alone.
    """
    kept = Kept(arrays, without=counted)
    kept.add(thing)
    units = float(kept.count_of(type(thing)) if first_bytes is None else kept.total()[0])
    if arrays.is_tensor(type(thing)):
        address, size, _ = arrays.storage(thing)
        units = size + kept.nodes * NODE_BYTES
        if kept.nodes and first_bytes is not None and size <= first_bytes:
            units -= size
            kept.found[STORAGE, address] = 0
    if counted is not None:
        counted.leave_out(kept)
    return _per_unit(thing, kept, units)


def _per_unit(thing: Any, kept: Kept, units: float) -> dict[str, Any]:
    whole, on_device = kept.total()
    hiding, hiding_type = kept.hiding()
    return {
        "bytes": whole / max(1.0, units),
        "device_bytes": on_device / max(1.0, units),
        "hiding": hiding / max(1.0, units),
        "hiding_type": hiding_type,
        "small_bytes": kept.small_bytes(),
        "type": simple_name(type(thing)),
        "kind": kept.kind(),
        "through": kept.through(),
        "bound": None,
        "has_unread_graph": kept.has_unread_graph,
    }
