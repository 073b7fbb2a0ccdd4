"""memdiag's own recordings: the fixed columns of the table, and the sidecar beside it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from memdiag.errors import TooShort
from memdiag.recording.inputs.source import STDIN, Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.native.sidecar import Sidecar, read_sidecar, sidecar_path
from memdiag.recording.parsing.cells import has_numbers, to_numbers
from memdiag.recording.parsing.column_meaning import Meaning, Part, recognise
from memdiag.recording.tables.assemble import Plan, assemble
from memdiag.recording.tables.axis import Candidate
from memdiag.recording.tables.csv_dialect import Layout, split_line
from memdiag.recording.tables.table import Table, read_text_table
from memdiag.recording.tables.width import not_too_wide
from memdiag.values.holders import ProcessCensuses, ProcessHolders, ProcessInterventions
from memdiag.values.measurements import YOUNG_S, Axis, AxisKind, Recording, Role, Unit
from memdiag.values.metrics import EPOCH_COLUMN, KEY_COLUMNS, METRIC_ROLES, is_native
from memdiag.values.sanitize import printable

_MOST_RANKS = 8
# As the probe's `facts.UNNAMED_CHILD`, which nobody imports.
UNNAMED_CHILD = "multiprocessing child"
OfProcess = TypeVar("OfProcess", ProcessHolders, ProcessCensuses, ProcessInterventions)
_RSS = "rss_bytes"
_TREE = "tree"
# Follows the pid of a process whose pid was used before.
_TURN = r" \(\d+\)$"
# Times are rounded when written.
_ROUNDING_S = 0.002
# Short-lived processes are reported if one of them had this share of the tree's peak: chosen.
_REPORTED_SHARE = 0.1
# Of fewer rows nothing can be said.
_LEAST_ROWS = 3


def is_recording(source: Source) -> bool:
    """Return True if the source has the header of a native recording."""
    return is_native(_names(source))


def read_recording(source: Source) -> Table:
    """The rows of a native recording. Raises TooShort if there are none."""
    names = _names(source)
    if "\n" not in source.first_lines().partition("\n")[2]:
        raise TooShort(
            "this recording holds no samples",
            source=source.name,
            line=1,
            remedy="the target ended before the first sample: record it again",
        )
    layout = Layout(delimiter=",", names=names, skip_lines=1, columns=len(names))
    return read_text_table(source, layout)


def _names(source: Source) -> tuple[str, ...]:
    return tuple(split_line(source.first_lines().partition("\n")[0], ","))


def recording_of(table: Table, source: str) -> Recording:
    """The recording of a native table, with its sidecar unless it comes from standard input."""
    table = _without_helpers(_with_final_labels(table))
    if source == STDIN:
        return _assembled(table, source)
    sidecar = read_sidecar(sidecar_path(Path(source)))
    if sidecar is not None:
        table = _work_of(table, sidecar)
    if sidecar is not None and _is_unmeasured(table, sidecar):
        return _with_sidecar(Recording(source=source, series=()), sidecar, Path(source))
    recording = _with_sidecar(_assembled(table, source), sidecar, Path(source))
    labels = _labels(table)
    return replace(
        recording,
        holders=_labelled(recording.holders, labels),
        censuses=_labelled(recording.censuses, labels),
        interventions=_labelled(recording.interventions, labels),
    )


def _is_unmeasured(table: Table, sidecar: Sidecar) -> bool:
    """Return True if no memory could be recorded, and the sidecar says why."""
    columns = [one for name, one in zip(table.names, table.series, strict=True) if name == _RSS]
    is_explained = any(one.metric == _RSS for one in sidecar.missing)
    return is_explained and all(one.null_count() == len(one) for one in columns)


def _assembled(table: Table, source: str) -> Recording:
    """The recording, in which a tree of one process has the readings of that process.

    The process is also read at its steps, the tree's total only at each interval: the same memory
    with fewer readings could get another verdict.
    """
    recording = assemble(table, _plan(table, source), source)
    series = recording.series
    only = {s.process for s in series} - {_TREE}
    counts = [s for s in series if s.process == _TREE and s.role is Role.PROCESSES]
    if len(only) != 1 or not counts or any(np.nanmax(s.y, initial=1) > 1 for s in counts):
        return recording
    own = {s.metric: s for s in series if s.process != _TREE}
    series = tuple(
        replace(own[s.metric], process=_TREE) if s.process == _TREE and s.metric in own else s
        for s in series
    )
    return replace(recording, series=series)


def _plan(table: Table, source: str) -> Plan:
    """The fixed columns. Every other column is a counter of the user's, except `epoch`, which the
    probe counts at the passes of a data loader. Raises ReadError for too many columns.
    """
    at = {name: position for position, name in enumerate(table.names)}
    metrics = [
        (position, _meaning(name))
        for position, name in enumerate(table.names)
        if position >= len(KEY_COLUMNS) and name and name != EPOCH_COLUMN
    ]
    not_too_wide((meaning for _, meaning in metrics), source, line=1)
    clock = _axis(table, at["at_s"], AxisKind.SECONDS, rank=1)
    step = _axis(table, at["step"], AxisKind.STEP, rank=0)
    tagged = np.isfinite(step.values).sum() > 1
    epochs = []
    if EPOCH_COLUMN in at:
        epoch = _axis(table, at[EPOCH_COLUMN], AxisKind.EPOCH, rank=2)
        epochs += [epoch] if has_numbers(epoch.values) else []
    return Plan(
        metrics=tuple(metrics),
        axes=(step, clock, *epochs) if tagged else (clock, *epochs),
        phase=at["phase"],
        pid=at["pid"],
        labels=(("", at["process"]),),
    )


def _with_final_labels(table: Table) -> Table:
    """The table with one label for each process.

    A process is "python 4711" until it is known to be the main process, a loader worker or a rank
    (or "multiprocessing child" before it has read its job from its parent); all of its rows get
    the last name. Processes with a reused pid are not changed.
    """
    at = {name: position for position, name in enumerate(table.names)}
    rows = _owners(table)
    label = pl.col("label")
    own = label.filter(label != _TREE)
    child = label.str.starts_with(UNNAMED_CHILD)  # of two at a time, one has its pid in the label
    names = rows.group_by("pid").agg(
        again=(pl.col("unnamed") & ~child & label.str.contains(_TURN)).any(),
        last=own.last(),
        labels=own.n_unique(),
    )
    # "SpawnProcess-1" becomes "rank0 SpawnProcess-1" when its job begins.
    longer = pl.col("last").str.ends_with(pl.format(" {}", label))
    renamed = (pl.col("labels") > 1) & ~pl.col("again") & (label != _TREE)
    renamed &= pl.col("unnamed") | longer
    chosen = rows.join(names, on="pid", how="left", maintain_order="left")
    settled = chosen.select(pl.when(renamed).then("last").otherwise("label")).collect().to_series()
    columns = list(table.series)
    columns[at["process"]] = settled.alias("process")
    return replace(table, columns=tuple(columns))


def _without_helpers(table: Table) -> Table:
    """The table without the rows of processes that lived shorter than YOUNG_S: the tree's rows
    include them. A note reports them if they were large.
    """
    at = {name: position for position, name in enumerate(table.names)}
    at_s = table.series[at["at_s"]].cast(pl.Float64, strict=False)
    owners = _owners(table).with_columns(at_s=at_s)
    lived = pl.col("at_s").max().over("pid", "label") - pl.col("at_s").min().over("pid", "label")
    helper = pl.col("unnamed") & (pl.col("label") != _TREE) & (lived < YOUNG_S - _ROUNDING_S)
    is_helper = owners.select(helper.fill_null(value=False)).collect().to_series()
    if not is_helper.any():
        return table
    return table.filter(~is_helper, *_note_on_helpers(table, is_helper))


def _note_on_helpers(table: Table, is_helper: pl.Series) -> tuple[str, ...]:
    """A note on the short-lived processes if one of them had a large part of the tree's peak."""
    at = {name: position for position, name in enumerate(table.names)}
    if "rss_bytes" not in at:
        return ()
    resident = table.series[at["rss_bytes"]].cast(pl.Float64, strict=False)
    label = table.series[at["process"]].cast(pl.String)
    helpers = pl.DataFrame({"label": label, "peak": resident}).filter(is_helper)
    peaks = helpers.group_by("label").agg(pl.col("peak").max()).drop_nulls().sort("peak", "label")
    whole = resident.filter(label == _TREE).max()
    if (
        peaks.is_empty()
        or not isinstance(whole, float)
        or peaks["peak"][-1] < whole * _REPORTED_SHARE
    ):
        return ()
    name, peak = peaks.row(-1)
    many = f"{len(peaks):,} processes" if len(peaks) > 1 else "one process"
    largest = f"the largest, {printable(name)}, took {peak / 1e6:,.0f} MB"
    lived = f"{many} lived for less than {YOUNG_S:g} s ({largest})"
    return (f"{lived}: counted in the tree's total alone",)


