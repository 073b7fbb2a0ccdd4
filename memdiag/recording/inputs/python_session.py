"""Names the values that a Python prompt echoes: `>>> p.memory_info().rss`, and `231636992` below it
becomes `rss: 231636992`. So do those that a loop prints: below `print((i, p.memory_info().rss))`,
`(100, 231636992)` becomes `i: 100, rss: 231636992`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterator

from memdiag.recording.parsing.column_meaning import Part, recognise

_PROMPT = re.compile(rb"\s{0,3}(?:>>> |In \[[0-9]+\]: )(.*)")
_VALUE = re.compile(
    rb"\s{0,3}(?:Out\[[0-9]+\]: ?)?(-?[0-9][0-9_,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*"
)
_OUT = rb"\s{0,3}(?:Out\[[0-9]+\]:[ \t]*)?"
_SIZE = re.compile(_OUT + rb"['\"]([0-9][0-9.,]* ?[KMGT]?i?B)['\"]\s*")  # a text: `'604.0 MB'`
_OUT_ALONE = re.compile(rb"\s{0,3}Out\[[0-9]+\]:\s*")
_LIST = re.compile(_OUT + rb"((?:[a-z]{1,12}\()?\[\s*[-+0-9.].*)")
_UNITS = {1 << 10: "KiB", 1 << 20: "MiB", 1 << 30: "GiB", 1e3: "KB", 1e6: "MB", 1e9: "GB"}
_MORE = re.compile(rb"\s{0,3}(?:\.\.\.|   \.\.\.:)(?: (.*)|\s*)")
_NUMBER = re.compile(rb"-?[0-9][0-9_]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_NUMBERS = re.compile(rb"\s*\(?[-+0-9.e_]+(?:,? [-+0-9.e_]+){1,7}\)?\s*")
_LONGEST, _LARGEST, _LARGEST_POWER = 400, 1e18, 64


def with_names(lines: list[bytes]) -> list[bytes]:
    """The lines, with the name of memory in an expression before the number below it, or before
    the list, which it becomes the name of: `rss = [812, 815, ...`.
    """
    named = list(lines)
    _name_printed(named)
    for at, line in enumerate(lines):
        prompt = _PROMPT.fullmatch(line.rstrip(b"\r"))
        below = _below(lines, at) if prompt is not None else None
        if prompt is None or below is None:
            continue
        if (value := _VALUE.fullmatch(lines[below]) or _SIZE.fullmatch(lines[below])) is not None:
            sign = ":"
        elif (value := _LIST.match(lines[below])) is not None:
            sign = " ="
        else:
            continue
        if name := _name(prompt[1].decode("utf-8", "replace")):
            named[below] = f"{name}{sign} ".encode() + value[1]
    return named


def _name_printed(lines: list[bytes]) -> None:
    """Put the names of what a statement of several lines prints before the numbers below it."""
    names: tuple[str, ...] = ()
    code: list[bytes] = []
    for at, line in enumerate(lines):
        if (prompt := _PROMPT.fullmatch(line.rstrip(b"\r"))) is not None:
            code, names = [prompt[1]], ()
        elif code and (more := _MORE.fullmatch(line.rstrip(b"\r"))) is not None:
            code.append(more[1] or b"")
        elif _NUMBERS.fullmatch(line):
            if code:
                names, code = _printed(b"\n".join(code)[:_LONGEST].decode("utf-8", "replace")), []
            numbers = _NUMBER.findall(line)
            if names and len(numbers) == len(names):
                pairs = zip(names, numbers, strict=True)
                lines[at] = b", ".join(name.encode() + b": " + one for name, one in pairs)


def _printed(statement: str) -> tuple[str, ...]:
    """The names of what the only `print` of a statement prints, () unless one of them is memory."""
    nodes = list(ast.walk(ast.Module(body=_parsed(statement), type_ignores=[])))
    shown = [node.args for node in nodes if isinstance(node, ast.Call) and _prints(node)]
    if len(shown) != 1:
        return ()
    counted = {name for node in nodes if isinstance(node, ast.For) for name in _counted_by(node)}
    tuples = [one for one in shown[0] if isinstance(one, ast.Tuple)]
    parts = tuples[0].elts if len(tuples) == len(shown[0]) == 1 else shown[0]
    named = (_name_of(part, {Part.METRIC, Part.AXIS}) for part in parts)
    names = tuple(
        name or ("index" if isinstance(part, ast.Name) and part.id in counted else "value")
        for name, part in zip(named, parts, strict=True)
    )
    return names if any(recognise(name).part is Part.METRIC for name in names) else ()


def _prints(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "print"


def _counted_by(loop: ast.For) -> Iterator[str]:
    """The variable of a loop that counts: of `enumerate` or `range`."""
    function = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
    if isinstance(function, ast.Name) and function.id in {"enumerate", "range", "count"}:
        yield from (node.id for node in [target] if isinstance(node, ast.Name))


def _below(lines: list[bytes], at: int) -> int | None:
    """The first line below that is not empty, nor `Out[3]:` alone."""
    below = range(at + 1, min(at + 3, len(lines)))
    return next((n for n in below if lines[n].strip() and not _OUT_ALONE.fullmatch(lines[n])), None)


def _name(statement: str) -> str:
    """The name and unit of what a statement shows, "" unless that is memory."""
    body = _parsed(statement[:_LONGEST].strip())
    shown = body[-1] if body else None
    return _name_of(shown.value, {Part.METRIC}) if isinstance(shown, ast.Expr) else ""


def _parsed(code: str) -> list[ast.stmt]:
    """The statements, [] if it is not code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an escape in a text
            return ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _name_of(shown: ast.expr, wanted: Collection[Part]) -> str:
    """The first such name in an expression, and its unit; "" if there is none."""
    names = filter(None, map(_name_in, ast.walk(shown)))
    name = next((one for one in names if recognise(one).part in wanted), "")
    unit = _UNITS.get(_divisor(shown), "")
    return f"{name} ({unit})" if name and unit else name


def _name_in(node: ast.AST) -> str:
    """The name that an attribute, a variable or a key is, "" of others."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value if isinstance(node.slice.value, str) else ""
    return node.id if isinstance(node, ast.Name) else ""


def _divisor(expression: ast.expr) -> float:
    """What the expression divides by: `rss / 1024 ** 2`, `round(rss / 1e6, 1)`."""
    found = 1.0
    for node in ast.walk(expression):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv):
            found *= _constant(node.right)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):
            found *= 2.0 ** min(_constant(node.right), _LARGEST_POWER)
    return found


def _constant(node: ast.expr) -> float:
    """The value of products and powers of numbers, 1 for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value) if node.value < _LARGEST else 1.0
    if isinstance(node, ast.BinOp):
        left, right = _constant(node.left), _constant(node.right)
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Pow) and 0 <= right <= _LARGEST_POWER and left <= 1e4:
            return float(left**right)
    return 1.0
