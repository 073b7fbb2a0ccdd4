"""Reads training logs as text: named numbers somewhere in the lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from memdiag.errors import ReadError, UsageError
from memdiag.recording.inputs.lines import LINE_LIMIT, blocks, chunks, split_stamp, stamped
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.column_meaning import Part, recognise
from memdiag.recording.parsing.column_names import take_apart
from memdiag.recording.parsing.timestamps import FIRST_DATE_S, since_first
from memdiag.recording.tables.table import Table
from memdiag.recording.textlog.axis_totals import capacities, totals
from memdiag.recording.textlog.counted_things import LEAST_EPOCH_S
from memdiag.recording.textlog.day_lines import DayLines
from memdiag.recording.textlog.discover_fields import (
    COUNTED,
    LEADING,
    MEMORY_WORD,
    Field,
    find_fields,
)
from memdiag.recording.textlog.extract_blocks import ROWS_AT_MOST, Collector, Found, carried_on
from memdiag.recording.textlog.line_templates import Lines, lines_of
from memdiag.recording.textlog.number_style import NumberStyle, number_style
from memdiag.recording.textlog.numeric_dates import NumericDates
from memdiag.recording.textlog.search_lines import TAGS
from memdiag.recording.textlog.unread_sizes import (
    left_out,
    of_growth_alone,
    share_left_out,
    without_number,
)
from memdiag.recording.textlog.wordings import by_wording
from memdiag.values.measurements import Unit
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.recording.lazy_polars import Column
    from memdiag.values.measurements import Floats, Ints

_LOOKED_AT = 600
_GOLDEN = (5**0.5 - 1) / 2  # its multiples are spread evenly
_ROWS_AT_LEAST = 4
# An axis increases in this share of its steps; it may also stay or restart.
_ONWARDS = 0.6
# Of the moves of a position on another line than the reading, this share has one direction: the
# duration of each step goes up and down. Heuristic.
_ONE_WAY = 0.8
# Readings end early where more than this share of the positions is beyond the last one.
_BEYOND = 0.05
# Times that fall to less than this part begin again.
_BEGINS_AGAIN, _HALF_DAY_S = 0.5, 43_200.0
# Without an axis, this share of the lines must have memory values: prose about memory has numbers
# too.
_DENSE = 0.2
_HINT = r"(?i)m[eé]m|памят|rss|ram|heap|alloc|tensor|[0-9]\s?[KMGT]i?[Bo]?\b|bytes|uss|pss|vms"
# Screens of a monitor: so many times, and such a share of the lines.
_TIMES_AT_LEAST = 8
_NEARLY_ALL = 0.95
# Also addresses: `7f0013518150`, `0xc0b00ef`.
_ANY_FIGURE = re.compile(rb"(?:0x)?[0a-f]{8,}|0x[0a-f]+|[0, ]+")
_REPEATS_WITHIN = 1 << 18
_PROSE_WITHIN = 1 << 16
_DIGIT = "[0-9]"
# Tags that are not of a process.
_OF_MOMENTS = {"phase", "restart"}
_BEGINS_WITH_NUMBER = re.compile(rb"\s*[0-9]")
_FORMS_AT_MOST = 4000
_FORMS_NOTED = 500
# YOLO's heading, above lines that begin with `7/100`.
_OF_EPOCHS = re.compile(rb"Epoch {2,}[A-Za-z_]+ {2,}[A-Za-z_]")
# Of a bar: `Caching images (3.2GB RAM):  12%|█▏   | 14190/118287`, `Loading into RAM: 4%| | 2/50`.
_OF_CACHE = re.compile(
    rb"(?i)\b(?:(?:pre)?caching|loading\b[^\n\r]{0,40}\bin(?:to)? (?:RAM|memory))\b"
    rb"[^\n\r]{0,120}?[^0-9.][0-9]+/[0-9]+ "
)
_CACHED = "items cached"
_DECIMATED = f"of more than {ROWS_AT_MOST:,} lines with values those with the extremes were kept"


def read_text(source: Source) -> Table | None:
    """The table in a log, None if its lines have no memory values, or too few."""
    collector: Collector | None = None
    filled = 0
    of_memory: dict[str, int] = {}
    stated: dict[str, float] = {}
    style: NumberStyle | None = None
    days: DayLines | None = None
    dates: NumericDates | None = None
    repeats = False
    for block in blocks(source):
        dates = dates or NumericDates(block)
        text = dates.with_times(block)
        style, days = style or number_style(text), days or DayLines(text)
        lines = lines_of(days.dated(style.plain(text)))
        filled += len(lines.starts)
        if collector is None and (collector := _collector_for(lines)) is not None:
            of_memory, repeats = _each_of_memory(lines), _repeats(lines)
            stated = capacities(block[:_PROSE_WITHIN].decode("utf-8", "replace"), collector.fields)
        if collector is not None:
            collector.read(lines)
    if collector is None:
        return None
    found = _merged(collector)
    chosen = _chosen(collector.fields, found)
    table = _as_table(collector, found, chosen, filled, source, repeats=repeats)
    if table is None:
        return None
    fields = collector.fields
    metrics, axes = [fields[n] for n in chosen.metrics], [fields[n] for n in chosen.axes]
    notes = left_out(of_memory, metrics, axes, own=chosen.own)
    unread = share_left_out(of_memory, metrics, axes, own=chosen.own)
    ended, share = _end_early(collector.fields, found, chosen)
    without, unreadable = without_number(of_memory, metrics)
    grown, unseen = of_growth_alone(of_memory, metrics)
    notes = (*notes, *without, *ended, *grown)
    unread = max(unread, share, unreadable, unseen)
    for name, each in _several(collector, found, chosen).items():
        notes += (f"{name}: the {each:g} amounts at each position or time are one series",)
        unread = max(unread, 1 - 1 / each)
    return replace(
        table,
        notes=(*notes, _DECIMATED) if collector.coarseness else notes,
        unread_share=unread,
        totals=stated | totals(of_memory, fields),
        assumed=frozenset(f.name for f in axes if f.is_guessed and f.name == COUNTED),
    )


def _collector_for(lines: Lines) -> Collector | None:
    counted = "epoch" if _OF_EPOCHS.search(lines.raw) else COUNTED
    if len(_OF_CACHE.findall(lines.raw)) > len(lines.starts) / 2:
        counted = _CACHED
    looked_at = _to_look_at(lines)
    is_about = MEMORY_WORD.search(lines.raw[:_PROSE_WITHIN].decode("utf-8", "replace")) is not None
    leading = _leading_name(lines)
    found = find_fields(looked_at, counted, leading, is_about_memory=is_about)
    fields = by_wording(found, looked_at)
    if not fields:
        return None
    metrics = [field for field in fields if field.meaning.part is Part.METRIC]
    return Collector(fields, carries_stamps=not _have_stamps(lines, metrics))


def _merged(collector: Collector) -> Found:
    """What was collected, with fields of one name as one, whose words stand before or behind it."""
    found, fields = collector.collected(), collector.fields
    first: dict[str, int] = {}
    also: dict[str, tuple[Field, ...]] = {}
    for n, field in enumerate(fields):
        if (one := first.setdefault(field.name, n)) != n:
            ours = found.values[one]
            ours[:] = np.where(np.isnan(ours), found.values[n], ours)
            also[field.name] = (*also.get(field.name, ()), field)
    if not also:
        return found
    collector.fields = [replace(fields[n], also=also.get(name, ())) for name, n in first.items()]
    return replace(found, values=found.values[list(first.values())])


def _have_stamps(lines: Lines, metrics: Sequence[Field]) -> bool:
    """Return True if one of the first readings of each of these metrics has a time in its line."""
    looked_at = (lines.line(n).decode("utf-8", "replace") for n in range(len(lines.starts)))
    without, with_time = set[int](), set[int]()
    for line in islice(looked_at, _LOOKED_AT):
        one = split_stamp(line[:LINE_LIMIT])
        found = (n for n, field in enumerate(metrics) if field.find(one.line) is not None)
        (without if one.stamp is None else with_time).update(found)
        if len(with_time) == len(metrics):
            return True
    return bool(with_time) and without <= with_time


def _leading_name(lines: Lines) -> str:
    """What numbers at the start of lines count, by a heading: `epoch  mem before -> after`."""
    above = b""
    for n in range(min(len(lines.starts), _LOOKED_AT)):
        line = lines.line(n)
        if _BEGINS_WITH_NUMBER.match(line):
            words = "" if re.search(rb"[0-9]", above) else above.decode("utf-8", errors="replace")
            name = words.split(maxsplit=1)[0] if words.strip() else ""
            return name if recognise(name).part is Part.AXIS else LEADING
        above = line
    return LEADING


def _to_look_at(lines: Lines) -> Sequence[str]:
    """Lines to find the fields on: those that mention memory, or any if too few do."""
    forms = [form for form in lines.zeroed().split(b"\n") if form]
    with_numbers, of_memory = _relevant(list(set(forms)))
    numbered = [n for n, form in enumerate(forms) if form in with_numbers]
    hinted = [n for n in numbered if forms[n] in of_memory]
    chosen = hinted if len(hinted) * 20 >= len(numbered) or len(hinted) >= 20 else numbered
    is_short = chosen is hinted and len(chosen) <= _LOOKED_AT
    others = sorted(set(numbered[: _LOOKED_AT // 2]) - set(hinted)) if is_short else []
    chosen = _spread(chosen)
    return [_without_stamp(lines.line(n)) for n in (*chosen, *others)]


def _spread(lines: list[int]) -> list[int]:
    """At most _LOOKED_AT lines, from all parts of the log but at uneven distances: processes may
    take turns.
    """
    if len(lines) <= _LOOKED_AT:
        return lines
    places = np.arange(_LOOKED_AT) * _GOLDEN % 1 * len(lines)
    return [lines[at] for at in np.unique(places.astype(int))]


def _each_of_memory(lines: Lines) -> dict[str, int]:
    """One line of each form that mentions memory, in their order, and how often the form occurs."""
    first: dict[bytes, int] = {}
    forms = [form for form in lines.zeroed().split(b"\n") if form]
    for n, form in enumerate(forms):
        first.setdefault(form, n)
    _, of_memory = _relevant(list(first))
    often = Counter(forms)
    chosen = islice((form for form in first if form in of_memory), _FORMS_NOTED)
    return {_without_stamp(lines.line(first[form])): often[form] for form in chosen}


def _repeats(lines: Lines) -> bool:
    """Return True if nearly all lines come again and again with other numbers: the screens of a
    monitor.
    """
    head = lines_of(lines.raw[:_REPEATS_WITHIN]).zeroed()
    forms = (_ANY_FIGURE.sub(b"0", form) for form in head.split(b"\n"))
    often = Counter(form for form in forms if form.strip(b"0"))
    several = sum(count for count in often.values() if count >= _TIMES_AT_LEAST)
    return several >= _NEARLY_ALL * often.total()


def _relevant(forms: Sequence[bytes]) -> tuple[set[bytes], set[bytes]]:
    """The forms of lines with numbers, and those of them that mention memory."""
    if len(forms) > _FORMS_AT_MOST:  # polars is faster for many, but slow to start
        texts = stamped(b"\n".join(forms))["line"]
        numbered, hinted = texts.str.contains(_DIGIT).to_list(), texts.str.contains(_HINT).to_list()
    else:
        each = list(map(_without_stamp, forms))
        numbered, hinted = (
            [re.search(p, text) is not None for text in each] for p in (_DIGIT, _HINT)
        )
    with_numbers = set(compress(forms, numbered))
    return with_numbers, with_numbers & set(compress(forms, hinted))


def _without_stamp(line: bytes) -> str:
    return split_stamp(line.decode("utf-8", errors="replace")[:LINE_LIMIT]).line


def _refuse_invalid(pattern: str) -> None:
    """Raise UsageError for a pattern that is no regular expression at all."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"invalid regular expression {printable(pattern)!r} for --pattern: {error.msg}",
            remedy="quote it and escape special characters: 'loss \\[(?<rss_mb>[0-9.]+)\\]'",
        ) from error


