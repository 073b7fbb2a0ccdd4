"""Which functions of the program run only once, by who calls them, in its syntax trees."""

from __future__ import annotations

import ast
from collections import defaultdict

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension, ast.Lambda)
_INIT = "__init__"


def within(scope: tuple[str, ...], node: ast.AST) -> tuple[str, ...]:
    """The functions and classes that the children of a node are in."""
    return (*scope, node.name) if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) else scope


class CallGraph:
    """Functions by name (`__init__` by that of its class), and the functions that call them."""

    def __init__(self) -> None:
        self._callers: dict[str, set[str]] = defaultdict(set)
        self._repeated: set[str] = set()
        self._passed: set[str] = set()
        self._classes: set[str] = set()
        self._once: dict[str, bool] = {}

    @staticmethod
    def inside(
        node: ast.AST, scope: tuple[str, ...], function: str, *, in_loop: bool
    ) -> tuple[tuple[str, ...], str, bool]:
        """Scope, function, and whether that is in a loop, of the children of a node."""
        if isinstance(node, _FUNCTIONS):
            function = scope[-1] if node.name == _INIT and scope else node.name
            return within(scope, node), function, False
        if isinstance(node, ast.ClassDef):
            return within(scope, node), function, in_loop
        return scope, function, in_loop or isinstance(node, _LOOPS)

    def add(self, tree: ast.AST) -> None:
        """Take the calls of a file. A function that is used in another way than to be called, or
        that no one calls, may be called by anyone, any number of times.
        """
        self._once.clear()
        self._add(tree, (), "", in_loop=False)

    def _add(self, node: ast.AST, scope: tuple[str, ...], function: str, *, in_loop: bool) -> None:
        called = node.func if isinstance(node, ast.Call) else None
        name = _name(called)
        if name:
            self._callers[name].add(function)
            if in_loop:
                self._repeated.add(name)
        if isinstance(node, ast.ClassDef):
            self._classes.add(node.name)
        scope, function, in_loop = self.inside(node, scope, function, in_loop=in_loop)
        for child in ast.iter_child_nodes(node):
            for one in ast.iter_child_nodes(child) if child is called else (child,):
                self._passed.add(_name(one))
                self._add(one, scope, function, in_loop=in_loop)

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


def _name(node: ast.AST | None) -> str:
    """The name that a function would have: `f`, or `x.f`."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Load) else ""
    if isinstance(node, ast.Attribute):
        return node.attr if isinstance(node.ctx, ast.Load) else ""
    return ""
