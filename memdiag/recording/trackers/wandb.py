"""Histories of Weights & Biases, as CSV, JSON or one JSON object per line.

`run.history()` and the files of a run have columns such as `_step`, `_runtime` and
`system.proc.memory.rssMB`. The CSV of a chart has `RUN - METRIC`, each with `__MIN` and `__MAX`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memdiag.errors import ReadError
from memdiag.recording.inputs.opening import HEAD_BYTES
from memdiag.recording.inputs.source import Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.tables.table import Table

_OWN = {"_step", "_runtime", "_timestamp"}
_SPREADS = ("__MIN", "__MAX")
_MOST_RUNS, _MOST_CELLS = 1000, 50_000_000
_HINTS = re.compile(rb"_step|_runtime|__MIN|__MAX|system[./](?:gpu|proc|memory)")
_CHARTED = re.compile(r"(?P<run>.+?) - (?P<metric>.+)", re.S)
_SYSTEM = re.compile(r"system[./](?P<name>.+)", re.S)
# Named like amounts, but in percent (docs.wandb.ai, system metrics reference).
_GPU_BUSY = re.compile(r"gpu\.(?:process\.)?[0-9]+\.memory")
_PERCENT = re.compile(r"gpu\.(?:process\.)?[0-9]+\.memoryAllocated|memory|memory_percent")


def may_be_history(source: Source) -> bool:
    """Return True if the beginning has names that W&B writes."""
    return _HINTS.search(source.content[:HEAD_BYTES]) is not None


def as_history(table: Table) -> Table | None:
    """The table with plain names, several runs below each other; None if it is not a history."""
    names = [name.strip() for name in table.names]
    # `RUN - METRIC__MIN` and `__MAX` beside `RUN - METRIC`.
    charted = any(name.endswith(_SPREADS) and _CHARTED.fullmatch(name) for name in names)
    if not charted and not _OWN & set(names) and not any(map(_SYSTEM.match, names)):
        return None
    if charted:
        table = _by_run(table, names)
    return replace(table, names=tuple(map(_plain, table.names)))


def _by_run(table: Table, names: Sequence[str]) -> Table:
    shared: dict[str, pl.Series] = {}
    runs: dict[str, dict[str, pl.Series]] = {}
    for name, column in zip(names, table.series, strict=True):
        found = _CHARTED.fullmatch(name)
        if found is None:
            shared[name] = column
        elif not name.endswith(_SPREADS):
            runs.setdefault(found["run"], {})[found["metric"]] = column
    _refuse_too_many(len(table), runs)
    frames = []
    for run, columns in runs.items():
        frame = pl.DataFrame({**shared, **columns})
        frames.append(frame.with_columns(pl.lit(run).alias("process")) if len(runs) > 1 else frame)
    return Table.of(pl.concat(frames, how="diagonal_relaxed"), notes=table.notes)


def _refuse_too_many(rows: int, runs: Mapping[str, Mapping[str, pl.Series]]) -> None:
    """Raise ReadError for too many cells: each run adds its rows, and a column per metric."""
    metrics = {metric for columns in runs.values() for metric in columns}
    if len(runs) > _MOST_RUNS or rows * len(runs) * len(metrics) > _MOST_CELLS:
        raise ReadError(
            f"its chart has {len(metrics):,} metrics of {len(runs):,} runs, too many to analyze",
            remedy="export fewer runs at once",
        )


def _plain(name: str) -> str:
    """Without the prefix `system.` of W&B's own readings, and with the unit if it is %."""
    found = _SYSTEM.fullmatch(name.strip())
    if found is None:
        return name
    metric = found["name"]
    if _GPU_BUSY.fullmatch(metric):
        return f"{metric} bandwidth (%)"
    if _PERCENT.fullmatch(metric):
        return f"{'host ' if metric.startswith('memory') else ''}{metric} (%)"
    return metric
