"""Finds the line that adds to a place, in the syntax trees of the program's files.

A line that adds to a container contains the container's name: `NAME.append(...)`, `NAME[...] =`,
`NAME += ...`, `NAME = f(NAME)`, `heappush(NAME, ...)`, hands over `NAME.append`, or calls the
cached function; a variable that was bound to NAME, or to an item of it, stands for it. What only a
library holds grows where the program calls that library. Lines in the function or class that the
name belongs to come first, lines that do not run with the steps (`call_graph`) come last. Nothing
is executed.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memdiag import safe_open
from memdiag.capture.probelink.call_graph import CallGraph, Loop, within
from memdiag.capture.probelink.data_flow import DataFlow
from memdiag.values.holders import OBJECTS, RUNNING, UNREACHED, Holder, Name, SourceLine

_MOST_FILE_BYTES, _MOST_BYTES = 1 << 20, 8 << 20
_LONGEST_CODE = 200
_MOST_LINES = 3
# A line at which a place was seen to grow only once is not preferred to one of the search.
_LEAST_HITS = 2
# Methods that add to what they are called on: of the standard library, and as people name theirs.
_OF_CONTAINERS = ("append", "add", "extend", "insert", "update", "setdefault", "appendleft")
_OF_QUEUES = ("put", "put_nowait", "push", "feed")
_OF_OTHERS = ("register", "write", "record", "store", "subscribe")
_ADDS = frozenset((*_OF_CONTAINERS, *_OF_QUEUES, *_OF_OTHERS))
# Methods that give an item.
_ACCESS = frozenset(("get", "setdefault", "values", "items", ""))
# Functions that add to an argument.
_ADDS_TO_ARGUMENT = frozenset(
    ["heappush", "heappushpop", "insort", "insort_left", "insort_right", "setattr"]
)
# Decorators with which a function keeps what it returns.
_CACHES = frozenset([("cache",), ("lru_cache",)])
# What makes an empty container without arguments.
_EMPTY = frozenset(("list", "dict", "set", "deque", "OrderedDict", "Counter", "bytearray"))
_READS = frozenset(dir(builtins)) - {"setattr"}
# Points: how certain it is that a line of this form adds. Heuristic: a form that always adds to
# what it names has more than all that is known of where the line is.
_ADDING, _REBINDING, _RELATED, _CALLING, _PASSING, _BINDING = 20, 18, 16, 9, 5, 6
_HERE, _SAME_FILE, _IN_LOOP, _ONCE, _OTHER_NAME = 6, 2, 1, -13, -4
_LEAST = 5
# The attribute of torch's leaves whose graph leads back to them, and the call that binds it so.
_GRADIENT, _BINDS_GRADIENT = "grad", ("backward", "create_graph")
# What a server of `multiprocessing.managers` keeps for other processes.
_OF_MANAGER = "id_to_obj"
_OF_FUNCTIONS = frozenset(("local", "closure", "default"))
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a name. names: the chain, `self.cache["x"].append` is (self, cache, x, append).

    form: "call" (the last name is the method), "keyword" (of a call: the last name), "item",
    "begun" (an empty item), "cached" (a function, by its decorator), "augmented", "rebound",
    "bound", "argument" (call: what is called, position: of the argument). scope: functions and
    classes that it is in, function: the innermost function, "" for none. loop: the outermost loop
    of the function that it is in.
    """

    form: str
    names: tuple[str, ...]
    file: str
    line: int
    scope: tuple[str, ...]
    function: str
    loop: Loop | None
    call: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class Alias:
    """A variable of a function that is bound to what `names` lead to, or to an item of it."""

    variable: str
    names: tuple[str, ...]
    file: str
    scope: tuple[str, ...]
    is_item: bool