def read_pattern(source: Source, pattern: str) -> Table:
    """The table of a pattern's named groups: one row per line that matches."""
    names = list(re.findall(r"\(\?P?<([A-Za-z_]\w*)>", pattern))
    if not names:
        _refuse_invalid(pattern)
        raise UsageError(
            "the pattern has no named groups",
            remedy=r"name its groups: --pattern 'step (?<step>\d+).*rss (?<rss_mb>[\d.]+)'",
        )
    try:
        parts = [
            _groups(chunk, pattern, names[0]).drop_nulls(names[:1]) for chunk in chunks(source)
        ]
    except pl.exceptions.PolarsError as error:
        raise UsageError(
            f"invalid regular expression: {printable(str(error))[:120]}",
            remedy="look-around and back-references are not supported",
        ) from error
    frame = pl.concat(parts)
    if frame.is_empty():
        raise ReadError(
            "the pattern matches no line", source=source.name, remedy="test it on one of its lines"
        )
    columns = tuple(frame[name] for name in names)
    return Table(names=tuple(names), columns=columns, first_line=None)


def _groups(chunk: pl.DataFrame, pattern: str, first: str) -> pl.DataFrame:
    """The groups of a pattern in each line without its time, or else in the whole line."""
    rest, whole = (chunk[name].str.extract_groups(pattern) for name in ("line", "whole"))
    found: pl.DataFrame = whole.zip_with(rest.struct.field(first).is_null(), rest).struct.unnest()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """Which fields become columns, by their numbers.

    own: the readings have their positions in their own lines.
    """

    metrics: Sequence[int]
    axes: Sequence[int]
    own: bool