def _owners(table: Table) -> pl.LazyFrame:
    """The owner of each row: `pid`, `label`, and whether that is just a name and the pid."""
    at = {name: position for position, name in enumerate(table.names)}
    owner = pl.DataFrame({"pid": table.series[at["pid"]], "label": table.series[at["process"]]})
    label = pl.col("label").cast(pl.String)
    number = pl.format(" {}", pl.col("pid"))
    plain = label.str.replace(_TURN, "").str.ends_with(number)
    plain |= label.str.starts_with(UNNAMED_CHILD)
    return owner.lazy().with_columns(label=label, unnamed=plain.fill_null(value=False))


def _work_of(table: Table, sidecar: Sidecar) -> Table:
    """The table without the rows from before a program has imported its modules, and from after it
    has ended, while Python frees what is left.

    Only for processes whose probe has told; of a process that did nothing else, all rows stay.
    """
    stretches = _stretches(sidecar)
    if not stretches:
        return table
    at = {name: position for position, name in enumerate(table.names)}
    pids, began_s, ended_s = zip(
        *((pid, *stretch) for pid, stretch in stretches.items()), strict=True
    )
    known = pl.DataFrame({"pid": pids, "began_s": began_s, "ended_s": ended_s})
    rows = pl.DataFrame(
        {
            "pid": table.series[at["pid"]].cast(pl.Int64, strict=False),
            "process": table.series[at["process"]],
            "at_s": table.series[at["at_s"]].cast(pl.Float64, strict=False),
        }
    ).join(known, on="pid", how="left", maintain_order="left")
    outside = ~pl.col("at_s").is_between("began_s", "ended_s")
    works = (~outside).sum().over("pid", "process") >= _LEAST_ROWS
    dropped = rows.select((outside & works).fill_null(value=False)).to_series()
    return table.filter(~dropped) if dropped.any() else table


