"""Which lines of the program make what another line uses, by its syntax trees.

A line uses names; the lines of the same function that bind them make what it uses, and so do the
lines of the functions that these lines call. A parameter is made where the function is called.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memdiag.capture.probelink.call_graph import CallGraph, name_of_function, within

Line = tuple[str, int]
"""A file and a line in it."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement without those inside it. scope: the functions and classes that it is in."""

    file: str
    first_line: int
    last_line: int
    scope: tuple[str, ...]
    reads: frozenset[str]
    binds: frozenset[str]
    calls: frozenset[str]


class DataFlow:
    """The statements of the program, by what they bind and call. graph: of the same files."""

    def __init__(self, graph: CallGraph) -> None:
        self._graph = graph
        self._statements: list[_Statement] = []
        self._parameters: dict[tuple[str, tuple[str, ...]], set[str]] = defaultdict(set)

    def add(self, tree: ast.AST, file: str) -> None:
        """Take the statements of a file."""
        self._add(tree, file, ())

    def _add(self, node: ast.AST, file: str, scope: tuple[str, ...]) -> None:
        scope = within(scope, node)
        if isinstance(node, ast.arg):
            self._parameters[file, scope].add(node.arg)
        elif isinstance(node, ast.stmt) and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self._statements.append(_statement(node, file, scope))
        for child in ast.iter_child_nodes(node):
            self._add(child, file, scope)

    def makers(self, of: Iterable[Line], among: Iterable[Line]) -> set[Line]:
        """Of the lines `among`, those that make what the lines `of` use, and these themselves."""
        found = dict.fromkeys(one for line in of for one in self._at(line))
        todo = list(found)
        for one in todo:  # the list grows in the loop
            new = [each for each in self._binding(one) if each not in found]
            found.update(dict.fromkeys(new))
            todo += new
        followed = {name for one in found for name in one.scope[-1:]}
        called = self._graph.reached({name for one in found for name in one.calls} - followed)
        return {
            line
            for line in among
            for one in self._at(line)
            if one in found or called.intersection(one.scope[-1:])
        }

    def _at(self, line: Line) -> list[_Statement]:
        """The innermost statement at a line."""
        file, number = line
        around = [
            one
            for one in self._statements
            if one.file == file and one.first_line <= number <= one.last_line
        ]
        return sorted(around, key=lambda one: one.last_line - one.first_line)[:1]

    def _binding(self, user: _Statement) -> Iterator[_Statement]:
        """The statements that bind a name that this one uses."""
        passed = user.reads & self._parameters[user.file, user.scope]
        for one in self._statements:
            is_here = (one.file, one.scope) == (user.file, user.scope)
            if (is_here and one.binds & user.reads) or (passed and user.scope[-1] in one.calls):
                yield one


def _statement(node: ast.stmt, file: str, scope: tuple[str, ...]) -> _Statement:
    parts = list(_own(node))
    names = [one for one in parts if isinstance(one, ast.Name)]
    # (Of a loop and the like, only the lines before what is in it.)
    inside = [one.lineno for one in ast.walk(node) if isinstance(one, ast.stmt) and one is not node]
    last_line = min(inside) - 1 if inside else node.end_lineno or node.lineno
    return _Statement(
        file=file,
        first_line=node.lineno,
        last_line=max(last_line, node.lineno),
        scope=scope,
        reads=frozenset(one.id for one in names if isinstance(one.ctx, ast.Load)),
        binds=frozenset(one.id for one in names if isinstance(one.ctx, ast.Store)),
        calls=frozenset(name_of_function(one.func) for one in parts if isinstance(one, ast.Call)),
    )


def _own(node: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a statement that are of no statement inside it."""
    todo: list[ast.AST] = [node]
    for one in todo:  # the list grows in the loop
        yield one
        todo += [child for child in ast.iter_child_nodes(one) if not isinstance(child, ast.stmt)]
