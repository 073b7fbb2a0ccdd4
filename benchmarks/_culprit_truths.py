"""What is known in advance of the programs in fixtures/programs/leaks."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found]

PROGRAMS = Path(__file__).resolve().parent.parent / "fixtures" / "programs" / "leaks"
MEASURED = PROGRAMS / "bytes_per_step.json"
SETS = ("first", "held_back", "unseen", *(f"unseen_{number}" for number in range(2, 26)))
_STEPS = re.compile(r'"--steps", type=int, default=(\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a program does.

    stored, made: lines that keep the memory, and that make it (numbers from 1). holder: words that
    the name of the holder must contain, alternatives of one with "|" between. bytes_per_step: None
    if it was not measured or if memdiag sees no steps. is_garbage: a full garbage collection frees
    what is kept, so a LEAK may be said or not. set: one of `SETS`.
    """

    name: str
    set: str
    style: str
    kind: tuple[str, ...] = ()
    holder: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    stored: frozenset[int] = frozenset()
    made: frozenset[int] = frozenset()
    steps: int = 0
    has_steps: bool = True
    is_garbage: bool = False
    bytes_per_step: float | None = None

    @property
    def path(self) -> Path:
        return PROGRAMS / f"{self.name}.py"

    @property
    def leaks(self) -> bool:
        return bool(self.kind)

    @property
    def lines(self) -> frozenset[int]:
        """The lines that are right to name: what is made, only if nothing stores it."""
        return self.stored or self.made

    def holder_named(self, text: str) -> bool:
        return bool(self.holder) and all(
            any(re.search(rf"(?<!\w){re.escape(w)}(?![A-Za-z0-9])", text) for w in words)
            for words in (alternatives.split("|") for alternatives in self.holder)
        )

    def missing(self) -> str:
        """The first package that it needs and that is not installed; "" if there is none."""
        return next((name for name in self.needs if not importlib.util.find_spec(name)), "")


def all_truths() -> dict[str, Truth]:
    """By name; programs that leak first. What has no truth or no program is an error."""
    raw = tomllib.loads((PROGRAMS / "truths.toml").read_text(encoding="utf-8"))
    measured = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    if unmatched := raw.keys() ^ {path.stem for path in PROGRAMS.glob("*.py")}:
        sys.exit(f"without a program or without a truth: {', '.join(sorted(unmatched))}")
    truths = [truth_of(name, entry, measured.get(name)) for name, entry in raw.items()]
    return {t.name: t for t in sorted(truths, key=lambda t: (not t.leaks, SETS.index(t.set)))}


def truth_of(name: str, entry: dict[str, Any], bytes_per_step: float | None) -> Truth:
    source = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    lists = {"kind", "holder", "needs"}
    (steps,) = _STEPS.findall(source)
    fields: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in entry.items()}
    return Truth(
        name=name,
        stored=marked(source, "kept here"),
        made=marked(source, "made here"),
        steps=int(steps),
        bytes_per_step=bytes_per_step if entry.get("has_steps", True) else None,
        **fields,
    )


def marked(source: str, words: str) -> frozenset[int]:
    """All lines of the statements that have a marker: which of them runs, the Python decides."""
    lines = source.splitlines()
    markers = {number for number, line in enumerate(lines, 1) if f"# <- {words}" in line}
    return frozenset(line for marker in markers for line in statement_at(source, marker))


def statement_at(source: str, line: int) -> range:
    """Lines of the smallest statement without a body there; the line itself if there is none."""
    found = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
    ]
    return min((lines for lines in found if line in lines), key=len, default=range(line, line + 1))


def counting(source: str) -> str:
    """The program with a call of `count_step()` at the beginning of the marked loop or function."""
    (marker,) = (n for n, line in enumerate(source.splitlines(), 1) if "# <- step" in line)
    body = next(body for body in bodies(ast.parse(source), marker))
    lines = source.splitlines(keepends=True)
    lines.insert(body[0].lineno - 1, " " * body[0].col_offset + "count_step()\n")
    return "".join(lines)


def bodies(tree: ast.Module, line: int) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and hasattr(node, "body") and node.lineno == line:
            yield node.body
