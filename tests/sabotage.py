"""Makes a function of a module fail as the first thing that it does, and finds those that run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def functions(directory: Path) -> tuple[tuple[str, str], ...]:
    """(file, dotted name of a function in it) for every Python file below `directory`."""
    return tuple(
        (str(path.relative_to(directory)), name)
        for path in sorted(directory.rglob("*.py"))
        for name, _ in _functions_of(_tree(path.read_text()))
    )


def sabotaged(source: str, name: str) -> str:
    """The source with a failure as the first thing that function `name` does.

    A function whose body is one guarded block fails within its guard, for that is what it does
    first.
    """
    (function,) = (node for found, node in _functions_of(_tree(source)) if found == name)
    return _with_lines(source, {name: (function, "raise RuntimeError('injected')")})


def noting(source: str, file: str, descriptor: int) -> str:
    """The source in which each function first writes `file:name` and a line end to a descriptor."""
    return _with_lines(
        source,
        {
            name: (node, f"__import__('os').write({descriptor}, b'{file}:{name}\\n')")
            for name, node in _functions_of(_tree(source))
        },
    )


def _with_lines(source: str, statements: dict[str, tuple[Function, str]]) -> str:
    """The source with a statement as the first thing that each of these functions does."""
    lines = source.splitlines(keepends=True)
    added = []
    for name, (function, statement) in statements.items():
        body = function.body
        documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        at = 1 if documented else 0
        if at < len(body) and isinstance(guard := body[at], ast.Try):
            body, at = guard.body, 0
        first = _first_line(body[at]) if at < len(body) else (body[-1].end_lineno or 0) + 1
        column = body[-1].col_offset
        assert not lines[body[0].lineno - 1][:column].strip(), f"{name} begins beside its `def`"
        added.append((first, " " * column + statement + "\n"))
    for first, line in sorted(added, reverse=True):
        lines.insert(first - 1, line)
    return "".join(lines)


def _first_line(statement: ast.stmt) -> int:
    decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
    return min(one.lineno for one in (statement, *decorators))


@cache
def _tree(source: str) -> ast.Module:
    return ast.parse(source)


def _functions_of(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.ClassDef):
            if not isinstance(node, ast.ClassDef):
                yield prefix + node.name, node
            yield from _functions_of(node, f"{prefix}{node.name}.")
        else:
            yield from _functions_of(node, prefix)
