"""Makes a function of a module fail as the first thing that it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(directory: Path) -> Iterator[tuple[str, str]]:
    """(file, dotted name of a function in it) for every Python file below `directory`."""
    for path in sorted(directory.rglob("*.py")):
        for name, _ in _functions_of(ast.parse(path.read_text())):
            yield str(path.relative_to(directory)), name


def sabotaged(source: str, name: str) -> str:
    """The source with a failure as the first thing that function `name` does.

    A function whose body is one guarded block fails within its guard, for that is what it does
    first.
    """
    tree = ast.parse(source)
    (function,) = (node for found, node in _functions_of(tree) if found == name)
    body = function.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    at = 1 if documented else 0
    if at < len(body) and isinstance(guard := body[at], ast.Try):
        body, at = guard.body, 0
    body.insert(at, ast.parse("raise RuntimeError('injected')").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))


def _functions_of(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.ClassDef):
            if not isinstance(node, ast.ClassDef):
                yield prefix + node.name, node
            yield from _functions_of(node, f"{prefix}{node.name}.")
        else:
            yield from _functions_of(node, prefix)
