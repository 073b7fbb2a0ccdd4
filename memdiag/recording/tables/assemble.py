"""Turns columns with known parts into a recording: the last step of reading a table."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memdiag.errors import ReadError, TooShort
from memdiag.recording.lazy_polars import as_series, is_text, pl
from memdiag.recording.parsing.cells import Cells, has_numbers, measurable, resolution, to_numbers
from memdiag.recording.parsing.column_meaning import Meaning
from memdiag.recording.parsing.column_names import take_apart
from memdiag.recording.parsing.column_vocabulary import CAPACITY
from memdiag.recording.read_options import X_KINDS
from memdiag.recording.tables.axis import (
    Candidate,
    before_first_step_unknown,
    between_known_steps,
    choose,
    contradicts,
    end_early,
    length_of_epoch,
    resolve_resets,
    without_durations,
)
from memdiag.recording.tables.group_processes import (
    Group,
    encode,
    follow_each_other,
    split,
    split_repeated,
)
from memdiag.recording.tables.impossible_readings import without_impossible
from memdiag.recording.tables.table import Table
from memdiag.values.measurements import NOT_READ, Axis, AxisKind, Phases, Recording, Series, Unit
from memdiag.values.sanitize import printable
from memdiag.values.units import bytes_per_unit

if TYPE_CHECKING:
    from memdiag.recording.lazy_polars import Column
    from memdiag.values.measurements import Floats, Ints

_MAX_NAME, _MAX_CELL = 120, 40
_COUNTED = {
    AxisKind.STEP: "steps",
    AxisKind.EPOCH: "epochs",
    AxisKind.SECONDS: "seconds",
    AxisKind.REQUEST: "requests",
    AxisKind.INDEX: "samples or whole operations",
    AxisKind.TICK: "samples at an unknown interval",
}
_NAMED = 6
# A program has a dozen phases; batch numbers as phases would be as many as samples.
_PHASES_AT_MOST = 200
# What torch's allocator gives away, and pages, are multiples of it; numbers of KB mostly are not.
_BLOCK_BYTES = 512
_SURELY_NO_KB = 1e6
# So many cells of text below a name of memory are readings that cannot be read.
_LOST_AT_LEAST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which column has which part; numbers are column indices of the table.

    metrics: (column, meaning) with a METRIC's meaning.
    axes: candidates for the axis; the clock among them gives `at_s`.
    x_is: what the user says that the axis counts.
    labels: (name to put before bare numbers, column).
    left_out: names of columns that look like memory and are not analyzed.
    must_exist: the user asked for the metrics: one without numbers is an error, not skipped.
    """

    metrics: tuple[tuple[int, Meaning], ...]
    axes: tuple[Candidate, ...]
    x_is: AxisKind | None = None
    phase: int | None = None
    pid: int | None = None
    generation: int | None = None
    labels: tuple[tuple[str, int], ...] = ()
    left_out: tuple[str, ...] = ()
    must_exist: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metric:
    """A metric over all rows, in its final unit."""

    column: str
    meaning: Meaning
    name: str
    unit: Unit | None
    values: Floats
    resolution: float
    unread_share: float


def assemble(table: Table, plan: Plan, source: str) -> Recording:
    """The recording of a table. Raises ReadError if nothing can be analyzed."""
    notes = list(table.notes)
    if plan.left_out:
        notes.append(NOT_READ + _listed(plan.left_out))
    metrics = _metrics(table, plan, source, notes)
    groups = split(
        len(table),
        [(name, as_series(table.columns[at])) for name, at in plan.labels],
        None if plan.pid is None else as_series(table.columns[plan.pid]),
        None if plan.generation is None else as_series(table.columns[plan.generation]),
    )
    _refuse_single_rows(table, groups, source)
    axes = without_durations(plan.axes, [group.rows for group in groups])
    notes += _no_clock(plan.axes, axes)
    chosen = _chosen(choose(axes, notes), _rows_with_readings(metrics), plan.x_is, notes)
    clock = next((c for c in axes if c.axis.kind is AxisKind.SECONDS), None)
    epoch = next((c for c in axes if c.axis.kind is AxisKind.EPOCH), None)
    if apart := _repeated(table, plan, groups, metrics, chosen, clock, notes):
        groups = apart
        notes.append(
            f"each {chosen.axis.name} has {len(groups)} readings and nothing tells whose: taken"
            " apart by their size, as those of several processes"
        )
    phase = None
    if plan.phase is not None:
        phase = _phase_codes(as_series(table.columns[plan.phase]), notes)
    series: list[Series] = []
    without: list[str] = []
    for group in groups:
        found = _series_of(group, metrics, chosen, clock, epoch, phase, notes)
        if not found and group.label:
            without.append(group.label)
        series.extend(found)
    if without:
        notes.append(f"no readings of {_listed(without)}")
    return Recording(source=source, series=tuple(series), notes=tuple(dict.fromkeys(notes)))


