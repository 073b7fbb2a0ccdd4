"""The lines of the screen, drawn from what is known: no terminal is needed for that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from memdiag.report.picture.model import Curve, Level, Mark, MarkKind, Picture
from memdiag.report.picture.of_finding import of_finding
from memdiag.report.plotting import plot
from memdiag.report.sections import forecast
from memdiag.report.text import numbers, rates, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.screen.view import TREE, Key, Process, View
from memdiag.values.findings import Finding
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.metrics import METRIC_ROLES
from memdiag.values.verdict import Verdict

KEYS = (
    ("q", "leave"),
    ("p", "pause"),
    ("tab", "series"),
    ("m", "mark"),
    ("s", "save"),
    ("o", "order"),
    ("?", "help"),
)
# A limit above the highest reading by more than this factor is not drawn, as in reports.
_LIMIT_IN_SIGHT = 1.5
_OF_IMAGE = 500  # cells of a line of text, of which an image shows what fits
_COLUMNS = (
    ("process", "process"),
    ("rss_bytes", "RSS"),
    ("pss_bytes", "PSS"),
    ("vram_bytes", "VRAM"),
    ("tensors", "tensors"),
    ("growth", "growth"),
)


def clock(seconds: float) -> str:
    """`1:02:03`."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"


def head(view: View, width: int, *, is_paused: bool = False) -> list[Text]:
    """Three lines: the verdict so far, what is needed or next, and where the run is."""
    found = view.frame.found
    return [
        _verdict(found, view, width),
        Text(" " + _next(view, width - 2), no_wrap=True),
        _position(view, width, is_paused=is_paused),
    ]


def _verdict(found: Finding | None, view: View, width: int) -> Text:
    screen = view.screen(width)
    if found is None:
        return _badge(" COLLECTING DATA ", "", "a verdict needs more samples", "", width)
    name = series_names.series(found, screen)
    rate = rates.of(found)
    growth = "" if rate is None else rate.brief()
    if found.verdict is Verdict.INCONCLUSIVE:
        word, gist = " NO VERDICT YET ", wording.REASONS[found.reason]
        if found.growth_per_x is not None and found.growth_per_x.low > 0:
            gist = f"{growth}, {gist}"
    elif found.verdict is Verdict.LEAK:
        since = (
            ""
            if found.onset_x is None
            else (f" since {series_names.place(found, found.onset_x.value)}")
        )
        word, gist = " LEAK ", growth + since
    else:
        word, gist = f" {found.verdict.name} SO FAR ", wording.REASONS[found.reason]
        if found.plateau is not None and found.verdict is Verdict.WARMUP:
            gist += f" since {series_names.place(found, found.plateau.since_x.value)}"
        else:
            gist += f" at {numbers.quantity(found.latest_value, found.unit)}"
    sure = (
        ""
        if found.verdict is Verdict.INCONCLUSIVE
        else (f"{numbers.confidence(found.confidence)} confident")
    )
    return _badge(word, wording.STYLES[found.verdict], f"{gist}, {name}", sure, width)


def _badge(word: str, style: str, text: str, right: str, width: int) -> Text:
    """The verdict in reverse, bold text beside it, and `right` at the end if it fits."""
    line = Text(" ") + Text(word, f"bold reverse {style}".strip()) + Text(" ")
    room = width - line.cell_len - (cell_len(right) + 2 if right else 0)
    if room < 12 and right:
        right, room = "", width - line.cell_len
    line.append(set_cell_size(text, max(0, room)), "bold")
    if right:
        line.append(f"  {right}")
    return line


def _next(view: View, width: int) -> str:
    """The limit that is reached first, or what a verdict needs."""
    screen, found = view.screen(width), view.frame.found
    parts = []
    if found is not None and found.need_more is not None:
        parts.append(forecast.needs(found, found.need_more, screen))
    elif found is not None and found.verdict is Verdict.INCONCLUSIVE:
        parts.append("A leak shows once the growth has lasted longer.")
    nearest = _nearest_limit(view)
    if nearest is not None:
        parts.insert(0 if found and found.verdict is Verdict.LEAK else 1, nearest)
    if not parts and found is not None:
        parts = [_headroom(found, view)]
    text = "  ".join(parts)
    if cell_len(text) > width and len(parts) > 1:
        text = parts[0]
    return screen.show(text, cells=width)


def _nearest_limit(view: View) -> str | None:
    """The limit that growth reaches first: `host RAM (16 GB) in 13 min`."""
    hits = [
        (hit.in_s, hit)
        for found in view.findings.values()
        if found.growth_per_x is not None and found.growth_per_x.low > 0
        for hit in found.limit_hits
        if hit.in_s is not None and hit.in_s > 0
    ]
    if not hits:
        return None
    in_s, hit = min(hits, key=lambda one: one[0])
    name = view.screen(40).show(hit.limit, cells=30)
    size = numbers.size(hit.limit_bytes)
    return f"{name} ({size}) full in about {numbers.duration(in_s)} if it goes on."


