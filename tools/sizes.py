"""Fail if a source file or a function has outgrown the size that one reads in one go.

A file that is too large is split by idea, not into a part two.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("memdiag", "tests", "tools", "benchmarks", "fixtures/programs")
MOST_LINES_OF_FILE = 400
MOST_LINES_OF_FUNCTION = 50


def main() -> int:
    complaints = [
        complaint
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for complaint in complaints_about(path)
    ]
    print("\n".join(complaints), end="\n" if complaints else "")
    return 1 if complaints else 0


def complaints_about(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT)
    lines = len(text.splitlines())
    if lines >= MOST_LINES_OF_FILE:
        yield f"{name}: {lines} lines; at most {MOST_LINES_OF_FILE - 1}"
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length >= MOST_LINES_OF_FUNCTION:
            yield (
                f"{name}:{node.lineno}: {node.name} has {length} lines;"
                f" at most {MOST_LINES_OF_FUNCTION - 1}"
            )


if __name__ == "__main__":
    sys.exit(main())