def _no_clock(candidates: Sequence[Candidate], axes: Sequence[Candidate]) -> list[str]:
    """A note about times that are not read as a clock, [] if another is."""
    if any(candidate.axis.kind is AxisKind.SECONDS for candidate in axes):
        return []
    kept = {candidate.axis.name for candidate in axes}
    names = [c.axis.name for c in candidates if c.axis.kind is AxisKind.SECONDS]
    out = [name for name in names if name not in kept]
    return [f"not read as a clock, since it goes back often: {_listed(out)}"] if out else []


def _repeated(
    table: Table,
    plan: Plan,
    groups: Sequence[Group],
    metrics: Sequence[_Metric],
    chosen: Candidate,
    clock: Candidate | None,
    notes: list[str],
) -> list[Group]:
    """The rows of processes without names, [] if another column may tell the rows of a step apart,
    such as the number of a micro-batch, or if they are those of one process, with a note.
    """
    is_step = chosen.axis.kind is AxisKind.STEP  # within an epoch, one process may print often
    if len(groups) > 1 or plan.phase is not None or not is_step:
        return []
    at_s = None if clock is None else clock.values
    apart = split_repeated(chosen.values, metrics[0].values, at_s)
    readings = {at for at, _ in plan.metrics}
    others = (column for at, column in enumerate(table.columns) if at not in readings)
    if apart and any(as_series(column).n_unique() == len(apart) for column in others):
        return []
    left = np.isnan(metrics[0].values)
    for metric in metrics[1:] if apart else ():  # that are in rows of their own
        own = split_repeated(chosen.values, np.where(left, metric.values, np.nan), at_s)
        if len(own) == len(apart):
            apart = [np.union1d(*both) for both in zip(apart, own, strict=True)]
            left &= np.isnan(metric.values)
    if apart and all(follow_each_other(metric.values, apart) for metric in metrics):
        notes.append(f"each {chosen.axis.name} has {len(apart)} readings, which follow each other")
        return []
    return [
        Group(label=f"process {at} of {len(apart)}", rows=rows) for at, rows in enumerate(apart, 1)
    ]


def _chosen(
    found: Candidate | None, rows: Floats, x_is: AxisKind | None, notes: list[str]
) -> Candidate:
    """The axis, or a count of the rows, with what it counts; a note says so if it is assumed."""
    is_clock = found is not None and found.axis.kind is AxisKind.SECONDS
    if found is None or (is_clock and x_is not in {None, AxisKind.SECONDS}):
        if found is None:
            notes.append("no step or time column: the rows are counted")
        row = Axis(name="row", kind=AxisKind.INDEX)
        found = Candidate(axis=row, values=rows, rank=0, is_assumed=True)
    if x_is is not None:
        notes.append(f"{found.axis.name} counts {_COUNTED[x_is]}: set by --x-is")
        return replace(found, axis=replace(found.axis, kind=x_is))
    if found.is_assumed:
        counted = _COUNTED[found.axis.kind]
        notes.append(
            f"{found.axis.name} is assumed to count {counted}; --x-is overrides that"
            f" ({', '.join(X_KINDS)})"
        )
    return found


