"""Writes what decides, in order, and every number that it uses into docs/method.md.

    python tools/decision_table.py [--check]

The tables stand between markers and come from the list itself. With --check it fails if they are
not those of the list, or if code on the way to a verdict holds a number that is not in them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from memdiag.analysis.decision import decide, ends
from memdiag.analysis.decision.across import decide as across
from memdiag.analysis.decision.case import Rule
from memdiag.analysis.parameters import numbers_of
from memdiag.analysis.policy import DEFAULT

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "method.md"
BEGIN, END = "<!-- decision -->", "<!-- /decision -->"

# Groups of the policy that change what is said of a verdict, and never the verdict.
NO_VERDICT = ("reporting",)

ANALYSIS = ROOT / "memdiag" / "analysis"
BEFORE_THE_LIST = (
    "preprocessing/*.py",
    *("stats/changepoint.py", "stats/slope_test.py", "stats/saturating_exponential.py"),
    *("stats/turning_points.py", "stats/eprocess.py", "stats/rest_prediction.py"),
)
# Numbers that need no source: none, one, both of two.
PLAIN = (0, 1, 2)
# Below this a number only keeps a division from failing.
GUARD = 1e-100
MARK = "# exact: "
# From here on figures are written with an exponent.
MOST_DIGITS = 1e6


def main() -> int:
    refused = list(numbers_outside())
    for line in refused:
        print(line)
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    new = f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"
    if "--check" in sys.argv[1:]:
        if new != text:
            print(f"{PAGE.relative_to(ROOT)} is not what decides: python tools/decision_table.py")
        return int(new != text or bool(refused))
    PAGE.write_text(new, encoding="utf-8")
    print(counts())
    return int(bool(refused))


def stages() -> Iterator[tuple[str, Sequence[Rule]]]:
    """What is asked, in order: (what it argues, windows or checks)."""
    yield "either, at once", tuple(check for check, _ in decide.AT_ONCE)
    yield "for a leak", decide.WINDOWS
    yield "for a leak, coarse look", (decide.COARSE,)
    yield "against a leak: no evidence", decide.NOT_EVIDENCE
    yield "against a leak: may end", decide.MAY_END
    yield "against a leak, of a staircase", decide.STEPS_MAY_END
    yield "against stable", decide.MAY_GROW
    yield "for stable, where it may still grow", decide.ENDING
    yield "for stable, after an objection", decide.CYCLES
    yield "either, without the last readings", ends.ENDS
    yield "for a leak, under waves", (decide.WAVES,)
    yield "for stable, after all", tuple(check for check, _ in decide.SETTLES)
    yield "against stable, by what is known beside it", decide.IN_CONTEXT
    yield "across: for a warm-up", across.EXPLAINS
    yield "across: against a leak", across.OVERRULES
    yield "across: for a leak, against stable", across.CONFIRMS
    yield "across: for stable", across.SETTLES


def unique() -> dict[str, Rule]:
    """Every window, check and end by name, once each."""
    return {one.name: one for _, several in stages() for one in several}


def tables() -> str:
    return f"{counts()}\n\n{_conditions()}\n\n{_shared()}\n"


def counts() -> str:
    """How many numbers can change a verdict, and how many named conditions use them."""
    own = sum(_entries(one.parameters) for one in unique().values())
    shared = sum(_entries(group) for _, group in groups())
    return (
        f"**{own + shared} numbers can change a verdict**: {shared} shared ones and {own} of\n"
        f"single conditions. **{len(unique())} named conditions** use them."
    )


def groups() -> Iterator[tuple[str, object]]:
    """Groups of the policy that can change a verdict."""
    for group in fields(DEFAULT):
        value = getattr(DEFAULT, group.name)
        if group.name not in NO_VERDICT and any(numbers_of(value)):
            yield group.name, value


def _entries(parameters: object) -> int:
    values = (getattr(parameters, one.name) for one in numbers_of(parameters))
    return sum(len(value) if isinstance(value, Mapping) else 1 for value in values)


def _conditions() -> str:
    lines = ["| argues | name | what it asks | its numbers |", "|---|---|---|---|"]
    known: set[str] = set()
    for argues, several in stages():
        for one in several:
            row = f"| {argues} | `{one.name}` | "
            if one.name in known:
                lines.append(f"{row}as above | |")
                continue
            known.add(one.name)
            numbers = [_number(one.parameters, field) for field in numbers_of(one.parameters)]
            lines.append(
                f"{row}{_cell(_sentence(one.ask.__doc__ or ''))} | {_cell('; '.join(numbers))} |"
            )
    return "\n".join(lines)


def _sentence(text: str) -> str:
    words = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    first = words.partition(". ")[0].rstrip(".:")
    return first if first.endswith("?") else f"{first}."


def _shared() -> str:
    lines = ["| number | value | unit | meaning | source |", "|---|---|---|---|---|"]
    for name, group in groups():
        for field in numbers_of(group):
            value, told = _value(getattr(group, field.name)), field.metadata
            cells = (value, told["unit"], told["says"], told["source"])
            lines.append(f"| `{name}.{field.name}` | " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines)


def _number(parameters: object, field: Field[Any]) -> str:
    value, unit = _value(getattr(parameters, field.name)), field.metadata["unit"]
    return f"`{field.name}` {value}" + ("" if unit == "1" else f" {unit}")


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{getattr(k, 'value', k)}: {_value(v)}" for k, v in value.items())
    whole = float(value).is_integer() and value < MOST_DIGITS
    return f"{int(value):,}" if whole else f"{value:.4g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def numbers_outside() -> Iterator[str]:
    """Numbers on the way to a verdict that no table shows, one line each."""
    paths = sorted((ANALYSIS / "decision").rglob("*.py"))
    before = [path for name in BEFORE_THE_LIST for path in sorted(ANALYSIS.glob(name))]
    for path in (*paths, *before):
        text = path.read_text(encoding="utf-8")
        for line, value in literals(text):
            yield (
                f"{path.relative_to(ROOT)}:{line}: {value} belongs in `number(...)`, or the line "
                f"ends with `{MARK}why`"
            )


def literals(source: str) -> Iterator[tuple[int, float]]:
    """(line, value) of each number in Python source that is neither plain nor explained."""
    lines, tree = source.splitlines(), ast.parse(source)
    shown = {id(part) for node in ast.walk(tree) if _shows(node) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in shown:
            continue
        value = node.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if value not in PLAIN and value > GUARD and MARK not in lines[node.lineno - 1]:
            yield node.lineno, value


def _shows(node: ast.AST) -> bool:
    """A call of `number`, whose arguments the tables show."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id == "number"


if __name__ == "__main__":
    sys.exit(main())
