"""Finds the part of each column of any table by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from memdiag.errors import ReadError
from memdiag.recording.lazy_polars import as_series, is_numeric, is_text, pl
from memdiag.recording.parsing.cells import (
    has_numbers,
    holds_bytes,
    since_first_of_1970,
    times_as_text,
    to_numbers,
    to_seconds,
)
from memdiag.recording.parsing.column_meaning import (
    Meaning,
    Part,
    as_metric,
    is_available,
    is_bare_number,
    recognise,
)
from memdiag.recording.parsing.column_names import take_apart
from memdiag.recording.parsing.column_vocabulary import (
    ALLOCATED,
    DEVICE,
    FREE,
    MEMORY,
    NO_AMOUNTS,
    REQUESTS,
)
from memdiag.recording.parsing.timestamps import is_clock, is_date_alone, is_time_alone, spans_of
from memdiag.recording.read_options import MetricChoice, ReadOptions
from memdiag.recording.tables.assemble import Plan
from memdiag.recording.tables.axis import Candidate, counts_evenly, rises_strictly
from memdiag.recording.tables.group_processes import encode
from memdiag.recording.tables.named_values import is_value
from memdiag.recording.tables.table import Table
from memdiag.recording.tables.width import not_too_wide
from memdiag.values.measurements import Axis, AxisKind, Role, Unit
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.recording.lazy_polars import Column
    from memdiag.values.measurements import Floats

# A label column has few different values; a column of readings has many.
_ROWS_PER_LABEL = 2
_LAST_RANK = 10_000
# Mean seconds between two readings in a log, at least. Heuristic.
_PRINTED_S = 0.01
_CELLS_LOOKED_AT = 200
# For messages, and for columns that distinguish runs.
_COLUMNS_LOOKED_AT = 1000
_NO_COUNT = r"(?i)[0-9]\s*[kmgt]?i?b(?:ytes?)?\s*$"
_NO_MB = 1e6  # that would be a terabyte
_ALL_ALLOCATIONS = {"total", "alloc"}
# Of a machine: its disks have this label as well as its GPUs.
_ANY_DEVICE = {"device"}
# What an allocator of the host has in use; the sum of all that was ever allocated soon comes to so
# many times of it, the memory that it holds does not. Heuristic.
_IN_USE = {Role.IN_USE, Role.COLLECTED_HEAP}
_TIMES_IN_USE = 4


def plan(table: Table, options: ReadOptions, source: str) -> Plan:
    """Which column has which part. Raises ReadError if that is unclear."""
    meanings = not_too_wide(
        map(_meaning, table.names, table.columns),
        source,
        _header_line(table),
        chosen=bool(options.metrics),
    )
    phase = _phase(table, meanings, options, source)
    x = _find(table, options.x, source) if options.x else None
    taken = {phase, x}
    pid = _first(meanings, Part.PID, taken)
    metrics = _metrics(table, meanings, options, taken, source)
    labels = [
        (table.names[at], at)
        for at, meaning in enumerate(meanings)
        if meaning.part is Part.LABEL and at not in taken and _is_label(table.columns[at])
    ]
    axes = _axes(table, meanings, metrics, x, source)
    labels += _of_restarts(table, meanings, axes, taken)
    if not axes:
        found = _dated(table, meanings) or _rising(table, meanings, metrics, pid, labels)
        axes = [] if found is None else [found]
    return Plan(
        metrics=tuple(metrics),
        axes=tuple(axes),
        x_is=options.x_is,
        phase=phase,
        pid=pid,
        generation=_first(meanings, Part.GENERATION, taken),
        labels=tuple(labels),
        left_out=() if options.metrics else _left_out(table, meanings, metrics, taken),
        must_exist=bool(options.metrics),
    )


def _meaning(name: str, column: Column) -> Meaning:
    """The meaning of a column by its name, or by units of memory in its cells."""
    meaning = recognise(name)
    is_count = meaning.unit is Unit.COUNT
    if not (is_count or meaning.part is Part.OTHER) or not is_text(column):
        return meaning
    if (NO_AMOUNTS | {"cpu"}) & set(take_apart(name).words):  # 990m of a core are not megabytes
        return meaning
    cells = as_series(column[:_CELLS_LOOKED_AT])
    if not holds_bytes(cells) or _are_durations(cells):
        return meaning
    if is_count and not cells.str.contains(_NO_COUNT).any():  # "12K" objects are thousands
        return meaning
    return recognise(f"{name} (bytes)")


def _are_durations(cells: pl.Series) -> bool:
    """Return True for `3m`, `1h 5m`: a small m without a name of memory stands for minutes."""
    filled = cells.drop_nulls().str.strip_chars()
    if filled.str.contains("[A-Z]").any():
        return False
    return bool(np.isfinite(spans_of(filled)).all())


def _find(table: Table, wanted: str, source: str) -> int:
    """The column that the user means: by its exact name, by any case, or by its metric."""
    lower = wanted.strip().lower()
    ways: tuple[Callable[[str], bool], ...] = (
        lambda name: name == wanted,
        lambda name: name.strip().lower() == lower,
        lambda name: recognise(name).metric == lower,
    )
    for is_meant in ways:
        found = [at for at, name in enumerate(table.names) if is_meant(name)]
        if len(found) == 1:
            return found[0]
        if len(found) > 1:
            raise ReadError(
                f"{len(found)} columns are called {printable(wanted)}",
                source=source,
                line=_header_line(table),
                remedy="rename one of them",
            )
    raise ReadError(
        f"no column {printable(wanted)!r}",
        source=source,
        line=_header_line(table),
        remedy=f"columns: {listed(table.names)}",
    )


def listed(names: tuple[str, ...]) -> str:
    """Column names for a message, as many as fit."""
    shown = [printable(name[:40]) or "(no name)" for name in names[:12]]
    return ", ".join(shown) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _header_line(table: Table) -> int | None:
    return None if table.first_line is None else max(1, table.first_line - 1)


def _first(meanings: list[Meaning], part: Part, taken: set[int | None]) -> int | None:
    found = (at for at, meaning in enumerate(meanings) if meaning.part is part and at not in taken)
    return next(found, None)


def _phase(table: Table, meanings: list[Meaning], options: ReadOptions, source: str) -> int | None:
    if options.phase_column:
        return _find(table, options.phase_column, source)
    tags = [at for at, meaning in enumerate(meanings) if meaning.part is Part.PHASE]
    return next((at for at in tags if is_text(table.columns[at])), None)


def _metrics(
    table: Table,
    meanings: list[Meaning],
    options: ReadOptions,
    taken: set[int | None],
    source: str,
) -> list[tuple[int, Meaning]]:
    if options.metrics:
        return [_chosen(table, choice, source) for choice in options.metrics]
    found = [
        (at, meaning)
        for at, meaning in enumerate(meanings)
        if meaning.part is Part.METRIC and at not in taken
    ]
    if found:
        found = found if table.is_chosen else _known_by_words(found)
        return _on_host(table, _without_sums(table, _without_free(found)))
    looked_at = islice(table.columns, _COLUMNS_LOOKED_AT)
    numeric = [at for at, column in enumerate(looked_at) if _has_numbers(column)]
    if not numeric:
        raise ReadError(
            "no column has numbers",
            source=source,
            line=_header_line(table),
            remedy="memdiag needs a step or time column and memory columns such as rss_mb",
        )
    others = tuple(table.names[at] for at in numeric)
    possible = [name for name in others if _may_be_memory(name)]
    remedy = "record memory beside them; if one of them is memory: --metric NAME=MB"
    if possible:
        named = next(filter(is_value, possible), possible[-1])
        unit = _unit_by_size(table.columns[table.names.index(named)])
        remedy = f"name the column: --metric '{printable(named[:40])}={unit}'"
    among = ""
    if len(table.columns) > _COLUMNS_LOOKED_AT:
        among = f" among the first {_COLUMNS_LOOKED_AT:,}"
    raise ReadError(
        f"no column looks like memory (columns with numbers{among}: {listed(others)})",
        source=source,
        line=_header_line(table),
        remedy=remedy,
    )


def _unit_by_size(column: Column) -> str:
    """The unit to propose for numbers without one."""
    return "bytes" if np.nanmax(to_numbers(column).values, initial=0.0) >= _NO_MB else "MB"


def _may_be_memory(name: str) -> bool:
    apart = take_apart(name)
    words = set(apart.words)
    return (
        bool(words)
        and not apart.percent
        and recognise(name).part is Part.OTHER
        and words.isdisjoint(NO_AMOUNTS)
    )


_PEAK = frozenset({"max", "maximum", "peak"})


def _known_by_words(metrics: list[tuple[int, Meaning]]) -> list[tuple[int, Meaning]]:
    """Drop what only its unit shows to be memory if words show it of others: beside `RSS (MB)`,
    `Processed (GB)` is data. Beside its own maximum, `PGA_MB` is memory, as `PGA_MAX_MB` is.
    """
    has_words = any(
        not (meaning.by_unit or meaning.capacity) and meaning.unit is not Unit.COUNT
        for _, meaning in metrics
    )
    words = {tuple(m.metric.split("_")) for _, m in metrics if m.role is Role.PEAK}
    peaks = {tuple(word for word in one if word not in _PEAK) for one in words}
    return [
        (at, m)
        for at, m in metrics
        if not (has_words and m.by_unit) or tuple(m.metric.split("_")) in peaks
    ]


def _without_free(metrics: list[tuple[int, Meaning]]) -> list[tuple[int, Meaning]]:
    """Drop the machine's free memory if available memory is known, or both used memory and cache.

    Reading a file turns free memory into cache, which is not growth.
    """
    host = [(at, m) for at, m in metrics if m.falling and m.role is Role.HOST]
    roles = {meaning.role for _, meaning in metrics if not meaning.falling}
    is_split = Role.CACHE in roles and not roles.isdisjoint({Role.HOST, Role.RESIDENT})
    if not is_split and not any(is_available(m.metric) for _, m in host):
        return metrics
    free = {at for at, meaning in host if not FREE.isdisjoint(meaning.metric.split("_"))}
    return [(at, meaning) for at, meaning in metrics if at not in free]


def _left_out(
    table: Table,
    meanings: list[Meaning],
    metrics: list[tuple[int, Meaning]],
    taken: set[int | None],
) -> tuple[str, ...]:
    """The columns of numbers that look like memory by their names or units, and are not taken."""
    used = {at for at, _ in metrics} | taken
    return tuple(
        table.names[at]
        for at, meaning in enumerate(islice(meanings, _COLUMNS_LOOKED_AT))
        if at not in used
        and (meaning.part is Part.METRIC or _looks_like_memory(table.names[at], meaning))
        and _has_numbers(table.columns[at])
    )


def _looks_like_memory(name: str, meaning: Meaning) -> bool:
    if meaning.part is not Part.OTHER:
        return False
    words = take_apart(name)
    return bool(words.bytes_per_unit) or not MEMORY.isdisjoint(words.words)


def _without_sums(table: Table, metrics: list[tuple[int, Meaning]]) -> list[tuple[int, Meaning]]:
    """Drop the total of what is allocated beside it, which sums up all allocations ever made, and
    what jemalloc retains beside what is resident: address space.
    """
    own = {at: table.names[at].rpartition(".")[2] for at, _ in metrics}  # of "memstats.Alloc"
    words = {at: set(take_apart(name).words) for at, name in own.items()}
    amounts = [found for found in words.values() if found and found <= ALLOCATED]
    has_resident = any("resident" in found for found in words.values())
    return [
        (at, m)
        for at, m in metrics
        if (words[at] - {"total"} not in amounts or words[at] in amounts)
        and not (has_resident and words[at] == {"retained"})
        and not (_is_total_allocated(words[at]) and _is_sum(table, (at, m), metrics))
    ]


def _is_total_allocated(words: set[str]) -> bool:
    return "total" in words and bool(words & ALLOCATED) and words.isdisjoint(DEVICE)


def _is_sum(
    table: Table, metric: tuple[int, Meaning], others: Sequence[tuple[int, Meaning]]
) -> bool:
    """Return True if it never falls, and comes to several times of what an allocator of the host
    has in use.
    """
    in_use = [_amount(table, *other) for other in others if other[1].role in _IN_USE]
    total = _amount(table, *metric)
    if not in_use or not total.size or not bool(np.all(np.diff(total) >= 0)):
        return False
    return bool(total[-1] >= _TIMES_IN_USE * max(float(one.max(initial=0.0)) for one in in_use))


def _amount(table: Table, at: int, meaning: Meaning) -> Floats:
    cells = to_numbers(table.columns[at])
    values = cells.values[np.isfinite(cells.values)]
    return values * (1.0 if cells.unit is not None else meaning.factor)


def _on_host(table: Table, metrics: list[tuple[int, Meaning]]) -> list[tuple[int, Meaning]]:
    """Where resident memory or the sum of all allocations stands beside it, and nothing is of a
    device, an allocator of the host tells what is allocated, and mapped: jemalloc, Go. Beside
    memory of a machine, `active` is of the machine.
    """
    words = [set(take_apart(name).words) for name in table.names[:_COLUMNS_LOOKED_AT]]
    if any(DEVICE & one for one in words if one != _ANY_DEVICE):
        return metrics
    has_allocator = any("resident" in one or one == _ALL_ALLOCATIONS for one in words)
    has_machine = any(meaning.role is Role.HOST for _, meaning in metrics)
    found = []
    for at, meaning in metrics:
        own, role = set(take_apart(table.names[at]).words), meaning.role
        if has_machine and "active" in own:
            role = Role.HOST
        elif has_allocator:
            role = Role.VIRTUAL if own == {"mapped"} else role
            role = Role.IN_USE if role is Role.DEVICE_ALLOCATED else role
        found.append((at, replace(meaning, role=role)))
    return found


def _chosen(table: Table, choice: MetricChoice, source: str) -> tuple[int, Meaning]:
    at = _find(table, choice.name, source)
    return at, as_metric(table.names[at], choice.unit, choice.factor, is_free=choice.is_free)


def _has_numbers(column: Column) -> bool:
    return has_numbers(to_numbers(column[:_CELLS_LOOKED_AT]).values)


def _is_label(column: Column) -> bool:
    if isinstance(column, np.ndarray) or column.dtype.is_float() or len(column) == 0:
        return False
    if column.dtype == pl.String and to_numbers(column[:_CELLS_LOOKED_AT]).unit is not None:
        return False  # the load of a GPU, not its number
    return column.n_unique() * _ROWS_PER_LABEL <= len(column) or column.n_unique() == 1


def _of_restarts(
    table: Table, meanings: list[Meaning], axes: list[Candidate], taken: set[int | None]
) -> list[tuple[str, int]]:
    """A column of text that changes exactly where the axis restarts: several runs below each
    other, each with its own name.
    """
    falls = [set(np.flatnonzero(x[1:] < x[:-1]).tolist()) for x in (axis.values for axis in axes)]
    if not any(falls):
        return []
    words = (
        at
        for at, meaning in enumerate(meanings)
        if meaning.part is Part.OTHER and at not in taken and is_text(table.columns[at])
    )
    for at in islice(words, _COLUMNS_LOOKED_AT):
        codes, values = encode(as_series(table.columns[at]).fill_null(""))
        changes = np.flatnonzero(np.diff(codes))
        are_runs = 1 < len(values) == len(changes) + 1 <= len(codes) / _ROWS_PER_LABEL
        if are_runs and any(set(changes.tolist()) == f for f in falls):
            return [("", at)]
    return []


def _axes(
    table: Table,
    meanings: list[Meaning],
    metrics: list[tuple[int, Meaning]],
    x: int | None,
    source: str,
) -> list[Candidate]:
    used = {at for at, _ in metrics}
    found = [
        _candidate(table, at, meaning)
        for at, meaning in enumerate(meanings)
        if meaning.part is Part.AXIS and at not in used and at != x
    ]
    if (whole := _date_and_time(table, meanings)) is not None:
        found = [c for c in found if c.axis.kind is not AxisKind.SECONDS] + [whole]
    found = _whole_steps([candidate for candidate in found if _is_position(candidate)])
    if x is None:
        return found
    chosen = replace(_candidate(table, x, meanings[x]), is_asked_for=True)
    if np.isfinite(chosen.values).sum() < 2:
        raise ReadError(
            f"column {printable(table.names[x])} has no numbers for an axis",
            source=source,
            remedy="choose another column with --x",
        )
    clocks = [c for c in found if c.axis.kind is AxisKind.SECONDS]
    return [chosen, *(clocks if chosen.axis.kind is not AxisKind.SECONDS else [])]


def _is_position(candidate: Candidate) -> bool:
    """Return True for several values, whole if they count: "load 3.2" is of a machine."""
    values = candidate.values[np.isfinite(candidate.values)]
    is_whole = candidate.axis.kind is not AxisKind.INDEX or bool(np.all(values == np.floor(values)))
    return values.size > 1 and values.min() < values.max() and is_whole


def _whole_steps(candidates: list[Candidate]) -> list[Candidate]:
    """Without steps that are fractions, if others are whole: fairseq's `update` counts epochs."""
    is_part = [one.axis.kind is AxisKind.STEP and _is_fraction(one.values) for one in candidates]
    others = [one for one, is_out in zip(candidates, is_part, strict=True) if not is_out]
    return others if any(one.axis.kind is AxisKind.STEP for one in others) else candidates