def _rows_with_readings(metrics: Sequence[_Metric]) -> Floats:
    """For each row, the number of those before it that have a reading: a table may be printed with
    details between its rows.
    """
    has_any = np.logical_or.reduce([np.isfinite(metric.values) for metric in metrics])
    before: Floats = np.cumsum(has_any) - has_any.astype(float)
    return before


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(printable(name[:_MAX_NAME]) for name in names[:_NAMED]) + more


def _metrics(table: Table, plan: Plan, source: str, notes: list[str]) -> list[_Metric]:
    found, reasons, lost = [], [], 0.0
    for at, meaning in plan.metrics:
        name = printable(table.names[at][:_MAX_NAME])
        cells = to_numbers(table.columns[at])
        if not has_numbers(cells.values):
            if plan.must_exist:
                raise ReadError(
                    _no_number(cells, at, table), source=source, remedy="choose another column"
                )
            reasons.append(_no_number(cells, at, table))
            notes.extend([f"not read: {reasons[-1]}"] if cells.unread else [])
            lost = max(lost, _share_lost(table.columns[at], meaning, cells))
            continue
        notes.extend(_unread(cells, at, table))
        metric = _in_final_unit(name, meaning, cells)
        possible, wrong = without_impossible(metric.values, name, meaning.role)
        notes.extend(wrong)
        unread = max(metric.unread_share, table.unread_share)
        metric = replace(metric, values=possible, unread_share=unread)
        if not has_numbers(metric.values):
            reasons.extend(wrong)
            continue
        if not plan.must_exist and _is_capacity(metric, len(plan.metrics)):
            notes.append(f"{name} is a constant total or limit: not analyzed")
            continue
        found.append(metric)
    found = _settle_units(found, notes)
    if not found and plan.metrics and all(meaning.capacity for _, meaning in plan.metrics):
        raise ReadError(
            "its only column of memory is a limit",
            source=source,
            remedy="log the memory in use too",
        )
    if not found:
        raise ReadError(
            reasons[0] if reasons else "its memory columns have no numbers",
            source=source,
            remedy="write its readings as plain numbers, or with a unit: 812.5 or 812.5 MB",
        )
    return [replace(metric, unread_share=max(metric.unread_share, lost)) for metric in found]


def _share_lost(column: Column, meaning: Meaning, cells: Cells) -> float:
    """The share of readings that nothing is known of where a column of memory is text without a
    number: all, unless it is a limit, a count, the unit of another column, or a few cells only.
    """
    is_amount = meaning.unit is not Unit.COUNT and not meaning.capacity
    if not (is_text(column) and is_amount and cells.unread >= _LOST_AT_LEAST):
        return 0.0
    different = as_series(column).drop_nulls().unique().to_list()
    return float(any(bytes_per_unit(text) is None for text in different))


def _unread(cells: Cells, at: int, table: Table) -> list[str]:
    """A note about the cells that are not numbers, [] if there are none."""
    if cells.unread_row is None:
        return []
    name = printable(table.names[at][:_MAX_NAME])
    without = "1 cell" if cells.unread == 1 else f"{cells.unread} cells"
    first = _quoted(cells.unread_row, at, table)
    return [f"{without} of {name} without a number, the first is {first}: left out"]


def _no_number(cells: Cells, at: int, table: Table) -> str:
    name = printable(table.names[at][:_MAX_NAME])
    if cells.unread_row is None:
        return f"{name} has no numbers: all its cells are empty"
    return f"no cell of {name} is a number, the first is {_quoted(cells.unread_row, at, table)}"


def _quoted(row: int, at: int, table: Table) -> str:
    """A cell, and its line if rows are lines."""
    cell = printable(str(as_series(table.columns[at])[row])[:_MAX_CELL])
    return f'"{cell}"' + (f" about line {table.first_line + row}" if table.first_line else "")