def _chosen(fields: Sequence[Field], found: Found) -> _Chosen:
    """The metrics, and the positions in their lines.

    If all readings with a word of memory have positions, sizes with neither belong to something
    else: to parameters, or to another program that writes into the same log. Positions that the
    lines of a metric never have are not those of the readings: iterations, if it is read by epoch.
    """
    metrics = [n for n, f in enumerate(fields) if f.meaning.part is Part.METRIC]
    axes = [n for n, f in enumerate(fields) if f.meaning.part is Part.AXIS]
    placed = [n for n in metrics if _leading(fields, axes, found, [n])]
    of_memory = {n for n in metrics if fields[n].is_of_memory}
    if of_memory and of_memory <= set(placed):
        metrics = placed
    own = _leading(fields, axes, found, metrics)
    have = _have_any(found, own)
    if any(n in of_memory and not (have & _have_any(found, [n])).any() for n in metrics):
        own = []
    return _Chosen(metrics=metrics, axes=own or axes, own=bool(own))


def _leading(
    fields: Sequence[Field], axes: Sequence[int], found: Found, metrics: Sequence[int]
) -> list[int]:
    """The axes that lead in the lines with one of these metrics, of each process."""
    wanted = _have_any(found, metrics)
    order = _by_process(found, np.flatnonzero(wanted))
    there = (
        (n, _those(found.values[n], wanted) if order is None else found.values[n][order])
        for n in axes
    )
    return [n for n, x in there if _leads(_positions(x) if fields[n].leads else x)]