def _is_fraction(values: Floats) -> bool:
    values = values[np.isfinite(values)]
    return bool(2 * np.count_nonzero(values != np.floor(values)) > values.size)


def _date_and_time(table: Table, meanings: list[Meaning]) -> Candidate | None:
    """The clock of a column of dates and one of times of day beside each other."""
    clocks = [
        (at, text)
        for at, meaning in enumerate(meanings)
        if meaning.axis is AxisKind.SECONDS
        and (text := times_as_text(table.columns[at])) is not None
    ]
    date = next((one for one in clocks if is_date_alone(one[1])), None)
    time = next((one for one in clocks if is_time_alone(one[1])), None)
    if date is None or time is None:
        return None
    axis = Axis(
        name=printable(f"{table.names[date[0]]} {table.names[time[0]]}"[:80]), kind=AxisKind.SECONDS
    )
    values = to_seconds(date[1] + " " + time[1], 1.0)
    return Candidate(axis=axis, values=values, rank=meanings[date[0]].rank)


def _candidate(table: Table, at: int, meaning: Meaning) -> Candidate:
    kind = meaning.axis or AxisKind.INDEX
    column = table.columns[at]
    seconds = kind is AxisKind.SECONDS
    values = to_seconds(column, meaning.factor) if seconds else to_numbers(column).values
    rank = meaning.rank
    if seconds and is_numeric(column) and _is_simulated(table.names[at], values):
        kind, rank = AxisKind.INDEX, _LAST_RANK
    if kind is AxisKind.EPOCH and (since_first := since_first_of_1970(values)) is not None:
        kind, meaning, values = AxisKind.SECONDS, recognise("time"), since_first
        rank = meaning.rank
    if meaning.axis is None and (_counts_more_than_rows(values) or _is_request(table.names[at])):
        kind = AxisKind.REQUEST  # by its name, or several small units per row
    name = printable(table.names[at][:80])
    axis = Axis(name=name or ("the first column" if at == 0 else f"column {at + 1}"), kind=kind)
    is_assumed = meaning.axis is None or kind is AxisKind.TICK or is_bare_number(name)
    return Candidate(axis=axis, values=values, rank=rank, is_assumed=is_assumed)


