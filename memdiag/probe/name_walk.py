"""Walks forward from the names of the program, and measures what each of them leads to.

It starts at the globals of the program's modules and at the local variables of running functions,
and follows attributes, items, closures, defaults and suspended generators. The way to an object is
what one would write to reach it, so a place that grows says by itself what holds the objects.

The number of visits and the time are limited. Nothing that was visited is kept afterwards, and no
code of the program runs (`plain_access`).
"""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections import deque
from math import inf
from time import monotonic, thread_time

from .graph_descent import followed, has_deep_graph, identity, number_of
from .graph_growth import nodes_since
from .guard import ours
from .kept_bytes import NODE_BYTES, Arrays
from .places import ALL_ITEMS, ITEM, Place, Places
from .plain_access import (
    CONTEXT_VALUE,
    MAY_LACK_DICTIONARY,
    ContextVar,
    Fields,
    cached,
    class_attributes,
    class_name,
    context_value,
    inherited_attribute,
    is_cache,
    length,
    locals_of,
    module_attributes,
    module_file,
    module_name,
    newest,
    oldest,
    set_attributes,
    simple_name,
    spread,
    why_not_read,
)
from .program_code import (
    GENERATORS,
    awaiting_frames,
    delegate,
    find_package_run,
    generator_frame,
    is_ours,
    is_shells,
    is_users,
    running_frames,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from .unnamed import Unnamed

# Visits of one walk: 1 to 2 us each. Heuristic.
_MOST_VISITS = 20_000
_LONGEST_S = 0.06
_CHECK_EVERY = 256
_MOST_UNNAMED = 2000  # visits of what no name of the program leads to
# Of a container with more than ALL_ITEMS, which stand for all; and of a further one behind several
# at its place. Heuristic.
_OLDEST, _NEWEST = 10, 50
_SEVERAL, _OF_FURTHER = 4, (1, 4)
# Keys of larger dictionaries are not names. Heuristic: axes of matplotlib have 83 attributes.
_MOST_NAMES, _MOST_ATTRIBUTES, _LONGEST_NAME = 24, ALL_ITEMS, 40
_LONG_TEXT = 1024
_MOST_NODES, _MOST_UNREAD = 10_000, 8
# Objects of a place that are measured more closely, and further names of one.
_MOST_SAMPLES, _MOST_ALIASES = 8, 4
# The kind of place that is a function with calls that have not returned.
RUNNING = "running"
_SIMPLE = frozenset(map(id, (int, float, bool, complex, type(None))))
_TEXTS = frozenset(map(id, (str, bytes, bytearray)))
_SKIPPED = (types.ModuleType, types.CodeType, types.FrameType, types.BuiltinFunctionType)
_CLASS_NAMES = frozenset(("__dict__", "__weakref__", "__doc__", "__module__"))
_CONTAINERS: tuple[Any, ...] = (list, dict, tuple, set, frozenset, deque)


class Found:
    """What one walk has found at a place. is_partial: it is larger, not all of it was counted.
    is_estimated: some objects stand for all. roots: the nodes that have made its tensors.
    has_others_graph: a graph of its tensors was counted at another place.
    new_objects: how many it has before the one that was the first in the walk before.
    """

    __slots__ = (
        "bytes",
        "depth",
        "has_others_graph",
        "is_container",
        "is_estimated",
        "is_partial",
        "items",
        "new_objects",
        "objects",
        "roots",
        "samples",
    )

    def __init__(self) -> None:
        self.objects = self.new_objects = self.items = self.bytes = 0.0
        self.is_container = self.is_partial = self.is_estimated = False
        self.has_others_graph = False
        self.depth = 0
        self.roots: list[Any] = []
        self.samples: list[Any] = []

    def size(self) -> tuple[str, float]:
        """What its size is counted in ("bytes", "items" or "objects"), and the size."""
        if self.bytes:
            return "bytes", self.bytes
        return ("items", self.items) if self.is_container else ("objects", self.objects)

    def set_size_of(self, place: Place, walk: int, counted: set[int]) -> None:
        """Set the size of its place. One with a graph or a chain that is too large to count has
        grown by the nodes or links that come before the first one of the walk before. One whose
        graph counts elsewhere is not measured: a variable of a running function has it for a while.
        counted: the nodes of other places.
        """
        unit, size = self.size()
        if self.has_others_graph and not self.roots and unit == "bytes":
            return
        if self.is_partial and place.sizes:
            more = None if self.is_estimated else self._more(unit, place, counted)
            size = -1.0 if more is None else place.sizes[-1][1] + more
        if size >= 0:
            place.measured(walk, unit, size)
        if self.roots:
            place.first_root = identity(self.roots[0])
        place.first_object = id(self.samples[0]) if self.samples else 0

    def _more(self, unit: str, place: Place, counted: set[int]) -> float | None:
        """What a place has grown by that is larger than what was counted, None if unknown."""
        if unit == "objects":
            return self.new_objects or None
        nodes = nodes_since(self.roots, place, counted) if self.roots else None
        return None if nodes is None else nodes * NODE_BYTES


class NameWalk:
    """One walk. `found` holds objects: let go of it at once."""

    def __init__(
        self,
        places: Places,
        arrays: Arrays,
        unnamed: Unnamed | None = None,
        failed: Sequence[Any] = (),
        until_s: float = inf,
    ) -> None:
        """unnamed: where to begin after the names of the program. failed: the frames of functions
        that have failed, which still have their local variables. until_s: when it is cut off, on
        the monotonic clock.
        """
        self._failed, self._until_s = failed, until_s
        self.found: dict[Place, Found] = {}
        self.files: set[str] = set()
        self.unread: dict[str, str] = {}  # functions whose variables are left out, and why
        self.visits = 0
        self.is_cut = self.has_all_names = False
        self._places, self._arrays, self._unnamed = places, arrays, unnamed
        self._more_items = places.more_items
        self._entered: set[int] = set()  # classes of libraries
        self.seen: dict[int, Place] = {}
        self._todo: deque[tuple[Any, Place, float, int]] = deque()
        self._fields: dict[int, Fields] = {}
        # (Functions, not bound methods: a cycle would keep what was found until a collection.)
        self._visit_of: dict[int, Callable[..., None]] = {}
        self._sources: dict[str, str] = {}
        self._graphs: list[tuple[Any, Found, float]] = []  # the node that made a tensor
        self._held: list[Any] = []  # else an address may be used again

    def run(self) -> None:
        """Walk. Places that were not visited to the end are left out of `found`.

        has_all_names: what is left out is what no name of the program leads to.
        """
        until_s = thread_time() + _LONGEST_S
        self._leave_out_ours()
        unnamed = self._unnamed
        find_package_run()
        running, awaiting = self._frames()
        frames = [*self._failed, *running, *awaiting]
        if unnamed is not None:
            self._entered = {id(value) for _, _, value in _values(unnamed)}
        self._begin()
        depth = 0
        for group in self._groups(frames, len(awaiting)):
            for frame in group:
                self._put_frame(frame, self._places.root, 1.0, depth)
            depth = self._follow(depth, until_s, _MOST_VISITS)
        self.has_all_names = not self.is_cut
        if unnamed is not None and self.has_all_names:
            self._more_items = 0
            self._put_unnamed(unnamed, depth)
            depth = self._follow(depth, until_s, _MOST_UNNAMED)
        self._count_graphs()
        if self.is_cut:
            self._leave_out_partial(depth)
        self._todo.clear()
        self._graphs.clear()
        self._held.clear()

    def _groups(self, frames: list[Any], awaiting: int) -> list[list[Any]]:
        """The frames, of which the last ones await something, in the order of names: what a name of
        the program leads to has that name, however near a library's is. What a call leads to that
        runs now is named after one that has run since the first walk; and what a running function
        leads to is not named after one that waits for it.
        """
        calls = [(id(frame), id(frame.f_code)) for frame in frames]
        always = self._places.keep_running(set(calls))
        first = len(frames) - awaiting
        groups: dict[tuple[bool, bool, bool], list[Any]] = {}
        for at, (frame, call) in enumerate(zip(frames, calls)):
            is_library = not is_users(frame.f_code.co_filename)
            order = (True,) * 3 if is_library else (False, call not in always, at >= first)
            groups.setdefault(order, []).append(frame)
        return [groups[order] for order in sorted(groups)]

    def _follow(self, depth: int, until_s: float, most: int) -> int:
        """Visit all that is to be visited; the depth of the last visit."""
        todo, seen = self._todo, self.seen
        most = min(self.visits + most, _MOST_VISITS)
        while todo and not self.is_cut:
            thing, place, weight, depth = todo.popleft()
            if id(thing) in seen:
                continue
            self.visits += 1
            is_checked = self.visits % _CHECK_EVERY == 0
            if self.visits > most or (
                is_checked and (thread_time() > until_s or monotonic() > self._until_s)
            ):
                self.is_cut = True
                todo.appendleft((thing, place, weight, depth))
                break
            seen[id(thing)] = place
            self._visit(thing, type(thing), place, weight, depth)
        return depth

    def _leave_out_partial(self, depth: int) -> None:
        """Leave out what has objects that were not visited: at this depth or below it. Of a chain
        the links that were visited are known.
        """
        cut = {above for place in {one[1] for one in self._todo} for above in place.path()}
        cut = {place for place in cut if place.is_in_chain}
        for place, found in list(self.found.items()):
            if place.is_in_chain and not cut.isdisjoint(place.path()):
                found.is_partial = True
            elif found.depth >= depth:
                del self.found[place]

    # -- where it starts -----------------------------------------------------------------------

    def _leave_out_ours(self) -> None:
        for one in (self, self.__dict__, self._places, self.seen, self._todo, self.found):
            self.seen[id(one)] = self._places.root

    def _begin(self) -> None:
        modules = [
            (name, module, module_file(module))
            for name, module in list(sys.modules.items())
            if type(module) is types.ModuleType and type(name) is str and not is_ours(name)
        ]
        ours = [m for m in modules if m[0] == "__main__" or (m[2] and is_users(m[2]))]
        for _, module, _ in ours:
            self.seen[id(module_attributes(module))] = self._places.root
        for name, module, file in ours:
            if file:
                self.files.add(file)
            for key, value in list(module_attributes(module).items()):
                if type(key) is str and key[:2] != "__":
                    about = functools.partial(_about, name, file, 0)
                    self._put(value, self._places.root, ("global", key), 1.0, 0, about)

    def _frames(self) -> tuple[list[Any], list[Any]]:
        """The frames to begin at: of functions that run, and of those that wait."""
        return running_frames(), awaiting_frames()

    def _put_unnamed(self, unnamed: Unnamed, depth: int) -> None:
        root = self._places.root
        for module, name, value in _values(unnamed):
            about = functools.partial(_about, module, "", 0)
            self._put(value, root, ("global", name), 1.0, depth, about)
        for reference in unnamed.objects:
            thing = reference()
            if thing is not None:
                frame = generator_frame(thing)
                if frame is None:
                    self._put(thing, root, ("inside", simple_name(type(thing))), 1.0, depth)
                else:
                    label = ("inside", frame.f_code.co_name)
                    self._put(thing, root, label, 1.0, depth, _about_code(frame, frame.f_lineno))

    def _put_frame(self, frame: Any, place: Place, weight: float, depth: int) -> None:
        code = frame.f_code
        about = _about_code(frame, code.co_firstlineno)
        function, file, _ = about()
        if file:
            self.files.add(file)
        variables = locals_of(frame)
        reader = why_not_read(code) if file else ""
        if reader and len(self.unread) < _MOST_UNREAD:
            self.unread[function] = reader
        if file and place is self._places.root:
            self._count_call(frame.f_lineno, variables, about)
        shared = {*code.co_cellvars, *code.co_freevars}  # with functions in this one or around it
        for name, value in variables.items():
            label = ("local", name, "" if name in shared else function)
            self._put(value, place, label, weight, depth, about)

    def _count_call(self, line: int, variables: dict[str, Any], about: Any) -> None:
        """Count a call that has not returned: its function is a place that holds variables."""
        function, file, _ = about()
        place = self._places.child(self._places.root, (RUNNING, function, file), about)
        found = self.found.setdefault(place, Found())
        found.is_container, found.items = True, found.items + 1
        found.samples = found.samples or [[]]
        found.samples[0].append([one for one in variables.values() if id(one) not in self.seen])
        place.line = line  # of the longest-running thread, which comes last

    # -- visits --------------------------------------------------------------------------------

    def _put(
        self,
        thing: Any,
        place: Place,
        label: tuple[str, ...],
        weight: float,
        depth: int,
        about: Any = None,
    ) -> None:
        if id(type(thing)) in _SIMPLE:
            return
        known = self.seen.get(id(thing))
        if known is not None:
            _add_alias(known, label)
            return
        child = self._places.child(place, label, about, type(thing))
        # (The links of a chain behind one of many items are counted: each is visited once.)
        is_link = child.is_in_chain or (child.kind == "inside" and place.type == id(type(thing)))
        self._todo.append((thing, child, 1.0 if is_link else weight, depth + 1))

    def _visit(self, thing: Any, kind: type, place: Place, weight: float, depth: int) -> None:
        try:
            visit = self._visit_of.get(id(kind))
            if visit is None:
                visit = self._visit_of[id(kind)] = self._visitor(kind)
            visit(self, thing, kind, place, weight, depth)
        except ours(Exception):  # another thread has changed it meanwhile
            return

    def _visitor(self, kind: type) -> Callable[..., None]:
        if id(kind) in _TEXTS:
            return NameWalk._visit_text
        if self._arrays.is_tensor(kind):
            return NameWalk._visit_tensor
        if self._arrays.is_array(kind):
            return NameWalk._visit_array
        if issubclass(kind, dict):
            return NameWalk._visit_dict
        if issubclass(kind, _CONTAINERS):
            return NameWalk._visit_items
        if is_ours(module_name(kind)) or is_shells(module_name(kind)):
            return _visit_nothing
        if is_cache(kind):
            return NameWalk._visit_cache
        of_bases: tuple[tuple[Any, Callable[..., None]], ...] = (
            (ContextVar, NameWalk._visit_context_variable),
            (types.FunctionType, NameWalk._visit_function),
            (types.MethodType, NameWalk._visit_method),
            (functools.partial, NameWalk._visit_partial),
            (GENERATORS, NameWalk._visit_generator),
            (type, NameWalk._visit_class),
            (_SKIPPED, _visit_nothing),
        )
        found = (visit for base, visit in of_bases if issubclass(kind, base))
        return next(found, NameWalk._visit_instance)

    def _record(self, thing: Any, place: Place, weight: float, depth: int) -> Found:
        found = self.found.get(place)
        if found is None:
            found = self.found[place] = Found()
        if id(thing) == place.first_object:
            found.new_objects = found.objects
        found.objects += weight
        found.is_estimated = found.is_estimated or weight > 1.0
        found.depth = max(found.depth, depth)
        if len(found.samples) < _MOST_SAMPLES:
            found.samples.append(thing)
        return found

    def _visit_text(self, text: Any, kind: type, place: Place, weight: float, depth: int) -> None:
        if len(text) > _LONG_TEXT:
            self._record(text, place, weight, depth).bytes += weight * len(text)

    def _visit_tensor(
        self, tensor: Any, kind: type, place: Place, weight: float, depth: int
    ) -> None:
        _, size, _ = self._arrays.storage(tensor)
        node = self._arrays.node(tensor)
        found = self._record(tensor, place, weight, depth)
        if node is not None:
            self._graphs.append((node, found, weight))
        elif self._arrays.has_unread_graph(tensor):
            found.is_partial = True
        found.bytes += weight * size
        hooks = self._arrays.hooks(tensor)
        if hooks is not None:
            self._put(hooks, place, ("attribute", "_backward_hooks"), weight, depth)
        self._put_set_attributes(tensor, kind, place, weight, depth)

    def _count_graphs(self) -> None:
        """Count the graphs of the tensors: the nodes that two of them have are those of the older
        tensor, which the newer one was made of.
        """
        if not self._graphs:
            return
        behind = self._behind([node for node, _, _ in self._graphs])
        for node, found, weight in sorted(self._graphs, key=lambda one: number_of(one[0])):
            if id(node) in self.seen:
                found.has_others_graph = True
                continue
            nodes = self._nodes_of(node, behind)
            found.bytes += weight * len(nodes) * NODE_BYTES
            found.is_partial = found.is_partial or any(id(one) not in behind for one in nodes)
            if len(found.roots) < ALL_ITEMS:
                found.roots.append(node)

    def _behind(self, roots: list[Any]) -> dict[int, list[Any]]:
        """The nodes right behind each of those that were followed."""
        return followed([] if has_deep_graph() else roots, _MOST_NODES)[0]

    def _nodes_of(self, root: Any, behind: dict[int, list[Any]]) -> list[Any]:
        """The nodes of a graph that no tensor before had, the newest first."""
        nodes, seen = [root], self.seen
        seen[id(root)] = self._places.root
        for node in nodes:  # the list grows in the loop
            for before in behind.get(id(node), ()):
                if before is not None and id(before) not in seen:
                    seen[id(before)] = self._places.root
                    nodes.append(before)
        self._held += nodes
        return nodes

    def _visit_array(self, array: Any, kind: type, place: Place, weight: float, depth: int) -> None:
        owner = self._arrays.owner(array)
        found = self._record(array, place, weight, depth)
        number, items = self._arrays.objects(owner, ALL_ITEMS + self._more_items)
        if items:
            found.is_container, found.items = True, found.items + weight * number
        else:
            found.bytes += weight * self._arrays.array_bytes(owner)
        for item in items:
            self._put(item, place, ITEM, weight * number / len(items), depth)
        if gc.is_tracked(array):  # of a subclass
            self._put_set_attributes(array, kind, place, weight, depth)

    def _put_set_attributes(
        self, thing: Any, kind: type, place: Place, weight: float, depth: int
    ) -> None:
        """What the program has set on an array or a tensor, `parameter.history = []`."""
        attributes = set_attributes(thing)
        if attributes is not None:
            self.seen[id(attributes)] = place
            about = self._about_class(kind)
            self._put_pairs(attributes, "attribute", place, weight, depth, _MOST_ATTRIBUTES, about)

    def _visit_items(
        self, container: Any, kind: type, place: Place, weight: float, depth: int
    ) -> None:
        number = length(container, kind)
        is_record = issubclass(kind, tuple) and number <= _MOST_SAMPLES
        found = self._record(container, place, weight, depth)
        if is_record:
            names = _names_in(kind)
            about = self._about_class(kind) if names else None
            for at, item in enumerate(oldest(container, kind, number)):
                label = ("attribute", names[at]) if at < len(names) else ("item", str(at))
                self._put(item, place, label, weight, depth, about)
        else:
            self._put_items(container, kind, place, weight, depth, found)

    def _put_items(
        self, container: Any, kind: type, place: Place, weight: float, depth: int, found: Found
    ) -> None:
        number = length(container, kind)
        found.is_container, found.items = True, found.items + weight * number
        if number <= ALL_ITEMS:
            items = oldest(container, kind, ALL_ITEMS)
        else:
            is_further = found.objects > _SEVERAL
            first, last = _OF_FURTHER if is_further else (_OLDEST, _NEWEST)
            items = oldest(container, kind, first) + newest(container, kind, last)
            items += [] if is_further else self._further(container, kind)
        each = weight * number / max(1, len(items))
        for item in items:
            self._put(item, place, ITEM, each, depth)

    def _further(self, container: Any, kind: type) -> list[Any]:
        """Items of a large container between the oldest and the newest."""
        return spread(container, kind, self._more_items) if self._more_items else []

    def _visit_dict(
        self, container: Any, kind: type, place: Place, weight: float, depth: int
    ) -> None:
        number = dict.__len__(container)
        # (The attributes of one of many objects grow by what they are bound to.)
        is_further = False
        if not (place.kind == "inside" and weight > 1.0 and number <= _MOST_NAMES):
            found = self._record(container, place, weight, depth)
            found.is_container, found.items = True, found.items + weight * number
            is_further = found.objects > _SEVERAL
        self._put_pairs(container, "key", place, weight, depth, _MOST_NAMES, is_further=is_further)

    def _put_pairs(
        self,
        pairs: Any,
        label: str,
        place: Place,
        weight: float,
        depth: int,
        most_names: int,
        about: Any = None,
        is_further: bool = False,
    ) -> None:
        number = dict.__len__(pairs)
        if number <= (most_names if is_further else ALL_ITEMS):
            items = oldest(pairs, dict, number)
        elif is_further:
            items = newest(pairs, dict, sum(_OF_FURTHER))
        else:
            items = newest(pairs, dict, _NEWEST) + self._further(pairs, dict)
        each = weight * number / max(1, len(items))
        for key, value in items:
            is_name = number <= most_names and type(key) is str and len(key) < _LONGEST_NAME
            self._put(value, place, (label, key) if is_name else ITEM, each, depth, about)

    def _visit_cache(self, cache: Any, kind: type, place: Place, weight: float, depth: int) -> None:
        number, _, entries = cached(cache)
        cache_place = self._places.child(place, ("cache", place.name))
        found = self._record(cache, cache_place, weight, depth)
        found.is_container, found.items = True, found.items + weight * number
        self._put(cache.__dict__.get("__wrapped__"), place, ("wrapped", ""), weight, depth)
        values = newest(entries, dict, _NEWEST) if entries else []
        each = weight * number / max(1, len(values))
        for _, value in values:
            self._put(value, cache_place, ITEM, each, depth)

    def _visit_context_variable(
        self, variable: Any, kind: type, place: Place, weight: float, depth: int
    ) -> None:
        # (Of this thread, which is that of the steps if there are any.)
        self._put(context_value(variable), place, CONTEXT_VALUE, weight, depth)

    def _visit_function(
        self, function: Any, kind: type, place: Place, weight: float, depth: int
    ) -> None:
        code = function.__code__
        is_ours = is_users(code.co_filename)
        if is_ours:
            if function.__globals__.get("__package__") == __package__:
                return
            self.files.add(code.co_filename)
            self._record(function, place, weight, depth)
        about = functools.partial(
            _about,
            function.__qualname__,
            code.co_filename if is_ours else "",
            code.co_firstlineno,
        )
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ours(ValueError):  # not assigned yet
                continue
            self._put(value, place, ("closure", name), weight, depth, about)
        if not is_ours:
            return
        defaults = function.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount][-len(defaults) :] if defaults else ()
        pairs = [*zip(names, defaults), *(function.__kwdefaults__ or {}).items()]
        for name, value in pairs:
            self._put(value, place, ("default", name), weight, depth, about)
        for name, value in list(function.__dict__.items()):
            self._put(value, place, ("attribute", name), weight, depth, about)

    def _visit_method(
        self, method: Any, kind: type, place: Place, weight: float, depth: int
    ) -> None:
        self._put(method.__self__, place, ("attribute", "__self__"), weight, depth)

    def _visit_partial(
        self, partial: Any, kind: type, place: Place, weight: float, depth: int
    ) -> None:
        if kind is functools.partial:
            self._record(partial, place, weight, depth)
            self._put(partial.func, place, ("attribute", "func"), weight, depth)
            for argument in (*partial.args, *(partial.keywords or {}).values()):
                self._put(argument, place, ("attribute", "args"), weight, depth)

    def _visit_generator(
        self, generator: Any, kind: type, place: Place, weight: float, depth: int
    ) -> None:
        self._record(generator, place, weight, depth)
        frame = generator_frame(generator)
        if frame is not None:
            self._put_frame(frame, place, weight, depth)
        inner = delegate(generator)
        if inner is not None:
            place.line = frame.f_lineno
            own = generator_frame(inner)
            label = ("inside", own.f_code.co_name)
            self._put(inner, place, label, weight, depth, _about_code(own, own.f_lineno))

    def _visit_class(self, one: Any, kind: type, place: Place, weight: float, depth: int) -> None:
        file = self._source_of(module_name(one))
        if not file and id(one) not in self._entered:
            del self.seen[id(one)]  # what it leads to is not known
            return
        about = functools.partial(_about, class_name(one), file, 0)
        for name, value in class_attributes(one):
            if name not in _CLASS_NAMES:
                is_wrapped = type(value) in (staticmethod, classmethod)
                plain = value.__func__ if is_wrapped else value
                self._put(plain, place, ("attribute", name), weight, depth, about)

    def _visit_instance(
        self, thing: Any, kind: type, place: Place, weight: float, depth: int
    ) -> None:
        fields = self._fields.get(id(kind))
        if fields is None:
            fields = self._fields[id(kind)] = Fields(kind)
        found = self._record(thing, place, weight, depth)
        about = self._about_class(kind)
        # An item of a large container has no name that one could look for, and asking for the
        # dictionary of an instance makes it larger (Python 3.11 and later).
        is_item = place.kind == "item" and weight > 1.0
        attributes = None if is_item else fields.of(thing)
        is_followed = (is_item or fields.has_more) and gc.is_tracked(thing)
        inside = gc.get_referents(thing) if is_followed else []
        if attributes is None and len(inside) > ALL_ITEMS:  # a container in C
            self._put_items(inside, list, place, weight, depth, found)
            return
        if fields.size is not None:
            size = fields.size(thing)
            found.bytes += weight * size if size > _LONG_TEXT else 0
        if attributes is not None:
            self.seen[id(attributes)] = place
            number = dict.__len__(attributes)
            if number > _MOST_ATTRIBUTES:
                found.is_container, found.items = True, found.items + weight * number
            self._put_pairs(attributes, "attribute", place, weight, depth, _MOST_ATTRIBUTES, about)
        for name, get in fields.slots:
            try:
                value = get(thing)
            except ours(AttributeError):  # not assigned yet
                continue
            self._put(value, place, ("attribute", name), weight, depth, about)
        self._put_inside(inside, kind, place, weight, depth, about, attributes)

    def _put_inside(
        self,
        inside: list[Any],
        kind: type,
        place: Place,
        weight: float,
        depth: int,
        about: Any,
        attributes: Any,
    ) -> None:
        """What an instance of a class refers to, in fields without a known name."""
        found = [one for one in inside if not issubclass(type(one), type) and one is not attributes]
        if MAY_LACK_DICTIONARY and len(found) == 1 and type(found[0]) is dict:
            # Links get the same place as those of objects that have no dictionary yet.
            found = [*(one for one in found[0].values() if type(one) is kind), *found]
        for value in found:
            self._put(value, place, ("inside", simple_name(type(value))), weight, depth, about)

    def _about_class(self, kind: type) -> Any:
        return functools.partial(_about, class_name(kind), self._source_of(module_name(kind)), 0)

    def _source_of(self, module: str) -> str:
        """The file of a module of the program; "" of a library's."""
        known = self._sources.get(module)
        if known is None:
            file = module_file(sys.modules.get(module))
            known = self._sources[module] = file if file and is_users(file) else ""
            if known:
                self.files.add(known)
        return known


