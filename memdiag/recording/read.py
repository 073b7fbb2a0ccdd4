"""Turns the names that the user gives into recordings."""

from __future__ import annotations

import contextlib
import glob
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from memdiag.errors import ReadError, UsageError
from memdiag.recording.inputs.opening import mode_of
from memdiag.recording.inputs.source import STDIN, open_source
from memdiag.recording.read_options import DEFAULTS, MetricChoice, ReadOptions
from memdiag.recording.registry import read_table
from memdiag.recording.tables import infer_columns, native_columns, python_values
from memdiag.recording.tables.allocated_and_freed import with_held_memory
from memdiag.recording.tables.assemble import assemble
from memdiag.recording.tables.fill_levels import fill_levels
from memdiag.recording.tables.getrusage_fields import with_kib_of_getrusage
from memdiag.recording.tables.host_parts import with_available, with_host_names
from memdiag.recording.tables.intervals_in_text import at_intervals
from memdiag.recording.tables.named_values import with_named_values
from memdiag.recording.tables.nvidia_fields import with_mib
from memdiag.recording.tables.table import Table
from memdiag.recording.tables.unnamed_memory import with_unnamed_memory
from memdiag.recording.tables.windows_fields import with_long_names
from memdiag.recording.trackers import mlflow
from memdiag.recording.trackers.sent_series import as_recorded
from memdiag.safe_open import kind_of
from memdiag.values.measurements import AxisKind, Recording
from memdiag.values.metrics import is_native
from memdiag.values.sanitize import printable

_SUFFIXES = tuple(
    kind + packing
    for kind in (".csv", ".tsv", ".parquet", ".jsonl")
    for packing in ("", ".gz", ".zst")
)
# Where training frameworks put event files: `lightning_logs/version_0/`, `runs/NAME/train/`.
_DEEPEST, _FOLDERS_AT_MOST = 4, 10_000
# For all other formats a note shows which columns were read.
_SELF_EVIDENT = {"memdiag", "parquet", "csv"}
_NAMED = 4

# Called with each name that is left out, and what it is: "a FIFO".
LeftOut = Callable[[str, str], None]


def read(source: str, options: ReadOptions = DEFAULTS) -> Recording:
    """The recording in a file, on standard input for "-", or in a directory of MLflow's metrics.

    Raises ReadError (with file, line and what to try) for everything that cannot be read.
    """
    with np.errstate(all="ignore"):  # numbers too large for a float are missing
        return _read(source, options)


def read_values(
    values: object, options: ReadOptions = DEFAULTS, *, axis: object = None
) -> Recording:
    """The recording in a data frame, a dict of arrays or an array (`python_values.table_of`).

    axis: positions of the readings of an array, shape (n,). Raises ReadError or UsageError.
    """
    source = python_values.describe(values)
    is_array = source == "array"
    if is_array:
        if len(options.metrics) > 1:
            raise UsageError("an array has one metric", remedy="give a dict of arrays")
        choice = options.metrics[0] if options.metrics else MetricChoice(name="memory_bytes")
        table = python_values.table_of(values, name=choice.name, axis=axis)
        kind = options.x_is or (AxisKind.INDEX if axis is None else AxisKind.STEP)
        x = "" if axis is None else "x"
        options = replace(options, metrics=(choice,), x=x, x_is=kind)
    else:
        table = python_values.table_of(values)
    with np.errstate(all="ignore"):
        if is_native(table.names) and _as_recorded(options):
            return replace(native_columns.recording_of(table, STDIN), source=source)
        return assemble(table, infer_columns.plan(table, options, source), source)


def _as_recorded(options: ReadOptions) -> bool:
    """Return True if the options do not choose columns."""
    return not (options.x or options.x_is or options.metrics or options.phase_column)


def _read(source: str, options: ReadOptions) -> Recording:
    if source != STDIN and mlflow.is_run(Path(source)):
        table, format_ = mlflow.read_run(Path(source), options.max_input_bytes), "mlflow"
        interval_s = None
    else:
        with contextlib.closing(open_source(source, options)) as opened:
            table, format_ = read_table(opened, options)
            interval_s = opened.interval_s
    _check_table(options, format_, source)
    if is_native(table.names) and _as_recorded(options):
        return native_columns.recording_of(table, source)
    if _as_recorded(options) and (sent := as_recorded(table)) is not None:
        note = f"read as {format_}: what memdiag has sent there"
        recording = native_columns.recording_of(sent, STDIN)
        notes = (note, *recording.notes)
        return replace(recording, source=source, notes=notes)
    table = table.with_decimal_points()
    if not options.metrics:
        table = with_long_names(with_held_memory(with_kib_of_getrusage(table)))
        table = with_named_values(table, source)
        table = with_unnamed_memory(with_mib(with_available(with_host_names(table))))
    plan = infer_columns.plan(table, options, source)
    timed = None
    if interval_s is not None and format_ not in _SELF_EVIDENT and _as_recorded(options):
        timed = at_intervals(table, plan, interval_s)
        plan = timed or plan
    recording = _until_total(assemble(table, plan, source), table)
    recording = replace(recording, fill_levels=fill_levels(table, recording.series))
    if format_ in _SELF_EVIDENT:
        return recording
    phase = None if plan.phase is None else table.names[plan.phase]
    said = _read_as(recording, format_, phase, table.assumed if options.x_is is None else ())
    said += f", {interval_s:g} s apart as the text says" if timed is not None else ""
    return replace(recording, notes=(said, *recording.notes))


