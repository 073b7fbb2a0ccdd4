"""The formats that can be read, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memdiag.errors import UnreadableInput, UsageError
from memdiag.recording.documents.bare_numbers import read_bare, read_list
from memdiag.recording.documents.json_document import read_json
from memdiag.recording.documents.json_lines import read_jsonl
from memdiag.recording.documents.markdown_tables import read_markdown, tables_in
from memdiag.recording.documents.refused_listings import refuse_listing
from memdiag.recording.inputs.source import Kind, Source
from memdiag.recording.monitors.memray_stats import read_stats
from memdiag.recording.monitors.nvidia_smi import read_monitor, read_query, read_screens
from memdiag.recording.monitors.prometheus import read_range
from memdiag.recording.monitors.ps_top_free import (
    read_free,
    read_mprof,
    read_process_tables,
    read_psrecord,
)
from memdiag.recording.monitors.sar_vmstat import (
    read_containers,
    read_gpustat,
    read_proc,
    read_rocm,
    read_sar,
    read_tegrastats,
    read_vmstat,
)
from memdiag.recording.read_options import ReadOptions
from memdiag.recording.tables import native_columns
from memdiag.recording.tables.csv_dialect import find_layout
from memdiag.recording.tables.table import Table, read_parquet, read_text_table
from memdiag.recording.textlog.read_text import read_pattern, read_text
from memdiag.recording.trackers.mlflow import read_metric
from memdiag.recording.trackers.tensorboard import read_events
from memdiag.recording.trackers.torch_memory_summary import read_summaries
from memdiag.recording.trackers.torch_snapshot import read_snapshot
from memdiag.recording.trackers.wandb import as_history, may_be_history

Reader = Callable[[Source, ReadOptions], Table | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A family of files. `read` gives None for content that is none of the family's; it is asked
    for sources of its kind alone.
    """

    name: str
    read: Reader
    kind: Kind = Kind.TEXT


def _memdiag(source: Source, options: ReadOptions) -> Table | None:
    layout = native_columns.layout(source.first_lines(), source.name)
    return None if layout is None else read_text_table(source, layout)


def _wandb(source: Source, options: ReadOptions) -> Table | None:
    if not may_be_history(source):
        return None
    table = read_json(source) or read_jsonl(source) or _csv(source, options)
    return None if table is None else as_history(table)


def _csv(source: Source, options: ReadOptions) -> Table | None:
    layout = find_layout(source.first_lines(), cut_off=not source.whole)
    return read_text_table(source, layout) if layout is not None and layout.names else None


def _numbers(source: Source, options: ReadOptions) -> Table | None:
    layout = find_layout(source.first_lines(), cut_off=not source.whole)
    bare = layout is not None and not layout.names and layout.columns == 1
    return read_bare(source, layout) if bare and layout is not None else None


def _nameless(source: Source, options: ReadOptions) -> Table | None:
    """Figures in several columns without a header: what they are could only be guessed."""
    layout = find_layout(source.first_lines(), cut_off=not source.whole)
    if layout is None or layout.names or layout.columns == 1:
        return None
    raise UnreadableInput(
        f"its {layout.columns} columns have no names",
        source=source.name,
        line=layout.skip_lines + 1,
        remedy="put a header above them, such as: step,rss_mb",
    )


def _listing(source: Source, options: ReadOptions) -> Table | None:
    refuse_listing(source)
    return None


def _pattern(source: Source, options: ReadOptions) -> Table | None:
    return read_pattern(source, options.pattern) if options.pattern else None


FORMATS: tuple[Format, ...] = (
    Format(name="pattern", read=_pattern),
    Format(name="parquet", read=lambda source, _: read_parquet(source), kind=Kind.PARQUET),
    Format(name="tensorboard", read=read_events, kind=Kind.EVENTS),
    Format(name="torch-snapshot", read=lambda source, _: read_snapshot(source), kind=Kind.PICKLE),
    Format(name="memdiag", read=_memdiag),
    Format(name="prometheus", read=lambda source, _: read_range(source)),
    Format(name="memray", read=lambda source, _: read_stats(source)),
    Format(name="wandb", read=_wandb),
    Format(name="json", read=lambda source, _: read_json(source)),
    Format(name="jsonl", read=lambda source, _: read_jsonl(source)),
    Format(name="mlflow", read=lambda source, _: read_metric(source)),
    Format(name="nvidia-smi", read=lambda source, _: read_query(source)),
    Format(name="nvidia-smi-mon", read=lambda source, _: read_monitor(source)),
    Format(name="nvidia-smi-screen", read=lambda source, _: read_screens(source)),
    Format(name="mprof", read=lambda source, _: read_mprof(source)),
    Format(name="psrecord", read=lambda source, _: read_psrecord(source)),
    Format(name="processes", read=lambda source, _: read_process_tables(source)),
    Format(name="free", read=lambda source, _: read_free(source)),
    Format(name="sar", read=lambda source, _: read_sar(source)),
    Format(name="vmstat", read=lambda source, _: read_vmstat(source)),
    Format(name="proc", read=lambda source, _: read_proc(source)),
    Format(name="containers", read=lambda source, _: read_containers(source)),
    Format(name="gpustat", read=lambda source, _: read_gpustat(source)),
    Format(name="tegrastats", read=lambda source, _: read_tegrastats(source)),
    Format(name="rocm-smi", read=lambda source, _: read_rocm(source)),
    Format(name="torch-summary", read=lambda source, _: read_summaries(source)),
    Format(name="listing", read=_listing),
    Format(name="markdown", read=lambda source, options: read_markdown(source, options.table)),
    Format(name="csv", read=_csv),
    Format(name="numbers", read=_numbers),
    Format(name="list", read=lambda source, _: read_list(source)),
    Format(name="text", read=lambda source, _: read_text(source)),
    Format(name="nameless", read=_nameless),
)


_REFUSALS = (_nameless, _listing)


def read_table(source: Source, options: ReadOptions) -> tuple[Table, str]:
    """The table in a source, and its format: the one asked for or the first that fits."""
    for family in _asked_for(options.format):
        table = family.read(source, options) if family.kind is source.kind else None
        if table is not None and len(table):
            return table, family.name
    raise _nothing_found(source, options)


def _nothing_found(source: Source, options: ReadOptions) -> UnreadableInput:
    what = "no figures of memory over steps or time were found in it"
    remedy = "show which numbers are meant: --pattern 'step (?<step>\\d+).* (?<rss_mb>[\\d.]+)'"
    if options.format:
        what = f"it is no {options.format}"
    elif source.kind is Kind.TEXT and (tables := tables_in(source)):
        what += ", nor in its tables"
        remedy += f"; or choose a table: {tables}"
    return UnreadableInput(what, source=source.name, line=1, remedy=remedy)


def _asked_for(name: str) -> tuple[Format, ...]:
    if not name:
        return FORMATS
    chosen = tuple(family for family in FORMATS if family.name == name)
    if not chosen:
        known = ", ".join(family.name for family in FORMATS if family.read not in _REFUSALS)
        raise UsageError(f"there is no format {name}", remedy=f"choose one of {known}")
    return chosen
