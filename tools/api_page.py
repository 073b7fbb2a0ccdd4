"""Writes the reference in docs/api.md from the docstrings of the names that `memdiag` exports.

    python tools/api_page.py [--check]

With --check it fails if the page is not that of the code, or if a public name has no docstring.
"""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import memdiag

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
BEGIN, END = "<!-- api -->", "<!-- /api -->"
# In the order of the page.
GROUPS = {
    "Judge": ("analyze", "compare", "Diagnosis", "Growth", "Rate", "Verdict"),
    "Judge many recordings": ("analyze_many", "RecordingResult", "SeriesResult"),
    "Compare": ("Comparison", "Effect"),
    "Record": ("record", "Recorder", "step", "phase", "counter", "on_pressure"),
    "Look into memory": ("explain", "Explanation"),
    "Notebooks": ("load_ipython_extension", "unload_ipython_extension"),
    "Errors": (
        "MemdiagError",
        "ReadError",
        "UsageError",
        "CaptureError",
        "LeakError",
    ),
}
_INHERITED = frozenset(dir(object))


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    shown = {name for names in GROUPS.values() for name in names} | {"__version__"}
    wrong = sorted(shown ^ set(memdiag.__all__))
    for name in wrong:
        print(f"tools/api_page.py: GROUPS and memdiag.__all__ differ in {name}")
    new = f"{before}{BEGIN}\n" + "\n".join(reference()) + f"\n{END}{after}"
    if "--check" in sys.argv[1:]:
        if new != text:
            print(f"{PAGE.relative_to(ROOT)} is not that of the code: python tools/api_page.py")
        return int(new != text or bool(wrong))
    PAGE.write_text(new, encoding="utf-8")
    return int(bool(wrong))


def reference() -> Iterator[str]:
    """The lines of the reference."""
    for title, names in GROUPS.items():
        yield f"\n## {title}"
        for name in names:
            yield from _entry(f"memdiag.{name}", getattr(memdiag, name), level=3)


def _entry(title: str, thing: Any, *, level: int) -> Iterator[str]:
    yield f"\n{'#' * level} {title.rpartition('.')[2]}\n"
    if not inspect.isclass(thing):
        yield from _code(f"{title}{_signature(thing)}")
        yield from _text(thing, title)
        return
    is_made_by_users = not is_dataclass(thing) and not issubclass(thing, (enum.Enum, Exception))
    yield from _code(f"class {title}{_signature(thing) if is_made_by_users else ''}")
    yield from _text(thing, title)
    if issubclass(thing, enum.Enum):
        yield "\n" + ", ".join(f"`{one.name}`" for one in thing)
        return
    members = [(name, one) for name, one in vars(thing).items() if _is_shown(name, one)]
    if members:
        yield ""
    for name, one in members:
        is_property = isinstance(one, property)
        call = "" if is_property else _signature(one)
        yield f"* `{name}{call}`: {_in_one_line(one, f'{title}.{name}')}"


def _is_shown(name: str, one: Any) -> bool:
    if name in ("__iter__", "__enter__", "__exit__"):
        return bool(inspect.getdoc(one)) and name != "__exit__"
    return not name.startswith("_") and (isinstance(one, property) or inspect.isfunction(one))


def _signature(function: Any) -> str:
    """The parameters without `self`, and what is returned."""
    signature = inspect.signature(function)
    shown, is_keyword = [], False
    for name, one in signature.parameters.items():
        if name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            shown.append("*")
        default = "" if one.default is one.empty else f" = {one.default!r}"
        shown.append(f"{name}: {_type(one.annotation)}{default}")
    returned = _type(signature.return_annotation)
    return f"({', '.join(shown)})" + (f" -> {returned}" if not inspect.isclass(function) else "")


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


def _code(line: str) -> Iterator[str]:
    yield "```python"
    yield line
    yield "```"
    yield ""


def _text(thing: Any, title: str) -> Iterator[str]:
    text = inspect.getdoc(thing)
    if not text:
        raise SystemExit(f"{title} has no docstring")
    yield text


def _in_one_line(thing: Any, title: str) -> str:
    return " ".join(" ".join(_text(thing, title)).split())


if __name__ == "__main__":
    sys.exit(main())
