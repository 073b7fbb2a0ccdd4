"""List source files and functions that are long, for a person to look at. Never fails.

`--lines` prints instead how much code each package has: lines that are neither blank, nor a
comment, nor part of a docstring.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("memdiag", "tests", "tools", "benchmarks", "fixtures/programs")
LONG_FILE = 400  # lines
LONG_FUNCTION = 50


def main() -> int:
    if "--lines" in sys.argv[1:]:
        return print_lines()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for text in long_parts(path):
                print(text)
    return 0


def print_lines() -> int:
    """Print the lines of code of each package."""
    lines: Counter[str] = Counter()
    for path in sorted((ROOT / "memdiag").rglob("*.py")):
        place = path.relative_to(ROOT / "memdiag")
        lines[place.parts[0] if len(place.parts) > 1 else "."] += code_lines(path)
    for name, number in [*sorted(lines.items()), ("all", lines.total())]:
        print(f"{number:7,}  {name}")
    return 0


def code_lines(path: Path) -> int:
    """Lines that are neither blank, nor a comment, nor part of a docstring."""
    text = path.read_text(encoding="utf-8")
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node, clean=False) is not None and first is not None:
                documentation |= {*range(first.lineno, (first.end_lineno or first.lineno) + 1)}
    return sum(
        1
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#") and number not in documentation
    )


def long_parts(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT)
    lines = len(text.splitlines())
    if lines >= LONG_FILE:
        yield f"{name}: {lines} lines"
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length >= LONG_FUNCTION:
            yield f"{name}:{node.lineno}: {node.name} has {length} lines"


if __name__ == "__main__":
    sys.exit(main())