class SourceFiles:
    """The program's files, each read and parsed once."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files
        self._lines: dict[str, list[str]] = {}
        self._uses: list[Use] = []
        self._aliases: list[Alias] = []
        self._imports: dict[tuple[str, str], str] = {}
        self._receivers: dict[tuple[str, int], str] = {}
        self._parameters: dict[str, tuple[str, list[str]]] = {}
        self._graph = CallGraph()
        self._flow = DataFlow(self._graph)
        self._is_read = False

    def located(self, holder: Holder, *, sees_all_threads: bool = True) -> Holder:
        """The holder with the lines that add to it, those that were watched first.

        sees_all_threads: False if the lines of some threads were not watched: then one that this
        search does not find is not believed.
        """
        self._read()
        if holder.path[0].kind == RUNNING or holder.is_delegating:
            return replace(holder, lines=(self._waiting(holder.path[-1]),))
        found = self._best(holder)
        keys = dict.fromkeys((use.file, use.line, use.scope) for _, use in found)
        searched = {key[:2]: self._source_line(*key) for key in list(keys)[:_MOST_LINES]}
        watched = {
            (one.file, one.line): replace(one, code=self._code(one.file, one.line))
            for one in holder.lines
        }
        first = next(iter(watched), None)
        if first is not None and searched:
            # (A tuple does not grow, nor does a link: what was watched is where a name is bound to
            # the next one.)
            is_rebuilt = holder.container == "tuple" and found[0][1].form == "rebound"
            is_link = holder.has_links and found[0][1].names[-1] == holder.path[-1].name
            is_doubted = first not in searched and watched[first].hits < _LEAST_HITS
            if first not in searched and not sees_all_threads:
                watched = {}
            elif is_rebuilt or is_link or is_doubted:
                watched = {**searched, **watched}
        lines = (*watched.values(), *(searched[key] for key in searched if key not in watched))
        return replace(holder, lines=(*self._decorator(holder), *lines)[:_MOST_LINES])

    def _decorator(self, holder: Holder) -> Sequence[SourceLine]:
        """The line that makes a function keep what it returns, () unless one is known to."""
        if holder.path[-1].kind != "cache":
            return ()
        names = (holder.path[-1].name,)
        found = [one for one in self._uses if one.form == "cached" and one.names == names]
        if len(found) != 1:
            return ()
        return (self._source_line(found[0].file, found[0].line, found[0].scope),)

    def _waiting(self, running: Name) -> SourceLine:
        """The line that a function is at whose calls have not returned, or that delegates."""
        return self._source_line(running.file, running.line, (running.owner,))

    def with_code(self, line: SourceLine) -> SourceLine:
        """A line with its text."""
        self._read()
        return replace(line, code=self._code(line.file, line.line))

    def with_receiver(self, line: SourceLine) -> SourceLine:
        """A line with its text, and the object of the program that it hands something over to."""
        found = self.with_code(line)
        return replace(found, receiver=self._receivers.get((line.file, line.line), ""))

    def with_makers(self, holder: Holder, lines: Sequence[SourceLine]) -> Holder:
        """The holder with those of the lines that make what it holds."""
        self._read()
        at = [(one.file, one.line) for one in holder.lines[:1]]
        found = self._flow.makers(at, [(one.file, one.line) for one in lines])
        return replace(holder, makers=tuple(one for one in lines if (one.file, one.line) in found))

    def _source_line(self, file: str, line: int, scope: tuple[str, ...]) -> SourceLine:
        return SourceLine(
            file=file, line=line, code=self._code(file, line), function=".".join(scope)
        )

    def _code(self, file: str, line: int) -> str:
        texts = self._lines.get(file, ())
        return texts[line - 1].strip()[:_LONGEST_CODE] if 0 < line <= len(texts) else ""

    def _read(self) -> None:
        if self._is_read:
            return
        self._is_read = True
        room = _MOST_BYTES
        for file in self._files:
            text = _text_of(file, min(room, _MOST_FILE_BYTES))
            room -= len(text)
            try:
                tree = ast.parse(text)
                self._uses += _uses_in(tree, file, (), "", None)
                self._aliases += _aliases_in(tree, file, ())
                self._imports.update(_imports_in(tree, file))
                self._receivers.update(_receivers_in(tree, file))
                self._parameters.update(_parameters_in(tree, file))
                self._graph.add(tree, file)
                self._flow.add(tree, file)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            self._lines[file] = text.splitlines()

    # -- which of the uses adds to a place ------------------------------------------------------

    def _best(self, holder: Holder) -> list[tuple[int, Use]]:
        return sorted(self._scored(holder), key=lambda one: (-one[0], one[1].line))

    def _scored(self, holder: Holder) -> list[tuple[int, Use]]:
        """Uses with points, of the innermost name of the program for which there are any."""
        for proxy in self._proxies(holder):
            if found := self._scored(replace(holder, path=(proxy,))):
                return found
        wanted = _names(holder)
        if holder.is_thread:
            return [(_CALLING + self._times(use), use) for use in self._uses if _starts(use)]
        if [name.name for name in holder.path[1:]] == [_GRADIENT]:
            return [
                (_ADDING + self._times(use), use)
                for use in self._uses
                if use.form == "keyword" and use.names[-2:] == _BINDS_GRADIENT
            ]
        if holder.path[-1].kind == OBJECTS:
            # Where what leads to them grows, else where they are made.
            added = self._of_names(wanted[1:2], holder)
            if added := [one for one in added if one[1].form != "bound"]:
                return added
        found = self._of_names(wanted, holder)
        # `head = Node(head)` adds a link; elsewhere that is where a link gets the one before.
        if holder.has_links and not any(use.form == "rebound" for _, use in found):
            found = self._of_names([holder.path[-1]], holder) or found
        return found if wanted else self._calls_of_library(holder)

    def _of_names(self, names: Sequence[Name], holder: Holder) -> list[tuple[int, Use]]:
        for at, name in enumerate(names):
            inside = holder.path[holder.path.index(name) + 1 :]
            found = [
                (points, use)
                for use, is_here in self._with_aliases(name, inside)
                if (points := self._points(use, name, inside, holder, is_here=is_here)) >= _LEAST
            ]
            if found or (at == 0 and name.kind == "cache"):
                return found
        return []

    def _proxies(self, holder: Holder) -> list[Name]:
        """The variables that are bound to `manager.list()` and the like, if the place is in the
        process of a manager: there it has no name of the program.
        """
        if holder.path[0].name != _OF_MANAGER:
            return []
        return [
            Name(kind="local", name=one.variable, owner=".".join(one.scope), file=one.file)
            for one in self._aliases
            if one.is_item and len(one.names) > 1 and one.names[-1] == holder.container
        ]

    def _with_aliases(self, wanted: Name, inside: Sequence[Name]) -> Iterator[tuple[Use, bool]]:
        """All uses, those of variables and parameters that stand for a name as uses of that name,
        and whether that name is known to be the one wanted.
        """
        name, in_item = wanted.name, bool(inside) and inside[0].kind in ("key", "item")
        variables = {
            (one.file, one.scope, one.variable)
            for one in self._aliases
            if name in one.names
            and (in_item or not one.is_item)
            and set(one.names[one.names.index(name) + 1 :]) <= _ACCESS
        }
        parameters = set(self._passed(wanted))
        for use in self._uses:
            is_here = (use.file, use.function, use.names[0]) in parameters
            stands = is_here or (use.file, use.scope, use.names[0]) in variables
            if stands and use.form != "bound":
                yield replace(use, names=(name, *use.names[1:])), is_here
            elif in_item:
                yield replace(use, names=_without_access(use.names, name)), False
            else:
                yield use, False

    def _passed(self, name: Name) -> Iterator[tuple[str, str, str]]:
        """(file, function, parameter) that a name is passed as."""
        for use in self._uses:
            if use.form == "argument" and use.names[-1] == name.name and use.call:
                file, parameters = self._parameters.get(use.call, ("", []))
                if use.position < len(parameters) and _place_points(use, name) >= _HERE:
                    yield file, use.call, parameters[use.position]

    def _points(
        self, use: Use, name: Name, inside: Sequence[Name], holder: Holder, *, is_here: bool
    ) -> int:
        instance = holder.container.rpartition(" ")[2]
        if use.call == "setattr" and use.position == 0 and instance in use.scope:
            return _ADDING + _HERE  # to an instance, which its methods call by another name
        points = _form_points(use, name.name, inside, holder, name.kind)
        if not inside:
            others = (_form_points(use, one, inside, holder, name.kind) for one in holder.aliases)
            points = max(points, max(others, default=0) + _OTHER_NAME)
        if points <= 0:
            return 0
        place = _SAME_FILE + _HERE if is_here else _place_points(use, name)
        return points + place + self._times(use)

    def _times(self, use: Use) -> int:
        if not self._graph.runs_with_steps(use.function, use.loop):
            return _ONCE
        return 0 if use.loop is None else _IN_LOOP

    def _calls_of_library(self, holder: Holder) -> list[tuple[int, Use]]:
        """The lines that add to a variable of a library, `linecache.cache[name] = lines`; else the
        calls of the library that holds it: first what is named after the attribute that grows."""
        first, *inside = holder.path
        package = first.owner.partition(".")[0]
        found = []
        for use in self._uses:
            module = self._imports.get((use.file, use.names[0]), "")
            if not package or module.partition(".")[0] != package:
                continue
            adds = _form_points(use, first.name, inside, holder, first.kind)
            if first.name in use.names and use.form != "bound" and adds >= _REBINDING:
                found.append((adds + _HERE + self._times(use), use))
            elif use.form == "call":
                is_named = _is_related(use.names[-1], holder.path, or_class=True)
                points = _RELATED if is_named else _CALLING
                found.append((points + self._times(use), use))
        return found


def _imports_in(tree: ast.AST, file: str) -> Iterator[tuple[tuple[str, str], str]]:
    """((file, name), module) of what is imported."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            of = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            for one in node.names:
                yield (file, one.asname or one.name.partition(".")[0]), of or one.name


