"""Which functions of the program run only once, and which loop is that of the steps, by who calls
what, in the program's syntax trees.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
_INIT = "__init__"


def within(scope: tuple[str, ...], node: ast.AST) -> tuple[str, ...]:
    """The functions and classes that the children of a node are in."""
    return (*scope, node.name) if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) else scope


Loop = tuple[str, int]
"""The file and the line of a loop that is in no other loop of its function, or of a lambda, which
may be called any number of times."""


class CallGraph:
    """Functions by name (`__init__` by that of its class), and the functions that call them.

    Loops count as functions as well: with what they call, and the size of their code.
    """

    def __init__(self) -> None:
        self._callers: dict[str, set[str]] = defaultdict(set)
        self._called: dict[str | Loop, set[str]] = defaultdict(set)
        self._sizes: dict[str | Loop, int] = defaultdict(int)
        self._loops: dict[Loop, str] = {}  # and the function that each is in
        self._lambdas: set[Loop] = set()
        self._step_loops: set[Loop] | None = None
        self._repeated: set[str] = set()
        self._passed: set[str] = set()
        self._classes: set[str] = set()
        self._once: dict[str, bool] = {}

    @staticmethod
    def inside(
        node: ast.AST, file: str, scope: tuple[str, ...], function: str, loop: Loop | None
    ) -> tuple[tuple[str, ...], str, Loop | None]:
        """Scope, function, and outermost loop, of the children of a node."""
        if isinstance(node, _FUNCTIONS):
            function = scope[-1] if node.name == _INIT and scope else node.name
            return within(scope, node), function, None
        if isinstance(node, ast.ClassDef):
            return within(scope, node), function, loop
        if isinstance(node, ast.Lambda) or (loop is None and isinstance(node, _LOOPS)):
            loop = file, getattr(node, "lineno", 0)
        return scope, function, loop

    def add(self, tree: ast.AST, file: str) -> None:
        """Take the calls of a file. A function that is used in another way than to be called, or
        that no one calls, may be called by anyone, any number of times.
        """
        self._once.clear()
        self._step_loops = None
        self._add(tree, file, (), "", None)

    def _add(
        self, node: ast.AST, file: str, scope: tuple[str, ...], function: str, loop: Loop | None
    ) -> None:
        called = node.func if isinstance(node, ast.Call) else None
        name = name_of_function(called)
        if name:
            self._callers[name].add(function)
            if loop is not None:
                self._repeated.add(name)
        if isinstance(node, ast.ClassDef):
            self._classes.add(node.name)
        scope, function, loop = self.inside(node, file, scope, function, loop)
        if loop is not None:
            self._loops.setdefault(loop, function)
            if isinstance(node, ast.Lambda):
                self._lambdas.add(loop)
        for around in (function, loop) if loop is not None else (function,):
            self._sizes[around] += 1
            self._called[around].update([name] if name else [])
        for child in ast.iter_child_nodes(node):
            for one in ast.iter_child_nodes(child) if child is called else (child,):
                self._passed.add(name_of_function(one))
                self._add(one, file, scope, function, loop)

    def reached(self, names: Iterable[str | Loop]) -> set[str | Loop]:
        """These functions and loops, and the functions of the program that they call in turn."""
        found = dict.fromkeys(names)
        todo = list(found)
        for one in todo:  # the list grows in the loop
            new = [name for name in self._called.get(one, ()) if name in self._sizes]
            todo += [name for name in new if name not in found]
            found.update(dict.fromkeys(new))
        return set(found)

    def runs_with_steps(self, function: str, loop: Loop | None) -> bool:
        """Return False for code that probably runs only before or after the steps: in a function
        that runs once, outside of the loop that runs most of the program's code.
        """
        if loop in self._lambdas or not self.runs_once(function):
            return True
        if self._step_loops is None:
            known = {one: self._size(one) for one, of in self._loops.items() if self.runs_once(of)}
            most = max(known.values(), default=0)
            self._step_loops = {one for one, size in known.items() if size == most}
        return loop in self._step_loops

    def _size(self, loop: Loop) -> int:
        return sum(self._sizes[one] for one in self.reached([loop]))

    def runs_once(self, function: str) -> bool:
        """Return True if the program calls a function by its name, and never repeatedly. "" is the
        code of a module.
        """
        known = self._once.get(function)
        if known is None:
            self._once[function] = False  # it calls itself
            callers = self._callers.get(function, ())
            is_known = function in self._classes or (callers and function not in self._passed)
            known = not function or bool(
                is_known and function not in self._repeated and all(map(self.runs_once, callers))
            )
            self._once[function] = known
        return known


def name_of_function(node: ast.AST | None) -> str:
    """The name that a function would have: `f`, or `x.f`."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Load) else ""
    if isinstance(node, ast.Attribute):
        return node.attr if isinstance(node.ctx, ast.Load) else ""
    return ""
