"""memdiag's own recordings: the table's fixed columns, and the sidecar beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from memdiag.errors import UnreadableInput
from memdiag.model import Axis, AxisKind, Recording, Role, Unit
from memdiag.printable import printable
from memdiag.recording.assemble import Plan
from memdiag.recording.axis import Candidate
from memdiag.recording.cells import to_numbers
from memdiag.recording.columns import Meaning, Part, recognise
from memdiag.recording.layout import Layout, split_line
from memdiag.recording.schema import EPOCH_COLUMN, KEY_COLUMNS, METRIC_ROLES, is_native
from memdiag.recording.sidecar import Sidecar, read_sidecar, sidecar_path
from memdiag.recording.table import Table

_MOST_RANKS = 8


def layout(head: str, source: str) -> Layout | None:
    """The layout of a native recording, None if it is none. Raises UnreadableInput if it is one
    without a single sample.
    """
    header, _, rows = head.partition("\n")
    names = tuple(split_line(header, ","))
    if not is_native(names):
        return None
    if "\n" not in rows:
        raise UnreadableInput(
            "this recording holds no samples",
            source=source,
            line=1,
            remedy="the target ended before the first sample: record it again",
        )
    return Layout(delimiter=",", names=names, skip_lines=1, columns=len(names))


def plan(table: Table) -> Plan:
    """The fixed parts; every column that is no metric of memdiag's is a counter of the user's, but
    for `epoch`, which the probe counts at the passes of a data loader.
    """
    at = {name: position for position, name in enumerate(table.names)}
    metrics = [
        (position, _meaning(name))
        for position, name in enumerate(table.names)
        if position >= len(KEY_COLUMNS) and name and name != EPOCH_COLUMN
    ]
    clock = _axis(table, at["at_s"], AxisKind.SECONDS, rank=1)
    step = _axis(table, at["step"], AxisKind.STEP, rank=0)
    tagged = np.isfinite(step.values).sum() > 1
    epochs = []
    if EPOCH_COLUMN in at:
        epoch = _axis(table, at[EPOCH_COLUMN], AxisKind.EPOCH, rank=2)
        epochs += [epoch] if np.isfinite(epoch.values).any() else []
    return Plan(
        metrics=tuple(metrics),
        axes=(step, clock, *epochs) if tagged else (clock, *epochs),
        phase=at["phase"],
        pid=at["pid"],
        labels=(("", at["process"]),),
    )


def settled_labels(table: Table) -> Table:
    """The table with one label for each process.

    A process is "python 4711" until it is known to be a loader's worker or a rank; all of its rows
    get the later name. Where a pid was given out twice nothing is changed.
    """
    at = {name: position for position, name in enumerate(table.names)}
    rows = pl.DataFrame({"pid": table.columns[at["pid"]], "label": table.columns[at["process"]]})
    own = pl.format(" {}", "pid").cast(pl.String)
    texts = rows.lazy().filter(pl.col("label").cast(pl.String) != "tree")
    names = texts.group_by("pid").agg(
        pl.col("label").n_unique().alias("labels"), pl.col("label").last().alias("last")
    )
    first = pl.col("label").cast(pl.String).str.ends_with(own)
    again = pl.col("last").cast(pl.String).str.starts_with(pl.col("label").cast(pl.String))
    renamed = (pl.col("labels") == 2) & first & ~again & (pl.col("label") != "tree")
    chosen = rows.lazy().join(names, on="pid", how="left", maintain_order="left")
    label = chosen.select(pl.when(renamed).then("last").otherwise("label")).collect().to_series()
    columns = list(table.columns)
    columns[at["process"]] = label.alias("process")
    return replace(table, columns=tuple(columns))


def with_sidecar(recording: Recording, path: Path | None) -> Recording:
    """Adds what the sidecar knows."""
    if path is None:
        return recording
    sidecar = read_sidecar(sidecar_path(path))
    if sidecar is None:
        name = printable(sidecar_path(path).name)
        note = f"{name} is not beside it: how the run ended and its limits are not known"
        return replace(recording, notes=(*recording.notes, note))
    notes = recording.notes + _part_of_job(sidecar) + sidecar.notes
    if not sidecar.complete:
        notes += ("memdiag was stopped before the recording's end: it ends in the middle",)
    return replace(
        recording,
        notes=notes,
        missing=sidecar.missing,
        limits=sidecar.limits,
        marks=sidecar.marks,
        ending=sidecar.ending,
        planned_x=_planned(sidecar),
        about={**sidecar.about, **({"cost": sidecar.cost} if sidecar.cost else {})},
    )


def _part_of_job(sidecar: Sidecar) -> tuple[str, ...]:
    """Which ranks of how many are in the recording."""
    processes = sidecar.about.get("processes")
    told = [p for p in processes if isinstance(p, dict)] if isinstance(processes, list) else []
    ranks = {p["rank"] for p in told if isinstance(p.get("rank"), int)}
    worlds = {p["world_size"] for p in told if isinstance(p.get("world_size"), int)}
    if not ranks or len(worlds) != 1:
        return ()
    world = worlds.pop()
    if len(ranks) >= world:
        return (f"a distributed job: all {world} ranks are in this recording",)
    named = ", ".join(map(str, sorted(ranks)[:_MOST_RANKS]))
    more = ", ..." if len(ranks) > _MOST_RANKS else ""
    return (f"a distributed job of {world} ranks: {named}{more} in this recording",)


def _planned(sidecar: Sidecar) -> float | None:
    planned = sidecar.about.get("planned_steps")
    return float(planned) if isinstance(planned, (int, float)) else None


def _axis(table: Table, column: int, kind: AxisKind, rank: int) -> Candidate:
    values = to_numbers(table.columns[column]).values
    axis = Axis(name=table.names[column], kind=kind)
    return Candidate(axis=axis, values=values, rank=rank)


def _meaning(name: str) -> Meaning:
    role = METRIC_ROLES.get(name)
    unit = Unit.BYTES if name.endswith("_bytes") else Unit.COUNT
    if role is None and unit is Unit.BYTES:
        role = recognise(name).role
    return Meaning(part=Part.METRIC, metric=name, role=role or Role.COUNTER, unit=unit)