def _headroom(found: Finding, view: View) -> str:
    """The peak, and what is left of the lowest limit: `peak 1.2 GB, 15 GB below host RAM`."""
    peak = f"peak {numbers.quantity(found.peak_value, found.unit)}"
    holding = [
        limit
        for limit in view.limits
        if found.role in limit.roles and limit.holds_for(found.metric, found.process)
    ]
    if not holding:
        return peak
    limit = min(holding, key=lambda one: one.value_bytes)
    left = numbers.size(limit.value_bytes - found.peak_value)
    name = view.screen(40).show(limit.name, cells=30)
    return f"{peak}, {left} below {name} ({numbers.size(limit.value_bytes)})"


def _position(view: View, width: int, *, is_paused: bool) -> Text:
    """Where the run is, and what memdiag costs."""
    screen = view.screen(width)
    memory = view.histories.get((TREE, "rss_bytes"))
    step = view.step
    parts = [
        "PAUSED (p continues)" if is_paused else clock(view.elapsed_s),
        "" if step is None else f"step {step:,}",
        "" if memory is None else numbers.size(memory.latest),
        "" if not view.phase else screen.show(view.phase, cells=20),
        f"{len(view.alive())} processes" if len(view.alive()) > 1 else "",
        f"memdiag {view.cost:.1%} of a core",
        f"{view.frame.missed_ticks} late samples" if view.frame.missed_ticks else "",
    ]
    dot = " | " if screen.ascii_only else " · "
    line = ""
    for part in filter(None, parts):
        longer = f"{line}{dot}{part}" if line else f" {part}"
        if cell_len(longer) > width:
            break
        line = longer
    return Text(line, "dim")


def tabs(view: View, width: int) -> Text:
    """The series with their numbers; the one that is shown in reverse."""
    screen, shown, line = view.screen(width), view.shown, Text(" ")
    keys = view.series()
    if shown in keys and keys.index(shown) >= 9:
        keys = [*keys[:8], shown]
    for at, key in enumerate(keys[:9], start=1):
        label = f"{at} {_series_name(key, screen)}"
        if line.cell_len + cell_len(label) + 2 > width:
            line.append(screen.ellipsis)
            break
        line.append(label, "reverse" if key == shown else "")
        line.append("  ")
    line.truncate(width)
    return line


def _series_name(key: Key, screen: Screen) -> str:
    process, metric = key
    name = series_names.metric(metric, screen, cells=20)
    return f"{name} of {series_names.process(process, screen, cells=14)}" if process else name


def chart(view: View, width: int, height: int) -> list[Text]:
    """The series that is shown, with onset, plateau, limits, marks and phases."""
    key = view.shown
    if key is None:
        return [Text(" waiting for samples", "dim")]
    picture = picture_of(view, key, width)
    has_band = bool(picture.phases) and height > 7
    if not has_band:
        picture = replace(picture, phases=())
    labels = [mark for mark in picture.curves[0].marks if mark.kind in plot.DRAWN_MARKS]
    rows = height - 2 - has_band - len(labels)
    lines = plot.draw(picture, width - 1, ascii_only=view.about.ascii_only, most_rows=max(2, rows))
    return lines or [Text(" waiting for samples", "dim")]


def picture_of(view: View, key: Key, width: int) -> Picture:
    """The picture of a series, with the readings so far."""
    _, metric = key
    history, found = view.histories[key], view.findings.get(key)
    screen = view.screen(width)
    kind = view.axis(key)
    unit = Unit.BYTES if metric.endswith("_bytes") else Unit.COUNT
    points = history.points(2 * width)
    if found is None or found.axis.kind is not kind:
        curve = Curve(name=_series_name(key, screen), points=points)
        picture = Picture(unit=unit, axis=kind, axis_word=kind.value, curves=(curve,))
    else:
        if view.frame.found is None or view.frame.found.verdict is not Verdict.LEAK:
            found = replace(found, onset_x=None)  # the rules of the report have not agreed
        picture = of_finding(replace(found, trace=points, tops=()), screen)
    curve = picture.curves[0]
    marks = [*curve.marks, *(_user_mark(at, mark, kind) for at, mark in enumerate(view.marks, 1))]
    left = points[0][0]
    marks = [mark for mark in marks if left <= mark.x <= history.latest_x]
    limits = {(level.label, level.value): level for level in picture.levels}
    for level in _limits(view, key, max(value for _, value in points), screen):
        limits[level.label, level.value] = level
    # The phases of the job are on the axis of its tree.
    tree = view.histories.get((TREE, "rss_bytes"))
    phases = view.phases.spans if tree is None or tree.is_stepped == history.is_stepped else ()
    return replace(
        picture,
        curves=(replace(curve, points=points, tops=(), marks=tuple(marks)),),
        levels=tuple(limits.values()),
        phases=tuple(span for span in phases if span.end_x >= left),
    )


def picture_to_save(view: View) -> Picture | None:
    """The picture of the series that is shown, for an image; None before there are readings."""
    key = view.shown
    if key is None:
        return None
    picture = picture_of(view, key, _OF_IMAGE)
    verdict = _verdict(view.frame.found, view, _OF_IMAGE).plain
    name, command = picture.curves[0].name, view.screen(_OF_IMAGE).show(view.about.title)
    return replace(picture, title=" ".join(verdict.split()), subject=f"{name}, {command}")


