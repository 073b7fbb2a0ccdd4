"""Pictures as images, by matplotlib (`memdiag[plot]`).

Colors are those of Okabe and Ito, which are told apart without color vision; what they tell is also
told by line styles, so that a gray print is readable.
"""

from __future__ import annotations

import enum
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memdiag.errors import UsageError
from memdiag.report.picture.model import (
    Curve,
    Jump,
    Mark,
    MarkKind,
    Picture,
    finite,
    vertical_range,
)
from memdiag.report.plotting import axis_ticks
from memdiag.report.text import numbers
from memdiag.report.text.screen import Screen
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.readings import PhaseSpan
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# How an image of memdiag begins; another image is not overwritten.
PNG_OPENING = re.compile(rb"\x89PNG\r\n\x1a\n.{25}[\s\S]{0,64}tEXtSoftware\0memdiag", re.S)
SVG_OPENING = re.compile(rb"<!-- memdiag picture -->\n")
_SVG_HEAD = "<!-- memdiag picture -->\n"
_PANELS = 6
_Y_INTERVALS, _X_INTERVALS = 5, 8
_JUMPS = 3
_LABELED_JUMP = 0.06  # of the height: more than its label takes
_BEHIND = 5
_PHASES = 6
_MARGIN, _MOST_ROOM = 0.03, 0.5  # of the height
_ROW = 0.085  # of the height: the rows of the labels of marks
_BAND = 0.035  # of the height: the phases
_POINTS_PER_INCH = 72
_CELL = 0.55  # width of a character of small text, as a part of the points of the text
_MEASURE = 100
# Parts of the width that texts may take.
_PART_OF_TITLE, _PART_OF_MARK, _PART_OF_NAME, _SHORT = 0.7, 0.4, 0.36, 0.14


class Theme(enum.Enum):
    """Colors for a light or a dark page."""

    LIGHT = "light"
    DARK = "dark"


class Place(enum.Enum):
    """What the image is sized for."""

    PAGE = "page"  # a report or a screen
    COLUMN = "column"  # one column of a paper
    SLIDE = "slide"  # a slide of 16:9


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How an image looks."""

    theme: Theme = Theme.LIGHT
    place: Place = Place.PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Colors:
    paper: str
    ink: str
    faint: str
    curve: str
    growth: str
    plateau: str
    limit: str
    phases: tuple[str, ...]


_COLORS = {
    Theme.LIGHT: _Colors(
        paper="#ffffff",
        ink="#1f2328",
        faint="#6e7781",
        curve="#0072b2",
        growth="#d55e00",
        plateau="#009e73",
        limit="#1f2328",
        phases=("#56b4e9", "#e69f00", "#cc79a7", "#009e73", "#999999", "#f0e442"),
    ),
    Theme.DARK: _Colors(
        paper="#0d1117",
        ink="#e6edf3",
        faint="#8d96a0",
        curve="#56b4e9",
        growth="#e69f00",
        plateau="#2bbf97",
        limit="#e6edf3",
        phases=("#0072b2", "#d55e00", "#cc79a7", "#009e73", "#999999", "#f0e442"),
    ),
}
# Width and height of one panel in inches, and points of the text.
_SIZES = {
    Place.PAGE: (7.2, 3.7, 9.0),
    Place.COLUMN: (3.5, 2.5, 6.5),
    Place.SLIDE: (10.0, 5.6, 14.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """Colors, and the characters of small text that the width of the image has room for."""

    colors: _Colors
    cells: int

    def short(self, text: str, part: float) -> str:
        """The text, without its middle if it takes more than this part of the width."""
        return Screen(width=_MEASURE).show(text, cells=int(part * self.cells))


_BEHIND_STYLES = ("--", "-.", ":", (0, (5, 1)), (0, (1, 1)))


def style_of(text: str) -> Style:
    """The style that words name: "dark", "slide", "dark,column"; "" is the default.

    Raises UsageError.
    """
    themes, places = {one.value: one for one in Theme}, {one.value: one for one in Place}
    theme, place = Theme.LIGHT, Place.PAGE
    for word in filter(None, (word.strip() for word in text.lower().split(","))):
        if word not in {**themes, **places}:
            raise UsageError(
                f"invalid value {printable(word)!r} for --picture-style",
                remedy=f"choose from {', '.join([*themes, *places])}",
            )
        theme, place = themes.get(word, theme), places.get(word, place)
    return Style(theme=theme, place=place)


def available() -> None:
    """Raise UsageError if matplotlib cannot be imported."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"pictures need matplotlib, which cannot be imported ({error})",
            remedy="pip install 'memdiag[plot]'",
        ) from error


