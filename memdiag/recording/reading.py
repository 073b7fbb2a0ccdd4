"""The way in: what the user names becomes recordings."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memdiag.errors import UnreadableInput
from memdiag.model import Recording
from memdiag.printable import printable
from memdiag.recording import mlflow, native, tidy
from memdiag.recording.assemble import assemble
from memdiag.recording.formats import read_table
from memdiag.recording.options import DEFAULTS, ReadOptions
from memdiag.recording.schema import is_native
from memdiag.recording.source import STDIN, open_source

_SUFFIXES = tuple(
    kind + packing
    for kind in (".csv", ".tsv", ".parquet", ".jsonl")
    for packing in ("", ".gz", ".zst")
)
# Where training frameworks put event files: `lightning_logs/version_0/`, `runs/NAME/train/`.
_DEEPEST, _FOLDERS_AT_MOST = 4, 10_000
# Of all other formats it is said what was taken for what.
_SELF_EVIDENT = {"memdiag", "parquet", "csv"}
_NAMED = 4


def read(source: str, options: ReadOptions = DEFAULTS) -> Recording:
    """The recording in a file, on standard input for "-", or in a directory of MLflow's metrics.

    Raises UnreadableInput (with file, line and what to try) for everything that cannot be read.
    """
    if source != STDIN and mlflow.is_run(Path(source)):
        table, format_ = mlflow.read_run(Path(source)), "mlflow"
    else:
        table, format_ = read_table(open_source(source), options)
    if is_native(table.names) and not (options.x or options.metrics or options.phase_column):
        table = native.without_helpers(native.settled_labels(table))
        plan = native.plan(table)
        recording = assemble(table.only(plan.columns), plan, source)
        return native.with_sidecar(recording, None if source == STDIN else Path(source))
    plan = tidy.plan(table, options, source)
    table = table.only(plan.columns)
    recording = assemble(table, plan, source)
    if format_ in _SELF_EVIDENT:
        return recording
    phase = None if plan.phase is None else table.names[plan.phase]
    return replace(recording, notes=(_taken(recording, format_, phase), *recording.notes))


def _taken(recording: Recording, format_: str, phase: str | None) -> str:
    """What was made of a log without a plain header."""
    columns = tuple(dict.fromkeys(series.column for series in recording.series))
    more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
    text = f"read as {format_}: {', '.join(columns[:_NAMED])}{more}"
    axes = dict.fromkeys(series.axis.name for series in recording.series)
    text += f" over {', '.join(axes)}"
    tagged = any(series.phases is not None for series in recording.series)
    return f"{text}, phases from {printable(phase[:80])}" if tagged and phase else text


def expand(arguments: Sequence[str]) -> list[str]:
    """The sources that arguments mean: files, directories of recordings, TensorBoard's log
    directories, MLflow's runs, glob patterns, "-".

    A name that matches nothing stays, so that reading it says what is wrong. Each source comes
    once. Raises UnreadableInput for a directory without recordings.
    """
    found: list[str] = []
    for argument in arguments:
        path = Path(argument)
        if argument == STDIN or path.is_file():
            found.append(argument)
        elif path.is_dir():
            found.extend(_recordings_in(path))
        else:
            # Path.glob takes no absolute pattern.
            found.extend(sorted(glob.iglob(argument, recursive=True)) or [argument])  # noqa: PTH207
    return list(dict.fromkeys(found))


def _recordings_in(directory: Path) -> list[str]:
    try:
        inside = sorted(p for p in directory.iterdir() if p.name.lower().endswith(_SUFFIXES))
        inside += _event_files(directory)
        inside += mlflow.runs_in(directory)
    except PermissionError as error:
        raise UnreadableInput(
            "no permission to look into this directory",
            source=str(directory),
            remedy="name the files, or run as its owner",
        ) from error
    if not inside:
        raise UnreadableInput(
            "there are no recordings in this directory",
            source=str(directory),
            remedy="name the files themselves; in a directory .csv, .tsv, .jsonl, .parquet, "
            "TensorBoard's events and MLflow's metrics are read",
        )
    return [str(path) for path in inside]


def _event_files(directory: Path) -> list[Path]:
    """TensorBoard's files in it and in the folders below, not too deep and not in hidden ones."""
    found = []
    for number, (place, folders, files) in enumerate(os.walk(directory)):
        path = Path(place)
        found += [path / name for name in files if ".tfevents." in name]
        deep = len(path.relative_to(directory).parts) >= _DEEPEST
        folders[:] = [] if deep else sorted(name for name in folders if name[0] != ".")
        if number >= _FOLDERS_AT_MOST:
            break
    return sorted(found)