def _stretches(sidecar: Sidecar) -> dict[int, tuple[float, float]]:
    """Pid -> seconds in which its program works. The tree's rows have the pid of its root: of one
    without a probe, they last from the first beginning to the last end of the others.
    """
    listed = [p for p in _processes(sidecar) if isinstance(p.get("work_began_s"), (int, float))]
    pids = [p.get("pid") for p in listed]
    found = {
        p["pid"]: (float(p["work_began_s"]), _end_s(p))
        for p in listed
        if isinstance(p.get("pid"), int) and pids.count(p["pid"]) == 1
    }
    root = sidecar.about.get("pid")
    if found and isinstance(root, int) and root not in pids:
        found[root] = (min(b for b, _ in found.values()), max(e for _, e in found.values()))
    return found


def _end_s(process: dict[str, Any]) -> float:
    ended_s = process.get("work_ended_s")
    return float(ended_s) if isinstance(ended_s, (int, float)) else math.inf


def _ended(sidecar: Sidecar) -> set[str]:
    """The processes whose program has told its end; the whole tree, if its root has."""
    told = [p for p in _processes(sidecar) if math.isfinite(_end_s(p))]
    ended = {p["label"] for p in told if isinstance(p.get("label"), str)}
    root = sidecar.about.get("pid")
    return ended | {_TREE} if root in [p.get("pid") for p in told] else ended