def png(pictures: Sequence[Picture], style: Style) -> bytes:
    """The pictures below each other as a PNG image. Raises UsageError without matplotlib."""
    return _saved(pictures, style, "png", {"Software": "memdiag"})


def svg(pictures: Sequence[Picture], style: Style) -> bytes:
    """The same as an SVG image: text is text, and the same input gives the same bytes."""
    image = _saved(pictures, style, "svg", {"Date": None, "Creator": "memdiag"}).decode()
    return (_SVG_HEAD + image[image.index("<svg") :]).encode()


def _saved(pictures: Sequence[Picture], style: Style, kind: str, metadata: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    with _settings(style):
        figure(pictures, style).savefig(out, format=kind, metadata=metadata, dpi=160)
    return out.getvalue()


@contextmanager
def _settings(style: Style) -> Iterator[None]:
    """Text from outside is never read as a formula; a character without a glyph is a box."""
    available()
    import matplotlib

    colors, (_, _, points) = _COLORS[style.theme], _SIZES[style.place]
    chosen = {
        "text.parse_math": False,
        "text.color": colors.ink,
        "axes.edgecolor": colors.faint,
        "axes.labelcolor": colors.ink,
        "axes.facecolor": colors.paper,
        "figure.facecolor": colors.paper,
        "savefig.facecolor": colors.paper,
        "xtick.color": colors.ink,
        "ytick.color": colors.ink,
        "font.size": points,
        "font.family": ["DejaVu Sans"],
        "svg.fonttype": "none",
        "svg.hashsalt": "memdiag",
        "path.simplify": True,
        "agg.path.chunksize": 10_000,
    }
    with matplotlib.rc_context(chosen), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def figure(pictures: Sequence[Picture], style: Style) -> Figure:
    """A figure with a panel for each of the first pictures. Raises UsageError."""
    available()
    from matplotlib.figure import Figure

    shown = pictures[:_PANELS]
    wide, high, _ = _SIZES[style.place]
    with _settings(style):
        drawn = Figure(figsize=(wide, high * max(len(shown), 1)), layout="constrained")
        panels = drawn.subplots(max(len(shown), 1), 1, squeeze=False)[:, 0]
        for axes, picture in zip(panels, shown, strict=False):
            draw_on(axes, picture, style)
        if not shown:
            panels[0].set_axis_off()
            panels[0].text(0.5, 0.5, "nothing was measured", ha="center")
    return drawn


def draw_on(axes: Axes, picture: Picture, style: Style) -> None:
    """Draw a picture on the axes of a figure."""
    wide, _, points = _SIZES[style.place]
    cells = int(wide * _POINTS_PER_INCH / (points * _CELL))
    look = _Look(colors=_COLORS[style.theme], cells=cells)
    colors = look.colors
    bottom, top = _limits(picture)
    axes.set_ylim(bottom, top)
    handles = _curves(axes, picture, look)
    for curve in picture.curves[:1]:
        _found(axes, curve, picture.unit, look)
    for level in picture.levels:
        axes.axhline(level.value, color=colors.limit, linewidth=1.2, linestyle=(0, (6, 3)))
        axes.annotate(
            look.short(level.label, _PART_OF_MARK),
            (0.005, level.value),
            xycoords=("axes fraction", "data"),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize="small",
            in_layout=False,
        )
    handles += _phases(axes, picture.phases, look)
    _axes(axes, picture, colors, (bottom, top))
    _title(axes, picture, look, points)
    if len(handles) > 1:
        names = [handle.get_label().lstrip("\u200b") for handle in handles]
        axes.legend(
            handles,
            [_label(look.short(name, _PART_OF_NAME)) for name in names],
            loc="upper left",
            bbox_to_anchor=(0, -0.16),
            ncols=2 if any(len(name) > _SHORT * cells for name in names) else 4,
            frameon=False,
            fontsize="small",
            borderaxespad=0,
        )


def _limits(picture: Picture) -> tuple[float, float]:
    """The vertical range, with room for the labels of marks above and the phases below."""
    values = [v for curve in _shown(picture) for _, v in finite(_points(curve))]
    first = picture.curves[:1]
    values += [v for curve in first for point in curve.cone for v in (point.low, point.high)]
    values += [level.value for level in picture.levels]
    low, high = vertical_range(values or [0.0], picture.least_span)
    rows = sum(len(curve.marks) for curve in first)
    above = _MARGIN + _ROW * rows
    below = _MARGIN + _BAND * bool(picture.phases)
    whole = (high - low) / (1 - min(above, _MOST_ROOM) - below)
    return low - below * whole, high + min(above, _MOST_ROOM) * whole


def _shown(picture: Picture) -> Sequence[Curve]:
    return picture.curves[: 1 + _BEHIND]


def _points(curve: Curve) -> Sequence[tuple[float, float]]:
    return curve.readings or (*curve.points, *curve.tops)


def _curves(axes: Axes, picture: Picture, look: _Look) -> list[Any]:
    """The readings: the first curve on top, others behind it in gray, each in its own style."""
    colors, handles = look.colors, []
    for at, curve in enumerate(_shown(picture)):
        points = finite(_points(curve))
        drawn: dict[str, Any] = {"color": colors.curve, "linewidth": 1.3, "zorder": 3}
        if at:
            style = _BEHIND_STYLES[at - 1]
            drawn = {"color": colors.faint, "linewidth": 1.0, "linestyle": style, "zorder": 2}
        few: dict[str, Any] = {"marker": "o", "markersize": 2.5} if len(points) <= 60 else {}
        (line,) = axes.plot([x for x, _ in points], [v for _, v in points], **drawn, **few)
        line.set_label(_label(curve.name))
        handles.append(line)
    return handles


def _label(name: str) -> str:
    """A name that a legend shows: one that begins with an underscore is left out."""
    return f"\u200b{name}" if name.startswith("_") else name or "series"


def _found(axes: Axes, curve: Curve, unit: Unit, look: _Look) -> None:
    """Plateau, segments, jumps, forecast and marks of a curve."""
    colors = look.colors
    fitted = colors.growth if curve.verdict is Verdict.LEAK else colors.faint
    for segment in curve.segments:
        axes.plot(
            [segment.start_x, segment.end_x],
            [segment.start_value, segment.end_value],
            color=fitted,
            linewidth=2.2,
            alpha=0.75,
            linestyle=(0, (4, 1.5)),
            zorder=4,
        )
    if curve.plateau is not None:
        start = curve.plateau.since_x.value
        axes.fill_between(
            [start, start + curve.plateau.lasted_x],
            curve.plateau.low_value,
            curve.plateau.high_value,
            color=colors.plateau,
            alpha=0.25,
            linewidth=0,
        )
    if curve.cone:
        x = [point.x for point in curve.cone]
        low, high = [point.low for point in curve.cone], [point.high for point in curve.cone]
        axes.fill_between(x, low, high, color=colors.growth, alpha=0.2, linewidth=0)
        value = [point.value for point in curve.cone]
        axes.plot(x, value, color=colors.growth, linewidth=1.2, linestyle=":", zorder=4)
    bottom, top = axes.get_ylim()
    jumps = [jump for jump in curve.jumps if _size(jump) > _LABELED_JUMP * (top - bottom)]
    for jump in sorted(jumps, key=_size, reverse=True)[:_JUMPS]:
        text = numbers.signed(jump.after_value - jump.before_value, unit)
        axes.annotate(
            text,
            (jump.x, jump.before_value),  # right of the end of a segment, where the curve is not
            xytext=(5, 0),
            textcoords="offset points",
            fontsize="small",
            va="center",
            color=colors.faint,
            in_layout=False,
        )
    for row, mark in enumerate(sorted(curve.marks, key=lambda mark: mark.x)):
        _mark(axes, mark, row, look)


def _size(jump: Jump) -> float:
    return abs(jump.after_value - jump.before_value)


def _mark(axes: Axes, mark: Mark, row: int, look: _Look) -> None:
    """A vertical line with its label in a row of its own, on the side with more room."""
    colors = look.colors
    color = colors.plateau if mark.kind is MarkKind.PLATEAU else colors.growth
    if mark.kind is MarkKind.THRESHOLD:
        color = colors.faint
    axes.axvline(mark.x, color=color, linewidth=1.0, linestyle=(0, (1, 1.5)))
    left, right = axes.get_xlim()
    is_right = mark.x > left + 0.55 * (right - left)
    axes.annotate(
        look.short(mark.label, _PART_OF_MARK),
        (mark.x, 1 - _ROW * row),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if is_right else 4, -2),
        textcoords="offset points",
        ha="right" if is_right else "left",
        va="top",
        fontsize="small",
        color=color,
        bbox={"facecolor": colors.paper, "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
        zorder=5,
        in_layout=False,
    )


def _phases(axes: Axes, spans: Sequence[PhaseSpan], look: _Look) -> list[Any]:
    """A strip at the bottom, and a handle for the legend of each phase that is named."""
    names = list(dict.fromkeys(span.phase for span in spans))
    handles = []
    for name, color in zip(names[:_PHASES], look.colors.phases, strict=False):
        bars = [(s.start_x, s.end_x - s.start_x) for s in spans if s.phase == name]
        strip = axes.broken_barh(
            bars,
            (0, _BAND),
            transform=axes.get_xaxis_transform(),
            facecolor=color,
            edgecolor=color,
            linewidth=0.8,
        )
        strip.set_label(_label(f"phase {name}"))
        handles.append(strip)
    return handles


def _axes(axes: Axes, picture: Picture, colors: _Colors, vertical: tuple[float, float]) -> None:
    """Round marks with their units."""
    bottom, top = vertical
    whole = picture.unit is not Unit.PERCENT
    distance = axis_ticks.spacing(top - bottom, _Y_INTERVALS, whole=whole)
    values = axis_ticks.marks(bottom, top, distance)
    divisor, symbol = axis_ticks.memory_unit(picture.unit, max(map(abs, values), default=0.0))
    names = axis_ticks.labels([value / divisor for value in values])
    axes.set_yticks(values, [f"{name} {symbol}".rstrip() for name in names])
    left, right = axes.get_xlim()
    divisor, symbol = axis_ticks.axis_unit(picture.axis, right - left)
    counted = picture.axis is not AxisKind.SECONDS
    distance = axis_ticks.spacing((right - left) / divisor, _X_INTERVALS, whole=counted)
    places = axis_ticks.marks(left / divisor, right / divisor, distance)
    axes.set_xticks([place * divisor for place in places], axis_ticks.labels(places))
    axes.set_xlim(left, right)
    axes.set_xlabel(symbol or picture.axis_word, loc="right")
    axes.grid(True, axis="y", color=colors.faint, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _title(axes: Axes, picture: Picture, look: _Look, points: float) -> None:
    """Verdict and subject, as far as they fit."""
    if not picture.title:
        return
    title = look.short(picture.title, _PART_OF_TITLE)
    axes.set_title(title, loc="left", fontweight="bold", pad=2 * points, fontsize="large")
    axes.annotate(
        look.short(picture.subject, 0.95),
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, points / 2),
        textcoords="offset points",
        fontsize="small",
        color=look.colors.faint,
        in_layout=False,
    )