def _by_process(found: Found, rows: Ints) -> Ints | None:
    """These rows, those of each process together; None if there is one."""
    tags = [codes[rows] for name, codes in found.tags.items() if name not in _OF_MOMENTS]
    tags = [codes for codes in tags if codes.size and (codes != codes[0]).any()]
    return rows[np.lexsort(tags)] if tags else None


def _as_table(
    collector: Collector,
    found: Found,
    chosen: _Chosen,
    lines: int,
    source: Source,
    *,
    repeats: bool,
) -> Table | None:
    metrics, axes = chosen.metrics, chosen.axes
    wanted = _have_any(found, metrics)
    for n in () if chosen.own else axes:
        _carry_on(found.values[n], wanted)
    if chosen.own:  # a value without a position does not belong to the series
        wanted &= _have_any(found, axes)
    rows = found if wanted.all() else found.of(np.flatnonzero(wanted))
    rows = _with_times_of_stages(rows, metrics)
    is_other = collector.carries_stamps and not _keeps_on(rows.stamps)  # durations, of other logs
    if is_other or _are_of_other_days(rows, metrics):
        rows = replace(rows, stamps=np.full(len(rows.stamps), np.nan))
    most = int((~np.isnan(rows.values[metrics])).sum(axis=1).max(initial=0))
    carrying = [
        n
        for n in axes
        if chosen.own
        or (
            _fills_half(rows.values[n])
            and (
                collector.fields[n].leads
                or _keeps_on(rows.values[n], is_guessed=collector.fields[n].is_guessed)
            )
        )
    ]
    if chosen.own and 0 < most < _ROWS_AT_LEAST:
        raise ReadError(
            f"no memory readings over enough steps: only {most} lines have them",
            source=source.name,
            remedy=f"paste at least {_ROWS_AT_LEAST} such lines",
        )
    # Sizes without a word of memory, a position or a time are a listing: of tensors, of files.
    of_memory = any(collector.fields[n].is_of_memory for n in metrics)
    is_level = any(not collector.fields[n].by_unit for n in metrics)
    is_ordered = chosen.own or _fills_half(rows.stamps) or (is_level and carrying)
    is_dense = (of_memory or carrying) and len(rows.stamps) >= _DENSE * lines
    is_dense = is_dense or (is_level and repeats)
    if most < _ROWS_AT_LEAST or not (is_ordered or is_dense):
        return None
    if not carrying and np.isnan(rows.stamps).all():
        rows = _of_blocks(rows)
    table = _named(collector, rows, [*carrying, *metrics, *_fills(collector.fields)])
    if (generation := _generations(found, metrics, wanted)) is None:
        return table
    names, columns = (*table.names, "generation"), (*table.columns, generation)
    return replace(table, names=names, columns=columns)