def _receivers_in(tree: ast.AST, file: str) -> Iterator[tuple[tuple[str, int], str]]:
    """((file, line), `self.socket`) of the statements `self.socket.send(...)` and
    `self.socket[0] = ...`; not of functions, those of modules as well.
    """
    modules = {name for (_, name), _ in _imports_in(tree, file)}
    for node in ast.walk(tree):
        names: tuple[str, ...] = ()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            names = _chain(node.value.func)[:-1]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            names = _chain(node.targets[0].value)
        if names and names[0] not in modules and isinstance(node, ast.stmt):
            yield (file, node.lineno), ".".join(names)


def _aliases_in(node: ast.AST, file: str, scope: tuple[str, ...]) -> Iterator[Alias]:
    """Variables that are bound to something with a name, or run over its items."""
    if isinstance(node, (ast.Assign, ast.NamedExpr, ast.AnnAssign)) and node.value is not None:
        names = _chain(node.value)
        is_item = isinstance(node.value, (ast.Subscript, ast.Call))
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        names, is_item, targets = _chain(node.iter), True, [node.target]
    else:
        names, is_item, targets = (), False, []
    for target in _flat(targets) if names else ():
        if isinstance(target, ast.Name):
            yield Alias(target.id, names, file, scope, is_item)
    for child in ast.iter_child_nodes(node):
        yield from _aliases_in(child, file, within(scope, node))