def _in_final_unit(name: str, meaning: Meaning, cells: Cells) -> _Metric:
    unit, metric, factor = meaning.unit, meaning.metric, meaning.factor
    if cells.unit is not None and unit is not Unit.COUNT:
        stem = metric.removesuffix("_bytes").removesuffix("_percent")
        unit, factor, metric = cells.unit, 1.0, f"{stem}_{cells.unit.value}"
    step = resolution(cells.values) * factor
    return _Metric(
        column=name,
        meaning=meaning,
        name=printable(metric),
        unit=unit,
        values=measurable(_scaled(cells.values, factor)),
        resolution=step,
        unread_share=_unread_share(cells),
    )


def _unread_share(cells: Cells) -> float:
    if not cells.unread:
        return 0.0
    return cells.unread / (cells.unread + int(np.isfinite(cells.values).sum()))


def _scaled(values: Floats, factor: float) -> Floats:
    """The values times `factor`, in place if they are a copy already: a column may be large.

    (Arrays that polars owns are read-only.)
    """
    if factor == 1.0:
        return values
    return np.multiply(values, factor, out=values if values.flags.writeable else None)


def _settle_units(metrics: list[_Metric], notes: list[str]) -> list[_Metric]:
    """Numbers of unknown unit are bytes if some metric has only whole blocks, else they stay as
    they are: only the name of a unit distinguishes KB from MB.
    """
    unknown = [metric for metric in metrics if metric.unit is None]
    if not unknown:
        return metrics
    names = ", ".join(metric.column for metric in unknown)
    whole = next((metric.column for metric in unknown if _whole_blocks(metric.values)), None)
    if whole is not None:
        notes.append(
            f"{names}: taken as bytes, since all of {whole} are multiples of {_BLOCK_BYTES}"
        )
        return [_as_bytes(metric) if metric.unit is None else metric for metric in metrics]
    notes.append(
        f"the unit of {names} is unknown: shown without one"
        f" (set it with --metric {shlex.quote(f'{unknown[0].column}=MB')})"
    )
    return [replace(m, unit=Unit.COUNT) if m.unit is None else m for m in metrics]


def _whole_blocks(values: Floats) -> bool:
    seen = values[np.isfinite(values)]
    return bool(seen.max() >= _SURELY_NO_KB and np.all(seen % _BLOCK_BYTES == 0))


def _as_bytes(metric: _Metric) -> _Metric:
    return replace(metric, unit=Unit.BYTES, name=f"{metric.name}_bytes")


def _is_capacity(metric: _Metric, metrics: int) -> bool:
    is_limit = not CAPACITY.isdisjoint(take_apart(metric.column).words)
    if not metric.meaning.capacity or (metrics < 2 and not is_limit):
        return False
    seen = metric.values[np.isfinite(metric.values)]
    return bool(np.all(seen == seen[0]))


def _refuse_single_rows(table: Table, groups: Sequence[Group], source: str) -> None:
    if len(table) == 1 or all(_few(group.rows) for group in groups):
        where = "one row" if len(table) == 1 else "one row per process"
        raise TooShort(
            f"there is only {where}, which cannot show growth",
            source=source,
            line=table.first_line,
            remedy="record it over time: memdiag run -- python train.py, or memdiag watch PID",
        )


def _few(rows: Ints | slice) -> bool:
    return not isinstance(rows, slice) and rows.size < 2


def _phase_codes(column: pl.Series, notes: list[str]) -> tuple[Ints, tuple[str, ...]] | None:
    codes, values = encode(column.cast(pl.String).fill_null(""))
    named = [value for value in values if value.strip()]
    if len(named) > _PHASES_AT_MOST:
        notes.append(f"{len(named):,} different phases are too many: left out")
        return None
    place = {value: at for at, value in enumerate(named)}
    new = np.array([place.get(value, -1) for value in values], dtype=np.int64)
    return new[codes], tuple(printable(value.strip()[:_MAX_NAME]) for value in named)