def _are_of_other_days(rows: Found, metrics: Sequence[int]) -> bool:
    """Return True for times of day without dates that go back and forth within the same hours:
    `09:03`, `09:01`, `09:04`, of one reading each day. Those of threads go back by little.
    """
    those = np.flatnonzero(_have_any(rows, metrics) & np.isfinite(rows.stamps))
    times = rows.stamps[those]
    if times.size < _ROWS_AT_LEAST or times.max() >= FIRST_DATE_S:
        return False
    if _by_process(rows, those) is not None:
        return False
    times = since_first(times)  # beyond midnight
    moves = np.diff(times)
    back = moves[moves < 0]
    is_often = len(back) > (1 - _ONE_WAY) * int((moves != 0).sum())
    return is_often and not _keeps_on(times) and -back.sum() * 2 >= times.max() - times.min()


def _fills(fields: Sequence[Field]) -> Sequence[int]:
    return [n for n, field in enumerate(fields) if field.meaning.part is Part.FILL]


def _of_blocks(rows: Found) -> Found:
    """Lines that are printed again and again, with a value each, as one row for each time; as they
    are if a value would be lost, or if they are of several processes.
    """
    is_there = ~np.isnan(rows.values)
    block = np.cumsum(is_there, axis=1).max(axis=0, initial=1) - 1
    is_lost = any((np.diff(block[there]) == 0).any() for there in is_there)
    if is_lost or not all((codes == codes[0]).all() for codes in rows.tags.values()):
        return rows
    first = np.flatnonzero(np.diff(block, prepend=-1))
    merged = rows.of(first)
    for ours, values, there in zip(merged.values, rows.values, is_there, strict=True):
        ours[np.searchsorted(block[first], block[there])] = values[there]
    return merged