def _with_sidecar(recording: Recording, sidecar: Sidecar | None, path: Path) -> Recording:
    """Add the content of the sidecar."""
    if sidecar is None:
        name = printable(sidecar_path(path).name)
        note = f"{name} is not beside it: how the run ended and its limits are not known"
        return replace(recording, notes=(*recording.notes, note))
    notes = recording.notes + _part_of_job(sidecar) + sidecar.notes
    if not sidecar.complete:
        notes += ("memdiag was stopped before the recording's end: it ends in the middle",)
    ranks = {p["label"] for p in _ranks(sidecar) if isinstance(p.get("label"), str)}
    ended = _ended(sidecar)
    return replace(
        recording,
        series=tuple(
            replace(s, is_rank=s.process in ranks, ends_with_work=s.process in ended)
            for s in recording.series
        ),
        notes=notes,
        missing=sidecar.missing,
        limits=sidecar.limits,
        marks=sidecar.marks,
        ending=sidecar.ending,
        planned_x=_planned(sidecar),
        holders=sidecar.holders,
        censuses=sidecar.censuses,
        interventions=sidecar.interventions,
        about={**sidecar.about, **({"cost": sidecar.cost} if sidecar.cost else {})},
    )


def _labels(table: Table) -> dict[str, str]:
    """The label of each process with rows, by its pid."""
    owners = _owners(table).filter(pl.col("label") != _TREE).unique("pid", keep="last")
    return dict(owners.select(pl.col("pid").cast(pl.String), "label").collect().rows())


def _labelled(found: tuple[OfProcess, ...], labels: dict[str, str]) -> tuple[OfProcess, ...]:
    """The same with the labels of their processes; without processes that have no rows."""
    return tuple(
        replace(one, process=labels[str(one.pid)]) for one in found if str(one.pid) in labels
    )


def _part_of_job(sidecar: Sidecar) -> tuple[str, ...]:
    """A note on the ranks in the recording."""
    processes = _ranks(sidecar)
    ranks = {p["rank"] for p in processes if isinstance(p.get("rank"), int)}
    worlds = {p["world_size"] for p in processes}
    if not ranks or len(worlds) != 1:
        return ()
    world = worlds.pop()
    if len(ranks) >= world:
        return (f"a distributed job: all {world} ranks are in this recording",)
    named = ", ".join(map(str, sorted(ranks)[:_MOST_RANKS]))
    more = ", ..." if len(ranks) > _MOST_RANKS else ""
    return (f"a distributed job of {world} ranks: {named}{more} in this recording",)


def _ranks(sidecar: Sidecar) -> list[dict[str, Any]]:
    """The processes that are part of a distributed job."""
    return [p for p in _processes(sidecar) if isinstance(p.get("world_size"), int)]


def _processes(sidecar: Sidecar) -> list[dict[str, Any]]:
    """What the sidecar says of processes with a probe."""
    listed = sidecar.about.get("processes")
    return [p for p in listed if isinstance(p, dict)] if isinstance(listed, list) else []


def _planned(sidecar: Sidecar) -> float | None:
    planned = sidecar.about.get("planned_steps")
    return float(planned) if isinstance(planned, (int, float)) else None


def _axis(table: Table, column: int, kind: AxisKind, rank: int) -> Candidate:
    values = to_numbers(table.series[column]).values
    axis = Axis(name=table.names[column], kind=kind)
    return Candidate(axis=axis, values=values, rank=rank)


def _meaning(name: str) -> Meaning:
    role = METRIC_ROLES.get(name)
    unit = Unit.BYTES if name.endswith("_bytes") else Unit.COUNT
    if role is None and unit is Unit.BYTES:
        role = recognise(name).role
    return Meaning(part=Part.METRIC, metric=name, role=role or Role.COUNTER, unit=unit)
