"""The screen and the document of `memdiag doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from memdiag.errors import Exit
from memdiag.report.text import numbers
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import INDENT, paragraph
from memdiag.values.measurements import Ability, Check

SCHEMA_VERSION = 1
_STYLES = {
    Ability.YES: "bold green",
    Ability.PARTLY: "bold yellow",
    Ability.NO: "bold red",
    Ability.FACT: "dim",
}
_WORDS = {Ability.YES: "yes", Ability.PARTLY: "partly", Ability.NO: "no", Ability.FACT: "-"}
_WORD_CELLS = 8
_TITLE_CELLS = 19


def verdict(checks: Iterable[Check]) -> Exit:
    """NO_LEAK (0) if host memory can be measured, else CANNOT_MEASURE (4)."""
    can = any(c.name == "host_memory" and c.ability is Ability.YES for c in checks)
    return Exit.NO_LEAK if can else Exit.CANNOT_MEASURE


def render(checks: Sequence[Check], *, width: int, ascii_only: bool = False) -> Group:
    """What can be measured, what cannot, and how to enable it."""
    screen = Screen(width=width, ascii_only=ascii_only)
    lines = [Text(row.plain, "bold") for row in paragraph(_headline(checks), screen.measure)]
    lines.append(Text())
    for check in checks:
        lines += _entry(check, screen)
    return Group(*lines)


def document(checks: Sequence[Check]) -> dict[str, Any]:
    """Plain JSON values: every check with its facts as raw numbers."""
    return {
        "schema_version": SCHEMA_VERSION,
        "exit_code": int(verdict(checks)),
        "host_memory": verdict(checks) is Exit.NO_LEAK,
        "device_memory": _device_memory(checks).value,
        "checks": [
            {
                "name": check.name,
                "ability": check.ability.value,
                "facts": check.facts,
                "remedy": check.remedy,
            }
            for check in checks
        ],
    }


def _device_memory(checks: Sequence[Check]) -> Ability:
    """The best of the devices; NO without devices."""
    abilities = [c.ability for c in checks if c.name.startswith(("gpu_", "other_gpu"))]
    for ability in (Ability.YES, Ability.PARTLY):
        if ability in abilities:
            return ability
    return Ability.NO


def _headline(checks: Sequence[Check]) -> str:
    host = "can" if verdict(checks) is Exit.NO_LEAK else "cannot"
    device = {Ability.YES: "can", Ability.PARTLY: "can partly", Ability.NO: "cannot"}
    gpu = device[_device_memory(checks)]
    return f"Host memory {host} be measured here, GPU memory {gpu} be measured."


def _entry(check: Check, screen: Screen) -> list[Text]:
    """`yes     host memory        sentence`, the remedy below it; on two columns if narrow."""
    indent = _WORD_CELLS + _TITLE_CELLS if screen.measure >= 72 else _WORD_CELLS
    head = f"{_WORDS[check.ability]:<{_WORD_CELLS}}{screen.show(check.title)}"
    width = screen.measure - indent
    body = paragraph(check.text.format_map(_shown(check.facts, screen)), width)
    if check.remedy:
        body += paragraph(f"hint: {check.remedy}", width, hanging=6)
    rows = [" " * indent + row.plain for row in body]
    if indent == _WORD_CELLS:
        rows.insert(0, " " * INDENT + head)
    else:
        rows[0] = " " * INDENT + f"{head:<{indent}}" + body[0].plain[INDENT:]
    lines = [Text(row) for row in rows]
    lines[0].stylize(_STYLES[check.ability], INDENT, INDENT + len(_WORDS[check.ability]))
    return lines


def _shown(facts: dict[str, Any], screen: Screen) -> dict[str, str]:
    return {key: _fact(key, value, screen) for key, value in facts.items()}


def _fact(key: str, value: Any, screen: Screen) -> str:
    if value is None:
        return "?"
    if key.endswith("_bytes") and isinstance(value, int):
        return numbers.size(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(screen.show(str(entry)) for entry in value)
    return screen.show(str(value))