def _end_early(
    fields: Sequence[Field], found: Found, chosen: _Chosen
) -> tuple[tuple[str, ...], float]:
    """A note where positions go on well beyond the last reading, and their share of all."""
    has_reading = _have_any(found, chosen.metrics)
    for n in chosen.axes if chosen.own else ():
        placed = np.flatnonzero(np.isfinite(found.values[n]))
        read = np.flatnonzero(has_reading[placed])
        beyond = placed.size - 1 - read[-1]
        if beyond > max(2 * np.diff(read, prepend=0).max(), _BEYOND * placed.size):
            last, end = found.values[n][placed[[read[-1], -1]]]
            name = fields[n].name
            note = f"readings of memory end at {name} {last:g} of {end:g}"
            return (note,), float(beyond / placed.size)
    return (), 0.0


def _several(collector: Collector, found: Found, chosen: _Chosen) -> dict[str, float]:
    """The fields of which most positions or times, on lines of their own, have several different
    amounts below them, with their number: of things that nothing else than their order tells apart.
    """
    moments = [found.values[n] for n in chosen.axes]
    moments += [found.stamps] if collector.carries_stamps else []
    several: dict[str, float] = {}
    for n in () if chosen.own else chosen.metrics:
        field = collector.fields[n]
        if field.meaning.unit is not Unit.COUNT:
            least, apart = (2, 1.0) if field.by_unit else (3, 2.0)
            rows = np.flatnonzero(np.isfinite(found.values[n]))
            order = _by_process(found, rows)
            rows = rows if order is None else order
            each = _amounts_at_once(found.values[n][rows], [at[rows] for at in moments], apart)
            several |= {_column_name(field): each} if each >= least else {}
    return several


def _amounts_at_once(values: Floats, moments: Sequence[Floats], apart: float) -> float:
    """The median number of values at each moment, 0 if the largest of most is not that many times
    the smallest.
    """
    changes = np.zeros(max(0, values.size - 1), dtype=bool)
    for at in moments:
        changes |= np.diff(np.nan_to_num(at)) != 0
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    if len(starts) < _ROWS_AT_LEAST:
        return 0.0
    highest = np.maximum.reduceat(values, starts)
    lowest = np.minimum.reduceat(values, starts)
    each = float(np.median(np.diff(np.append(starts, values.size))))
    return each if np.median(highest >= apart * lowest) > 0 else 0.0


def _with_times_of_stages(rows: Found, metrics: Sequence[int]) -> Found:
    """The rows; times that restart at zero, while the memory does not, are added to those before:
    `elapsed time = 00:00:17` of each stage of a program.
    """
    if not metrics:
        return rows
    y, stamps = rows.values[metrics[0]], rows.stamps
    there = np.flatnonzero(np.isfinite(y) & np.isfinite(stamps))
    times = stamps[there]
    again = np.flatnonzero(times[1:] < _BEGINS_AGAIN * times[:-1]) + 1
    if not again.size or times.min() < 0 or times.max() >= _HALF_DAY_S:
        return rows
    runs = np.split(y[there], again)
    goes_on = [after[0] > (before.min() + before.max()) / 2 for before, after in pairwise(runs)]
    if sum(goes_on) * 2 <= len(goes_on) or (np.diff(times) < 0).sum() > len(again):
        return rows
    before = np.zeros(len(times))
    before[again] = times[again - 1]
    added = stamps.copy()
    added[there] += np.cumsum(before)
    return replace(rows, stamps=added)


def _generations(
    found: Found, metrics: Sequence[int], wanted: NDArray[np.bool_]
) -> NDArray[np.float64] | None:
    """How often the process was restarted before each reading, by lines between readings that say
    so; None without restarts, if the readings do not fall at each, or if the lines are of several
    processes.
    """
    if not found.tags.keys() <= _OF_MOMENTS or "restart" not in found.tags:
        return None
    restarts = np.cumsum((found.tags["restart"] >= 0) & ~_have_any(found, metrics)).astype(float)
    y, generation = found.values[metrics[0]], restarts[wanted]
    there = wanted & np.isfinite(y)
    y, starts = y[there], np.flatnonzero(np.diff(restarts[there])) + 1
    runs = np.split(y, starts)
    fell = [after[0] < (before.min() + before.max()) / 2 for before, after in pairwise(runs)]
    return generation if fell and all(fell) else None