def _about_code(frame: Any, line: int) -> Any:
    """The function of a frame, its file if it is of the program, and this line."""
    code = frame.f_code
    function = getattr(code, "co_qualname", code.co_name)
    file = code.co_filename if is_users(code.co_filename) else ""
    return functools.partial(_about, function, file, line)


def _names_in(kind: type) -> tuple[str, ...]:
    """The names of the items of a named tuple; none of other tuples."""
    names: Any = None if kind is tuple else inherited_attribute(kind, "_fields")
    if type(names) is not tuple or any(type(one) is not str for one in names):
        return ()
    return names


def _values(unnamed: Unnamed) -> list[tuple[str, str, Any]]:
    """(module, name, value) of the globals of libraries to begin at."""
    found = []
    for module, name in unnamed.globals:
        value = sys.modules.get(module)
        if type(value) is types.ModuleType and name in module_attributes(value):
            found.append((module, name, module_attributes(value)[name]))
    return found


def _about(owner: str, file: str, line: int) -> tuple[str, str, int]:
    return owner[:_LONGEST_OWNER], file, line


_LONGEST_OWNER = 120


def _add_alias(place: Place, label: tuple[str, ...]) -> None:
    kind, name = label[:2]
    if kind in ("item", "inside", "wrapped") or name == place.name:
        return
    if name not in place.aliases and len(place.aliases) < _MOST_ALIASES:
        place.aliases = (*place.aliases, name)


def _visit_nothing(
    walk: NameWalk, thing: Any, kind: type, place: Place, weight: float, depth: int
) -> None:
    """Do not follow modules, code and frames."""