def _series_of(
    group: Group,
    metrics: Sequence[_Metric],
    chosen: Candidate,
    clock: Candidate | None,
    epoch: Candidate | None,
    phase: tuple[Ints, tuple[str, ...]] | None,
    notes: list[str],
) -> list[Series]:
    """One series per metric that has numbers in the group's rows."""
    rows = group.rows
    axis, x, generation, at_s = _placed(group, metrics, chosen, clock, epoch, notes)
    phases = _phases_of(phase, rows)
    whole = chosen if clock is None or axis is chosen.axis else clock
    x_per_epoch = _length_of_epoch(epoch, x, rows, whole)
    return [
        Series(
            metric=metric.name,
            column=metric.column,
            role=metric.meaning.role,
            unit=metric.unit,
            axis=axis,
            x=x,
            y=y,
            process=group.label,
            at_s=at_s,
            generation=generation,
            phases=phases,
            falling=metric.meaning.falling,
            may_be_free=metric.meaning.may_be_free,
            resolution=metric.resolution,
            unread_share=metric.unread_share,
            x_per_epoch=x_per_epoch,
        )
        for metric in metrics
        if metric.meaning.role is not None
        and metric.unit is not None
        and has_numbers(y := metric.values[rows])
    ]


def _placed(
    group: Group,
    metrics: Sequence[_Metric],
    chosen: Candidate,
    clock: Candidate | None,
    epoch: Candidate | None,
    notes: list[str],
) -> tuple[Axis, Floats, Ints | None, Floats | None]:
    """The axis of a group, the positions of its rows, their generations, and their times."""
    rows = group.rows
    axis, x = chosen.axis, chosen.values[rows]
    if clock is not None and np.isfinite(x).sum() < 2:
        axis, x = clock.axis, clock.values[rows]
    if axis.kind is AxisKind.STEP and clock is not None:
        at_s = clock.values[rows]
        if end_early(x, at_s):
            notes.append(
                f"{axis.name} ends long before the readings of {group.label or 'the run'} do: "
                f"{clock.axis.name} is the axis"
            )
            axis, x = clock.axis, at_s
        else:
            x = _by_clock(x, at_s, axis.name, notes)
    generation = group.generation
    if generation is None and axis.kind is not AxisKind.SECONDS:
        epochs = None if epoch is None or epoch.axis is axis else epoch.values[rows]
        reset = resolve_resets(x, metrics[0].values[rows], epochs, axis.name)
        if reset is not None:
            x, generation = reset.x, reset.generation
            notes.append(reset.note)
    if clock is None:
        return axis, x, generation, None
    at_s = clock.values[rows]
    if not contradicts(x, at_s, generation):
        return axis, x, generation, at_s
    back = f"time goes back where {axis.name} goes on"
    if chosen.is_asked_for:
        notes.append(f"{back}: {clock.axis.name} is not used")
        return axis, x, generation, None
    notes.append(f"{back}: {clock.axis.name} is the axis")
    return clock.axis, at_s, generation, at_s


def _by_clock(x: Floats, at_s: Floats, name: str, notes: list[str]) -> Floats:
    """Steps without those of a start-up, and with those between that a log leaves out."""
    known = before_first_step_unknown(x)
    if (between := between_known_steps(known, at_s)) is None:
        return known
    notes.append(f"{name} is known only now and then: between, it follows the time")
    return between


def _phases_of(phase: tuple[Ints, tuple[str, ...]] | None, rows: Ints | slice) -> Phases | None:
    if phase is None or not bool((phase[0][rows] >= 0).any()):
        return None
    return Phases(codes=phase[0][rows], names=phase[1])


def _length_of_epoch(
    epoch: Candidate | None, x: Floats, rows: Ints | slice, whole: Candidate
) -> float | None:
    """By the rows of this process, or by all rows if only another one has the epochs."""
    if epoch is None or epoch.axis is whole.axis:
        return None
    if has_numbers(epoch.values[rows]):
        return length_of_epoch(epoch.values[rows], _with_start(x))
    return length_of_epoch(epoch.values, _with_start(whole.values))


def _with_start(x: Floats) -> Floats:
    """The first epoch begins before the end of the first step."""
    known = x[np.isfinite(x)]
    return np.where(np.isnan(x), known[0] - 1, x) if known.size else x