def _have_any(found: Found, fields: Sequence[int]) -> NDArray[np.bool_]:
    """The lines with a value of one of these fields."""
    has_it = np.zeros(len(found.stamps), dtype=bool)
    for n in fields:
        has_it |= ~np.isnan(found.values[n])
    return has_it


def _those(readings: Floats, wanted: NDArray[np.bool_]) -> Floats:
    """The wanted values (without a copy if all are wanted, as in most logs)."""
    return readings if wanted.all() else readings[wanted]


def _carry_on(positions: Floats, wanted: NDArray[np.bool_]) -> None:
    """Let a position on its own line apply to the lines below it, or to those above it if the log
    begins with readings and ends with a position.

    wanted: the lines with readings.
    """
    known, rows = np.flatnonzero(~np.isnan(positions)), np.flatnonzero(wanted)
    if not known.size or not rows.size:
        return
    above = rows[0] < known[0] and rows[-1] < known[-1]
    line = positions[::-1] if above else positions  # a view
    line[:] = carried_on(line)


def _leads(positions: Floats) -> bool:
    """Return True if most readings have a position, and it mostly increases."""
    with np.errstate(invalid="ignore"):
        moves = np.diff(positions[~np.isnan(positions)])
    onwards = int((moves > 0).sum())
    return _fills_half(positions) and onwards >= 2 and onwards >= _ONWARDS * len(moves)


def _onwards(positions: Floats, share: float = _ONWARDS) -> bool:
    """Return True if this share of the moves of a position is onwards; it may also stay."""
    moves = np.diff(positions[~np.isnan(positions)])
    return bool((moves > 0).sum() >= share * (moves != 0).sum())


def _keeps_on(positions: Floats, *, is_guessed: bool = False) -> bool:
    """Return True if nearly all moves are in one direction, which may be back if the newest
    readings come first; of a guessed position, if most are onwards.
    """
    if is_guessed:
        return _onwards(positions)
    return _onwards(positions, _ONE_WAY) or _onwards(-positions, _ONE_WAY)


def _fills_half(readings: Floats) -> bool:
    return int(np.isnan(readings).sum()) * 2 < len(readings)


def _named(collector: Collector, rows: Found, chosen: Sequence[int]) -> Table:
    names: list[str] = []
    columns: list[Column] = []
    for n in chosen:
        field, readings = collector.fields[n], rows.values[n]
        is_clock = field.leads and _is_clock(readings)
        names.append("timestamp" if is_clock else _column_name(field))
        columns.append(_positions(readings) if field.leads else readings)
    if not np.isnan(rows.stamps).all():
        names.append("timestamp")
        columns.append(since_first(rows.stamps))
    for name in (name for name in TAGS if name != "restart"):
        if name in rows.tags and (rows.tags[name] >= 0).any():
            names.append(name)
            columns.append(collector.tags(name, rows.tags[name]))
    return Table(names=tuple(names), columns=tuple(columns), first_line=None, is_chosen=True)


def _is_clock(leading: Floats) -> bool:
    """Return True for seconds since 1970, or parts of them, as `date +%s` prints."""
    seen = leading[~np.isnan(leading)]
    return seen.size > 0 and bool(seen.min() >= LEAST_EPOCH_S)


def _positions(leading: Floats) -> Floats:
    """A number at the start of each line counts samples, or repetitions of the line (`uniq -c`),
    whose positions are then the sums of the counts before.
    """
    if np.isnan(leading).any() or bool((leading[1:] >= leading[:-1]).all()):
        return leading
    with np.errstate(invalid="ignore"):  # of "1e999"
        return np.cumsum(leading) - leading


def _column_name(field: Field) -> str:
    """The name of a column; values that had a unit are in bytes now, whatever the name says."""
    if not field.scaled or field.meaning.unit is not Unit.BYTES:
        return field.name
    label = field.name.rpartition("(")[0].strip()
    if not label and take_apart(field.name).bytes_per_unit is not None:  # "rss_mb=812 MB"
        label = " ".join(take_apart(field.name).words)
    return f"{label} (bytes)" if label else field.name