def _user_mark(at: int, mark: tuple[float, int | None], kind: AxisKind) -> Mark:
    at_s, step = mark
    x = float(step) if kind is AxisKind.STEP and step is not None else at_s
    return Mark(x=x, label=f"mark {at}", kind=MarkKind.USER)


def _limits(view: View, key: Key, highest: float, screen: Screen) -> list[Level]:
    process, metric = key
    role = METRIC_ROLES.get(metric)
    return [
        Level(
            value=float(limit.value_bytes),
            label=f"{screen.show(limit.name, cells=24)}, {numbers.size(limit.value_bytes)}",
        )
        for limit in view.limits
        if role in limit.roles
        and limit.holds_for(metric, process)
        and limit.value_bytes <= _LIMIT_IN_SIGHT * highest
    ]


def table(view: View, width: int, height: int) -> list[Text]:
    """The processes: readings and growth, in the chosen order."""
    screen, processes = view.screen(width), view.alive()
    columns = [
        column
        for column in _COLUMNS
        if column[0] in {"process", "rss_bytes", "growth"}
        or any(column[0] in one.readings for one in processes)
    ]
    rows = [[title + _arrow(name, view) for name, title in columns]]
    rows += [
        [_cell(one, name, view, screen) for name, _ in columns]
        for one in processes[: max(0, height - 1)]
    ]
    widths = [max(cell_len(row[at]) for row in rows) for at in range(len(columns))]
    lines = []
    for row in rows:
        cells = [set_cell_size(row[0], widths[0])]
        cells += [
            " " * (room - cell_len(cell)) + cell
            for cell, room in zip(row[1:], widths[1:], strict=True)
        ]
        lines.append(Text(set_cell_size(" " + "  ".join(cells), width)))
    lines[0].stylize("bold")
    hidden = len(processes) - (len(lines) - 1)
    if hidden > 0 and len(lines) > 1:
        lines[-1] = Text(f" {screen.ellipsis} {hidden + 1} more processes (o changes the order)")
    return lines


def _arrow(name: str, view: View) -> str:
    if name != view.order:
        return ""
    return " v" if view.about.ascii_only else " ↓"


def _cell(process: Process, name: str, view: View, screen: Screen) -> str:
    if name == "process":
        shown = series_names.process(process.name, screen, cells=20)
        return f"{shown} ({process.pid})"
    if name == "growth":
        found = view.growth(process)
        rate = None if found is None else rates.of(found)
        return "?" if rate is None else rate.brief()
    value = process.readings.get(name)
    if value is None or not math.isfinite(value):
        return "?"
    return numbers.size(value) if name.endswith("_bytes") else numbers.count(value)


def output(view: View, width: int, height: int) -> list[Text]:
    """The last lines of the job, under a title."""
    dash = "-" if view.about.ascii_only else "─"
    title = f" output of {view.screen(width).show(view.about.title, cells=max(10, width - 16))} "
    lines = [Text(set_cell_size(dash + title + dash * width, width), "dim")]
    return lines + [
        Text(set_cell_size(" " + line, width).rstrip())
        for line in view.output.last(max(0, height - 1))
    ]


def foot(view: View, width: int, message: str = "") -> Text:
    """The keys, or a message."""
    if message:
        return Text(view.screen(width).show(message, cells=width), "bold")
    line = Text(" ")
    for key, what in KEYS:
        if line.cell_len + len(key) + len(what) + 3 > width:
            break
        line.append(key, "bold reverse")
        line.append(f" {what}  ")
    return line


def help_lines(view: View, width: int) -> list[Text]:
    """What the keys do, and what is shown."""
    leave = (
        "leave the screen, or end the job: asks which" if view.about.is_ours else "stop watching"
    )
    rows = [
        ("q", leave),
        ("p", "pause the screen; recording goes on"),
        ("tab, 1-9", "show another series"),
        ("m", "mark this moment, here and in the notes of the report"),
        ("s", "save a picture of this series (PNG) in the working directory"),
        ("o", "sort the processes by the next column"),
        ("Ctrl-C", "interrupt the job" if view.about.is_ours else "stop watching"),
        ("", ""),
        ("chart", "each column of dots spans the lowest and the highest reading"),
        ("growth", "of RSS, at the end of what was recorded so far"),
        ("memdiag", "what measuring and this screen take of one core"),
        ("", ""),
        ("", "Any key goes back."),
    ]
    lines = [Text(" memdiag, live", "bold"), Text("")]
    for key, what in rows:
        line = Text(" ")
        line.append(f"{key:<9}", "bold")
        line.append(what)
        line.truncate(width)
        lines.append(line)
    return lines


def beside(left: Sequence[Text], right: Sequence[Text], width: int, height: int) -> list[Text]:
    """Two panes side by side; `width` is that of the left one."""
    lines = []
    for at in range(height):
        line = left[at].copy() if at < len(left) else Text("")
        line.truncate(width, pad=True)
        if at < len(right):
            line.append_text(right[at])
        lines.append(line)
    return lines