def _is_simulated(name: str, values: Floats) -> bool:
    """Return True for a time without a unit that advances too slowly to be a clock: the time in
    what a program simulates, `time=2.1e-3 dt=2e-5`.
    """
    if take_apart(name).seconds_per_unit is not None:
        return False
    moves = np.diff(values[np.isfinite(values)])
    return len(moves) > 0 and bool(moves.min() >= 0) and float(moves.mean()) < _PRINTED_S


def _is_request(name: str) -> bool:
    return not REQUESTS.isdisjoint(take_apart(name).words)


def _counts_more_than_rows(values: Floats) -> bool:
    moves = np.diff(values[np.isfinite(values)])
    moves = moves[moves > 0]
    return len(moves) > 0 and float(np.median(moves)) >= 2


def _dated(table: Table, meanings: list[Meaning]) -> Candidate | None:
    """The first column of nothing but dates or times of day, whatever its name: `bin(5m)`."""
    for at, meaning in enumerate(meanings):
        column = table.columns[at]
        if meaning.part is Part.OTHER and is_text(column) and is_clock(as_series(column)):
            values = to_seconds(column, 1.0)
            if np.isfinite(values).all():
                axis = Axis(name=printable(table.names[at][:80]), kind=AxisKind.SECONDS)
                return Candidate(axis=axis, values=values, rank=_LAST_RANK)
    return None


def _rising(
    table: Table,
    meanings: list[Meaning],
    metrics: list[tuple[int, Meaning]],
    pid: int | None,
    labels: list[tuple[str, int]],
) -> Candidate | None:
    """The first column of numbers that counts up from row to row within every process."""
    used = {at for at, _ in metrics}
    by = next((at for at in [pid, *(at for _, at in labels)] if at is not None), None)
    parts = [slice(None)] if by is None else _rows_by(table.series[by])
    for at, meaning in enumerate(meanings):
        column = table.columns[at]
        if meaning.part not in {Part.OTHER, Part.LABEL} or at in used or not is_numeric(column):
            continue
        values = to_numbers(column).values
        if all(rises_strictly(values[part]) for part in parts) and counts_evenly(values):
            return replace(_candidate(table, at, meaning), rank=_LAST_RANK)
    return None


def _rows_by(column: pl.Series) -> list[slice]:
    codes, _ = encode(column.cast(pl.String).fill_null(""))
    if np.any(np.diff(codes) < 0):
        return [slice(None)]
    cuts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), codes.size]
    return [slice(a, b) for a, b in pairwise(cuts)]
