"""Draw the rooms of memdiag and the floors they stand on into docs/architecture.svg.

A box is a package or a module, and imports only from boxes below it. Both come from the import
graph of the code, type-checking imports included. `--check` fails if the picture is out of date.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import grimp

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "architecture.svg"
PACKAGE = "memdiag"
FLOORS = (
    ("cli", "integrations"),
    ("report",),
    ("analysis",),
    ("recording", "capture"),
    ("values",),
    ("probe",),
)  # as in the import contract of pyproject.toml
WIDTH, GAP = 1000, 8
LINE, TITLE = 13, 26
COLORS = {
    "cli": "#dbe9f6",
    "integrations": "#dbe9f6",
    "report": "#d9f0e3",
    "analysis": "#fdebc8",
    "recording": "#f6dfe8",
    "capture": "#e7e1f4",
    "values": "#eceff1",
    "probe": "#f3e6d8",
}


def levels(graph: grimp.ImportGraph, parent: str) -> list[list[str]]:
    """The children of a package in levels, highest first: each imports from lower ones only."""
    children = sorted(graph.find_children(parent))
    below = {child: _imported(graph, child, children) for child in children}
    level: dict[str, int] = {}

    def height(child: str) -> int:
        if child not in level:
            level[child] = 1 + max((height(other) for other in below[child]), default=-1)
        return level[child]

    for child in children:
        height(child)
    return [
        [child for child in children if level[child] == floor]
        for floor in range(max(level.values(), default=-1), -1, -1)
    ]


def _imported(graph: grimp.ImportGraph, child: str, children: list[str]) -> set[str]:
    found = set()
    for module in {child} | graph.find_descendants(child):
        for target in graph.find_modules_directly_imported_by(module):
            found |= {c for c in children if target == c or target.startswith(f"{c}.")}
    return found - {child}


def purpose(module: str) -> str:
    """The first line of its docstring."""
    path = ROOT / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    first = source.read_text(encoding="utf-8").partition("\n")[0]
    return first.strip('"').rstrip(".").strip()


def draw(graph: grimp.ImportGraph) -> str:
    """The picture, as SVG."""
    svg = ElementTree.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", width=str(WIDTH), role="img"
    )
    style = "font-family: sans-serif; font-size: 11px; fill: #222"
    svg.set("style", style)
    top = float(GAP)
    for floor in FLOORS:
        share = (WIDTH - GAP * (len(floor) + 1)) / len(floor)
        heights = [
            _package(svg, graph, f"{PACKAGE}.{name}", GAP + n * (share + GAP), top, share)
            for n, name in enumerate(floor)
        ]
        top += max(heights) + GAP
    svg.set("height", str(round(top)))
    svg.set("viewBox", f"0 0 {WIDTH} {round(top)}")
    ElementTree.indent(svg)
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


def _package(
    svg: ElementTree.Element,
    graph: grimp.ImportGraph,
    name: str,
    left: float,
    top: float,
    width: float,
) -> float:
    """Draw one package with its rooms, and return how high it is."""
    short = name.rpartition(".")[2]
    box = _box(svg, left, top, width, 0, COLORS[short])
    title = f"{short}/"
    _text(svg, left + GAP, top + 17, title, size=14, bold=True)
    lines = _wrapped(purpose(name), width - 120)
    for n, line in enumerate(lines):
        _text(svg, left + 110, top + 17 + n * LINE, line)
    at = top + TITLE + LINE * (len(lines) - 1)
    fit = 4 if width > WIDTH / 2 else 2
    for level in levels(graph, name):
        for start in range(0, len(level), fit):
            at += _row(svg, graph, level[start : start + fit], left, at, width) + GAP / 2
    box.set("height", f"{at + GAP / 2 - top:.0f}")
    return at + GAP / 2 - top


def _row(
    svg: ElementTree.Element,
    graph: grimp.ImportGraph,
    rooms: list[str],
    left: float,
    top: float,
    width: float,
) -> float:
    """Draw rooms side by side, and return how high they are."""
    each = (width - GAP * (len(rooms) + 1)) / len(rooms)
    texts = [_wrapped(purpose(room), each - 12) for room in rooms]
    height = 20 + LINE * max(map(len, texts))
    for n, (room, lines) in enumerate(zip(rooms, texts, strict=True)):
        at = left + GAP + n * (each + GAP)
        _box(svg, at, top, each, height, "#ffffff")
        files = len(graph.find_descendants(room))
        short = room.rpartition(".")[2]
        _text(svg, at + 6, top + 14, f"{short}/ ({files})" if files else f"{short}.py", bold=True)
        for m, line in enumerate(lines):
            _text(svg, at + 6, top + 28 + m * LINE, line)
    return height


def _wrapped(text: str, width: float) -> list[str]:
    return textwrap.wrap(text, max(12, int(width / 5.9)))[:3]


def _box(
    svg: ElementTree.Element, left: float, top: float, width: float, height: float, color: str
) -> ElementTree.Element:
    return ElementTree.SubElement(
        svg,
        "rect",
        x=f"{left:.0f}",
        y=f"{top:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        rx="5",
        fill=color,
        stroke="#90a4ae",
    )


def _text(
    svg: ElementTree.Element,
    left: float,
    base: float,
    text: str,
    *,
    size: int = 11,
    bold: bool = False,
) -> None:
    weight = "bold" if bold else "normal"
    element = ElementTree.SubElement(svg, "text", x=f"{left:.0f}", y=f"{base:.0f}")
    element.set("style", f"font-size: {size}px; font-weight: {weight}")
    element.text = text


def main() -> int:
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    drawn = draw(graph)
    if "--check" in sys.argv[1:]:
        if PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == drawn:
            return 0
        print("docs/architecture.svg is out of date: run `make rooms`")
        return 1
    PICTURE.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