def _check_table(options: ReadOptions, format_: str, source: str) -> None:
    if options.table is not None and format_ != "markdown":
        raise ReadError(
            f"--table {options.table}: this is not a Markdown document",
            source=source,
            remedy="leave out --table",
        )


def _until_total(recording: Recording, table: Table) -> Recording:
    """The recording, planned to end where its axis counts up to that: `3/40`."""
    total = max((table.totals.get(one.axis.name, 0.0) for one in recording.series), default=0.0)
    moves = [np.diff(one.x[np.isfinite(one.x)]) for one in recording.series]
    is_within = all(one.x[np.isfinite(one.x)].max(initial=0.0) <= total for one in recording.series)
    is_one_run = all(one.generation is None for one in recording.series)
    is_planned = total and is_within and is_one_run and all((move >= 0).all() for move in moves)
    return replace(recording, planned_x=total) if is_planned else recording


def _read_as(
    recording: Recording, format_: str, phase: str | None, assumed: Collection[str]
) -> str:
    """The columns that were read from a log without a plain header."""
    columns = tuple(dict.fromkeys(series.column for series in recording.series))
    more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    text = f"read as {format_}: {', '.join(columns[:_NAMED])}{more}"
    axes = dict.fromkeys(series.axis.name for series in recording.series)
    text += f" over {', '.join(axes)}"
    if not axes.keys().isdisjoint(assumed):
        text += " (assumed, since the log does not name it: --x-is epoch if it counts epochs)"
    tagged = any(series.phases is not None for series in recording.series)
    return f"{text}, phases from {printable(phase[:80])}" if tagged and phase else text


def expand(arguments: Sequence[str], left_out: LeftOut | None = None) -> list[str]:
    """Expand arguments to sources: files, pipes, directories of recordings, TensorBoard log
    directories, MLflow runs, glob patterns, "-".

    From directories and patterns only regular files are taken; `left_out` is called for the rest. A
    name that matches nothing stays, so that reading it reports the error. Each source is returned
    once. Raises ReadError if nothing is left.
    """
    found: list[str] = []
    for argument in arguments:
        mode = mode_of(argument)
        if argument == STDIN or (mode is not None and not stat.S_ISDIR(mode)):
            found.append(argument)
        elif mode is not None:
            found.extend(_recordings_in(Path(argument), left_out))
        else:
            found.extend(_matching(argument, left_out))
    return list(dict.fromkeys(found))


def _matching(pattern: str, left_out: LeftOut | None) -> list[str]:
    # Path.glob does not accept absolute patterns.
    found = sorted(glob.iglob(pattern, recursive=True)) or [pattern]  # noqa: PTH207
    runs = {name for name in found if mlflow.is_run(Path(name))}
    # `**` also matches the directories on the way.
    report = None if "**" in pattern else left_out
    kept = runs | set(_regular((name for name in found if name not in runs), report))
    if not kept:
        raise ReadError(
            "no regular file matches this pattern",
            source=pattern,
            remedy="name the directories or files themselves",
        )
    return [name for name in found if name in kept]


def _regular(names: Iterable[str], left_out: LeftOut | None) -> Iterator[str]:
    """The names of regular files, and of what is unknown, since reading it reports the error."""
    for name in names:
        mode = mode_of(name)
        if mode is None or stat.S_ISREG(mode):
            yield name
        elif left_out is not None:
            left_out(name, kind_of(mode))


def _recordings_in(directory: Path, left_out: LeftOut | None) -> list[str]:
    try:
        inside = sorted(p for p in directory.iterdir() if p.name.lower().endswith(_SUFFIXES))
    except OSError as error:
        message, remedy = f"it cannot be listed: {error.strerror}", "name the files themselves"
        if isinstance(error, PermissionError):
            message = "no permission to list this directory"
            remedy = "name the files, or run as its owner"
        raise ReadError(message, source=str(directory), remedy=remedy) from error
    inside += _tracked_files(directory)
    found = list(_regular(map(str, inside), left_out))
    found += map(str, mlflow.runs_in(directory))
    if not found:
        raise ReadError(
            "there are no recordings in this directory",
            source=str(directory),
            remedy="name the files themselves; in a directory .csv, .tsv, .jsonl, .parquet, "
            "TensorBoard event files, W&B runs and MLflow metrics are read",
        )
    return found


def _is_tracked(name: str) -> bool:
    """Return True for the names of TensorBoard, W&B and MLflow."""
    return ".tfevents." in name or name.endswith(".wandb") or name == "mlflow.db"


def _tracked_files(directory: Path) -> list[Path]:
    """Files of trackers in the directory and below, up to a depth, not in hidden folders."""
    found = []
    for number, (place, folders, files) in enumerate(os.walk(directory)):
        path = Path(place)
        found += [path / name for name in files if _is_tracked(name)]
        deep = len(path.relative_to(directory).parts) >= _DEEPEST
        folders[:] = [] if deep else sorted(name for name in folders if name[0] != ".")
        if number >= _FOLDERS_AT_MOST:
            break
    return sorted(found)