def _parameters_in(tree: ast.AST, file: str) -> Iterator[tuple[str, tuple[str, list[str]]]]:
    """The parameters of each function by its name, without those that a method is bound to."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
            yield node.name, (file, names[names[:1] in (["self"], ["cls"]) :])


def _text_of(file: str, most_bytes: int) -> str:
    if not file.endswith(".py") or not Path(file).is_absolute():
        return ""
    try:
        data = safe_open.read_regular(file, most_bytes=most_bytes + 1)
    except (OSError, ValueError):
        return ""
    return "" if len(data) > most_bytes else data.decode("utf-8", "replace")


# -- uses of names -----------------------------------------------------------------------------


def _uses_in(
    node: ast.AST, file: str, scope: tuple[str, ...], function: str, loop: Loop | None
) -> Iterator[Use]:
    for form, names, line, *call in (*_forms(node), *_extended_forms(node)):
        if names:
            yield Use(form, names, file, line, scope, function, loop, *call)
    inner, inner_function, inner_loop = CallGraph.inside(node, file, scope, function, loop)
    for child in ast.iter_child_nodes(node):
        yield from _uses_in(child, file, inner, inner_function, inner_loop)


def _forms(node: ast.AST) -> Iterator[Any]:
    """(form, names, line), and call and position of an argument, of the uses that one node is."""
    if isinstance(node, ast.Call):
        names = _chain(node.func)
        yield "call", names, node.lineno
        for position, argument in enumerate(node.args):
            called = names[-1] if names else ""
            yield "argument", _chain(argument), node.lineno, called, position
        for given in (*node.args, *(one.value for one in node.keywords)):
            if isinstance(given, ast.Attribute) and given.attr in _ADDS:  # who gets it calls it
                yield "call", _chain(given), given.lineno
        yield from _keyword_forms(node, names)
    elif isinstance(node, ast.AugAssign):
        yield "augmented", _chain(node.target), node.lineno
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from _assigned_forms(targets, node.value, node.lineno)
    elif isinstance(node, ast.FunctionDef):
        yield from _cached_property_forms(node)
        for one in node.decorator_list:
            if _chain(one)[-1:] in _CACHES:
                yield "cached", (node.name,), one.lineno


def _assigned_forms(targets: Iterable[ast.expr], value: ast.expr, line: int) -> Iterator[Any]:
    used = {_chain(one) for one in ast.walk(value)}
    for target in _flat(targets):
        names = _chain(target)
        if isinstance(target, ast.Subscript):
            form = "begun" if _is_empty(value) else "item"
            yield form, names if _is_constant(target) else (*names, ""), line
        if not (names in used and _is_access(value)):  # `node = node.children[key]`
            yield "rebound" if names in used else "bound", names, line


def _extended_forms(node: ast.AST) -> Iterator[Any]:
    """What a new tuple or list has all of, and more: `(*state.pairs, pair)`, `pairs + [pair]`."""
    displays = (ast.Tuple, ast.List)
    if isinstance(node, displays) and len(node.elts) > 1 and isinstance(node.ctx, ast.Load):
        for one in node.elts:
            if isinstance(one, ast.Starred):
                yield "rebound", _chain(one.value), node.lineno
    elif (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and isinstance(node.right, displays)
        and node.right.elts
    ):
        yield "rebound", _chain(node.left), node.lineno


def _keyword_forms(node: ast.Call, names: tuple[str, ...]) -> Iterator[Any]:
    for one in node.keywords:  # `replace(state, trace=(*state.trace, x))`
        yield "keyword", (*names, one.arg or ""), node.lineno
        if any(one.arg in _chain(part)[-1:] for part in ast.walk(one.value)):
            yield "rebound", (one.arg,), one.value.lineno


def _cached_property_forms(node: ast.FunctionDef) -> Iterator[Any]:
    """What a cached property returns becomes the attribute of its name."""
    if any(_chain(one)[-1:] == ("cached_property",) for one in node.decorator_list):
        for part in ast.walk(node):
            if isinstance(part, ast.Return):
                yield "item", (node.name,), part.lineno


def _flat(targets: Iterable[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            yield from _flat(target.elts)
        else:
            yield target.value if isinstance(target, ast.Starred) else target


def _is_empty(node: ast.expr) -> bool:
    """Return True for `[]`, `{}`, `list()` and the like."""
    if isinstance(node, ast.Call):  # (Not `Node()`, an item.)
        is_container = not _EMPTY.isdisjoint(_chain(node.func)[-1:])
        return is_container and not node.args and not node.keywords
    items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", None)
    return items == []


def _is_access(node: ast.expr) -> bool:
    """Return True for what is there already: `node.next`, `node[key]`, `node.get(key)`."""
    if isinstance(node, ast.Call):
        return _chain(node.func)[-1:] in {("get",), ("pop",)}
    return isinstance(node, (ast.Attribute, ast.Subscript))


def _is_constant(node: ast.Subscript) -> bool:
    return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)


def _chain(node: ast.AST) -> tuple[str, ...]:
    """The names of `a.b["c"][i].d`: (a, b, c, d); () if it has none."""
    names: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                names.append(node.slice.value)
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            if isinstance(node, ast.Name):
                names.append(node.id)
            return tuple(names[::-1])


def _starts(use: Use) -> bool:
    return use.form == "call" and use.names[1:] != () and use.names[-1] == "start"


def _names(holder: Holder) -> list[Name]:
    """The names of the program on the way, the innermost first; of a chain those of its head."""
    return [
        name
        for name in reversed(holder.path[: -1 if holder.has_links else None])
        if name.kind in ("key", "cache", "closure", "default")
        or (name.kind in ("global", "local", "attribute", UNREACHED, OBJECTS) and name.file)
    ]


def _form_points(use: Use, name: str, inside: Sequence[Name], holder: Holder, kind: str) -> int:
    names, last = use.names, use.names[-1] == name
    if kind == "cache":
        return _ADDING if use.form == "call" and last else 0
    points = 0
    if kind in {UNREACHED, OBJECTS}:
        return _ADDING if use.form == "call" and last else 0
    if use.form == "call":
        if _is_related(names[-1], inside):
            points = _RELATED + (_SAME_FILE if name in names else 0)
        elif name in names[-2:-1]:
            points = _ADDING if names[-1] in _ADDS else _CALLING
    elif use.form == "item" or (use.form == "begun" and not inside):
        points = _ADDING if last or names[-2:] == (name, "") or name in names[-2:-1] else 0
    elif last:
        is_variable = kind == "attribute" and len(names) == 1
        bound = 0 if holder.unit == "items" or is_variable else 2 * _BINDING
        argument = _ADDING if use.call in _ADDS_TO_ARGUMENT else _PASSING
        if use.call in _READS:
            argument = 0
        of_form = {"augmented": _ADDING, "rebound": _REBINDING, "bound": bound}
        points = of_form.get(use.form, argument)
    return points


def _without_access(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """`NAME.setdefault(key, []).append` as `NAME.append`: it adds to an item."""
    if name not in names:
        return names
    at = names.index(name) + 1
    rest = tuple(one for one in names[at:] if one not in _ACCESS or not one)
    return names[:at] + rest


def _is_related(called: str, inside: Sequence[Name], *, or_class: bool = False) -> bool:
    """Return True if a method is named after the library's attribute that grows:
    `register_forward_hook` adds to `_forward_hooks`, `addHandler` to `handlers`.

    or_class: or after its class, as `finalize` is.
    """
    attributes = [one for one in inside if one.kind == "attribute" and not one.file]
    if not attributes:
        return False
    words = _words(attributes[-1].name)[-1:]
    if or_class:
        words.append(attributes[-1].owner.lower())
    return any(len(word) > 2 and word in _words(called) for word in words)


def _words(name: str) -> list[str]:
    """The words of a name, in small letters and the singular: add, handler of `addHandlers`."""
    return [word.lower().removesuffix("s") for word in _WORD.findall(name)]


def _place_points(use: Use, name: Name) -> int:
    """How well the line's place fits with the name's owner."""
    points = 0
    owner = tuple(part for part in name.owner.split(".") if part != "<locals>")
    if use.file == name.file:
        # A closure variable is also that of a function around its owner, and of others in there.
        own = owner if name.kind == "closure" else owner[-1:]
        is_here = name.kind == "global" or set(own) & set(use.scope) or not owner[-1].isidentifier()
        points += _SAME_FILE + (_HERE if is_here else 0)
        if name.kind in _OF_FUNCTIONS and not is_here:
            points -= _ADDING  # a variable of the same name in another function
    elif name.kind in _OF_FUNCTIONS:
        return -_ADDING
    return points
