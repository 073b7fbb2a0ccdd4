"""The formats that can be read, and which of them reads a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile

from memdiag.errors import ReadError, UsageError
from memdiag.recording.documents.bare_numbers import (
    has_numbers_below,
    is_list,
    is_timed,
    read_bare,
    read_below,
    read_list,
    read_timed,
)
from memdiag.recording.documents.boxed_pairs import has_boxes, read_boxes
from memdiag.recording.documents.charts import is_chart, read_chart
from memdiag.recording.documents.html_text import is_page, text_of
from memdiag.recording.documents.json_document import is_json, read_json
from memdiag.recording.documents.json_lines import is_jsonl, log_in, read_jsonl
from memdiag.recording.documents.markdown_tables import is_markdown, read_markdown, tables_in
from memdiag.recording.documents.notebooks import is_notebook, printed_in
from memdiag.recording.documents.records import has_records, read_records
from memdiag.recording.documents.refused_listings import listing_remedy, refuse_listing
from memdiag.recording.documents.sql_dumps import is_dump, read_dump
from memdiag.recording.inputs.hard_wraps import without_hard_wraps
from memdiag.recording.inputs.source import Kind, Source
from memdiag.recording.monitors import (
    free_loops,
    jvm_memory,
    line_tools,
    nvidia_rows,
    nvidia_smi,
    process_rows,
    process_tables,
    python_profilers,
    sar_vmstat,
)
from memdiag.recording.monitors.cloudwatch_text import is_datapoints, read_datapoints
from memdiag.recording.monitors.dated_numbers import is_dated, read_dated
from memdiag.recording.monitors.dstat import is_dstat, read_dstat
from memdiag.recording.monitors.ganglia import is_ganglia, read_ganglia
from memdiag.recording.monitors.gctrace import is_gctrace, read_gctrace
from memdiag.recording.monitors.graphite import is_raw, read_raw
from memdiag.recording.monitors.influx_lines import is_lines, read_lines
from memdiag.recording.monitors.malloc_info import is_malloc_info, read_malloc_info
from memdiag.recording.monitors.memray_stats import is_stats, read_stats
from memdiag.recording.monitors.micrometer import is_micrometer, read_micrometer
from memdiag.recording.monitors.otlp import is_export, read_export
from memdiag.recording.monitors.otlp_text import is_debug, read_debug
from memdiag.recording.monitors.pmval import is_pmval, read_pmval
from memdiag.recording.monitors.prometheus import (
    is_exposition,
    is_range,
    read_exposition,
    read_range,
)
from memdiag.recording.monitors.ps_columns import is_ps, read_ps
from memdiag.recording.monitors.rrdtool import is_fetch, read_fetch
from memdiag.recording.monitors.ruled_tables import (
    has_repeated_tables,
    has_ruled_tables,
    read_repeated_tables,
    read_ruled_tables,
)
from memdiag.recording.monitors.statm import is_statm, read_statm
from memdiag.recording.monitors.statsd import is_statsd, read_statsd
from memdiag.recording.parsing.cells import has_any_number
from memdiag.recording.read_options import ReadOptions
from memdiag.recording.tables import native_columns
from memdiag.recording.tables.cells_of_lines import is_moment
from memdiag.recording.tables.csv_dialect import Layout, find_layout, is_header_alone, split_line
from memdiag.recording.tables.sideways import upright
from memdiag.recording.tables.table import Table, read_parquet, read_text_table
from memdiag.recording.textlog.one_line import has_listed, read_listed
from memdiag.recording.textlog.read_text import read_pattern, read_text
from memdiag.recording.trackers.mlflow import is_metric, read_metric
from memdiag.recording.trackers.mlflow_database import read_database
from memdiag.recording.trackers.tensorboard import read_events
from memdiag.recording.trackers.torch_memory_summary import has_summaries, read_summaries
from memdiag.recording.trackers.torch_snapshot import read_snapshot
from memdiag.recording.trackers.wandb import as_history, may_be_history
from memdiag.recording.trackers.wandb_run_file import read_run_file
from memdiag.values.sanitize import printable

# How much a positive `sniff` proves. Formats of equal confidence exclude each other.
_SIGNATURE = 1.0  # a header or line that only this tool writes
_RULED = 0.95  # tables with a rule below their header, which many tools print
_HINT = 0.9  # names that the tool uses, in a file of a general format
_REFUSED = 0.8  # a listing that looks like a table
_DOCUMENT = 0.7  # JSON or Markdown
_LINES = 0.6  # a JSON object per line, unless all of them are one document
_RECORDS = 0.55  # lines of a name and a value, which may look like a table
_TABLE = 0.5  # rows of equal length
_REPEATED = 0.45  # tables with a header that comes again, without rules
_NUMBERS = 0.4  # numbers without names
_HEADER = 0.3  # names of columns and nothing else
_TEXT = 0.2  # lines of text
_IN_A_SENTENCE = 0.18  # readings that a sentence lists, in a text that is not a log
_BY_FILE = 0.15  # numbers that only the name of the file names
_NAMELESS = 0.1  # a table that cannot be read

_ROWS_LOOKED_AT = 10_000
_NAMES_SHOWN = 6
# What exports of log collectors call the column of their lines.
_MESSAGES = frozenset({"message", "msg", "log", "line", "raw", "text", "textpayload", "body"})


@dataclass(frozen=True, slots=True)
class Format:
    """A family of files.

    sniff: return True if the head of the source looks like this format.
    confidence: how much that proves; the most confident format reads the source.
    read: return None if the rest of the source is not of this format after all.
    kind: only sources of this kind are sniffed.
    """

    name: str
    confidence: float
    sniff: Callable[[Source], object]
    read: Callable[[Source, ReadOptions], Table | None]
    kind: Kind = Kind.TEXT


def _always(_: Source) -> bool:
    return True


def _layout(source: Source) -> Layout | None:
    return find_layout(source.first_lines(), cut_off=not source.whole)


def _has_names(source: Source) -> bool:
    return (layout := _layout(source)) is not None and bool(layout.names)


def _is_nameless(source: Source) -> bool:
    return (layout := _layout(source)) is not None and not layout.names and layout.columns > 1


def _is_single_column(source: Source) -> bool:
    return (layout := _layout(source)) is not None and not layout.names and layout.columns == 1


def _read_csv(source: Source, options: ReadOptions) -> Table | None:
    layout = _layout(source)
    if layout is None:
        return None
    table = upright(read_text_table(source, layout))
    names = {name.strip(" @_").lower() for name in table.names}
    return table if options.metrics or _MESSAGES.isdisjoint(names) else _with_log(source, table)


def _read_numbers(source: Source, options: ReadOptions) -> Table | None:
    layout = _layout(source)
    return None if layout is None else read_bare(source, layout)


def _is_timed(source: Source) -> bool:
    layout = _layout(source)
    return layout is not None and not layout.names and is_timed(source, layout)


def _read_timed(source: Source, options: ReadOptions) -> Table | None:
    layout = _layout(source)
    return None if layout is None else read_timed(source, layout)


def _is_header_alone(source: Source) -> bool:
    return source.whole and is_header_alone(source.first_lines())


def _refuse_header(source: Source, options: ReadOptions) -> Table | None:
    raise ReadError(
        "no memory readings: it has a header and no rows",
        source=source.name,
        line=1,
        remedy="the program may have ended before it wrote the first row: record again",
    )


def _refuse_nameless(source: Source, options: ReadOptions) -> Table | None:
    """Numbers in several columns without a header: what they are could only be guessed."""
    layout = _layout(source)
    if layout is None:
        return None
    raise ReadError(
        f"its {layout.columns} columns have no names",
        source=source.name,
        line=layout.skip_lines + 1,
        remedy=f"put a header with a name for each above them, such as: {_header(source, layout)}",
    )


def _header(source: Source, layout: Layout) -> str:
    """Names that the columns might have: the fields of a query of nvidia-smi, if it wrote them."""
    row = split_line(source.first_lines().split("\n")[layout.skip_lines], layout.delimiter)
    times = takewhile(is_moment, row)
    names = ["time" if ":" in cell else "date" for cell in times] or ["step"]
    if names == ["time"] and nvidia_smi.is_query(source):
        names = ["timestamp", "memory.used [MiB]", "utilization.gpu [%]"]
    else:
        names.append("rss_mb")
    names += [f"column_{at}" for at in range(len(names) + 1, min(len(row), _NAMES_SHOWN) + 1)]
    names += ["..."] if len(row) > len(names) else []
    return layout.delimiter.join(names[: len(row)])


def _read_wandb(source: Source, options: ReadOptions) -> Table | None:
    for plain in (_JSON, _JSONL, _CSV):
        if plain.sniff(source) and (table := plain.read(source, options)) is not None:
            return as_history(table)
    return None


def _read_jsonl(source: Source, options: ReadOptions) -> Table | None:
    return _with_log(source, read_jsonl(source))


def _read_records(source: Source, options: ReadOptions) -> Table | None:
    return _with_log(source, read_records(source))


def _with_log(source: Source, table: Table | None) -> Table | None:
    """The readings in the messages of a log collector, if that is what the rows are."""
    if table is None or (log := log_in(table)) is None:
        return table
    if (found := _read_log(source, log)) is None:
        return table
    return replace(found, notes=("read from the messages of a log in a column", *found.notes))


def _read_notebook(source: Source, options: ReadOptions) -> Table | None:
    printed = printed_in(source)
    if not printed.strip():
        return None
    return read_table(_inside(source, printed), replace(options, format=""))[0]


def _read_log(source: Source, log: bytes) -> Table | None:
    return read_text(_inside(source, log))


def _joined(source: Source) -> Source:
    return replace(source, content=without_hard_wraps(source.content)) if source.whole else source


def _inside(source: Source, content: bytes) -> Source:
    """What a file holds in another format."""
    return replace(source, content=content, path=None, whole=True, tail=b"")


def _read_pattern(source: Source, options: ReadOptions) -> Table | None:
    return read_pattern(source, options.pattern) if options.pattern else None


_JSON = Format("json", _DOCUMENT, is_json, lambda source, _: _with_log(source, read_json(source)))
_JSONL = Format("jsonl", _LINES, is_jsonl, _read_jsonl)
_CSV = Format("csv", _TABLE, _has_names, _read_csv)


def _signed(
    name: str, sniff: Callable[[Source], object], read: Callable[[Source], Table | None]
) -> Format:
    return Format(name, _SIGNATURE, sniff, lambda source, _: read(source))


FORMATS: tuple[Format, ...] = (
    Format("pattern", 2.0, _always, _read_pattern),  # the user asked for it
    Format("parquet", 1.0, _always, lambda source, _: read_parquet(source), Kind.PARQUET),
    Format("tensorboard", 1.0, _always, read_events, Kind.EVENTS),
    Format("torch-snapshot", 1.0, _always, lambda source, _: read_snapshot(source), Kind.PICKLE),
    Format("mlflow-database", 1.0, _always, lambda source, _: read_database(source), Kind.DATABASE),
    Format("wandb-run", 1.0, _always, lambda source, _: read_run_file(source), Kind.WANDB),
    _signed("memdiag", native_columns.is_recording, native_columns.read_recording),
    _signed("prometheus", is_range, read_range),
    _signed("exporter", is_exposition, read_exposition),
    _signed("influx", is_lines, read_lines),
    _signed("graphite", is_raw, read_raw),
    _signed("statsd", is_statsd, read_statsd),
    _signed("cloudwatch", is_datapoints, read_datapoints),
    _signed("rrdtool", is_fetch, read_fetch),
    _signed("otlp", is_export, read_export),
    _signed("otlp-text", is_debug, read_debug),
    _signed("pmval", is_pmval, read_pmval),
    _signed("ganglia", is_ganglia, read_ganglia),
    _signed("dstat", is_dstat, read_dstat),
    _signed("malloc-info", is_malloc_info, read_malloc_info),
    _signed("memray", is_stats, read_stats),
    _signed("sql", is_dump, read_dump),
    _signed("mlflow", is_metric, read_metric),
    Format("notebook", _SIGNATURE, is_notebook, _read_notebook),
    _signed("nvidia-smi", nvidia_smi.is_query, nvidia_smi.read_query),
    _signed("nvidia-smi-mon", nvidia_smi.is_monitor, nvidia_smi.read_monitor),
    _signed("nvidia-smi-screen", nvidia_smi.has_screens, nvidia_smi.read_screens),
    _signed("nvidia-smi-listing", nvidia_smi.has_listings, nvidia_smi.read_listings),
    _signed("nvidia-smi-rows", nvidia_rows.are_rows, nvidia_rows.read_rows),
    _signed("mprof", python_profilers.is_mprof, python_profilers.read_mprof),
    _signed("psrecord", python_profilers.is_psrecord, python_profilers.read_psrecord),
    _signed("memory-profiler", python_profilers.is_profiled, python_profilers.read_profiled),
    _signed("tracemalloc", python_profilers.is_traced, python_profilers.read_traced),
    _signed("processes", process_tables.has_processes, process_tables.read_processes),
    _signed("tasklist", process_rows.is_tasklist, process_rows.read_tasklist),
    _signed("atop", process_rows.is_atop, process_rows.read_atop),
    _signed("ps", is_ps, read_ps),
    _signed("free", free_loops.is_free, free_loops.read_free),
    _signed("sar", sar_vmstat.is_sar, sar_vmstat.read_sar),
    _signed("atopsar", sar_vmstat.is_atopsar, sar_vmstat.read_atopsar),
    _signed("vmstat", sar_vmstat.is_vmstat, sar_vmstat.read_vmstat),
    _signed("vm_stat", sar_vmstat.is_vm_stat, sar_vmstat.read_vm_stat),
    _signed("proc", sar_vmstat.is_proc, sar_vmstat.read_proc),
    _signed("statm", is_statm, read_statm),
    _signed("gctrace", is_gctrace, read_gctrace),
    _signed("micrometer", is_micrometer, read_micrometer),
    _signed("jstat", sar_vmstat.is_jstat, sar_vmstat.read_jstat),
    _signed("jmap-heap", jvm_memory.is_heap, jvm_memory.read_heap),
    _signed("jmxterm", jvm_memory.is_jmxterm, jvm_memory.read_jmxterm),
    _signed("jmxtool", jvm_memory.is_jmxtool, jvm_memory.read_jmxtool),
    _signed("nmon", sar_vmstat.is_nmon, sar_vmstat.read_nmon),
    *(_signed(name, *tool) for name, tool in line_tools.LINE_TOOLS.items()),
    Format("ruled", _RULED, has_ruled_tables, lambda source, _: read_ruled_tables(source)),
    _signed("torch-summary", has_summaries, read_summaries),
    _signed("boxes", has_boxes, read_boxes),
    _signed("chart", is_chart, read_chart),
    Format("wandb", _HINT, may_be_history, _read_wandb),
    Format("listing", _REFUSED, listing_remedy, lambda source, _: refuse_listing(source)),
    _JSON,
    _JSONL,
    Format("markdown", _DOCUMENT, is_markdown, lambda source, o: read_markdown(source, o.table)),
    Format("records", _RECORDS, has_records, _read_records),
    _CSV,
    Format("numbers", _TABLE, _is_single_column, _read_numbers),
    _signed("dated-numbers", is_dated, read_dated),
    Format(
        "tables", _REPEATED, has_repeated_tables, lambda source, _: read_repeated_tables(source)
    ),
    Format("numbers-below", _NUMBERS, has_numbers_below, lambda source, _: read_below(source)),
    Format("html", _NUMBERS, is_page, lambda source, _: _read_log(source, text_of(source))),
    Format("list", _NUMBERS, is_list, lambda source, _: read_list(source)),
    Format("header", _HEADER, _is_header_alone, _refuse_header),
    Format("text", _TEXT, _always, lambda source, _: read_text(_joined(source))),
    Format("listed", _IN_A_SENTENCE, has_listed, lambda source, _: read_listed(source)),
    Format("timed-numbers", _BY_FILE, _is_timed, _read_timed),
    Format("nameless", _NAMELESS, _is_nameless, _refuse_nameless),
)
_BY_CONFIDENCE = sorted(FORMATS, key=lambda family: -family.confidence)
_REFUSALS = {"nameless", "listing", "header"}


def read_table(source: Source, options: ReadOptions) -> tuple[Table, str]:
    """The table in a source, and its format: the one asked for, else the most confident. Lines of a
    log that are cut at bars or commas may look like a table without numbers, and what a command
    printed among others like a table of one row.
    """
    without: tuple[Table, str] | None = None
    for family in _asked_for(options.format):
        if family.kind is not source.kind or not family.sniff(source):
            continue
        try:
            table = family.read(source, options)
        except ReadError:
            if without is None:
                raise
            break
        if table is not None and len(table):
            columns = (column[:_ROWS_LOOKED_AT] for column in table.columns)
            has_numbers = family is not _CSV or any(map(has_any_number, columns))
            if has_numbers and len(table) > 1:
                return table, family.name
            without = without or (table, family.name)
    if without is not None:
        return without
    raise _nothing_found(source, options)


def _nothing_found(source: Source, options: ReadOptions) -> ReadError:
    what = "no memory readings over steps or time were found in it"
    remedy = "show which numbers are meant: --pattern 'step (?<step>\\d+).* (?<rss_mb>[\\d.]+)'"
    if source.name.endswith(".py"):
        remedy = f"to record a program: memdiag run -- python {printable(source.name)}"
    if options.format:
        what = f"it is not of format {options.format}"
    elif source.kind is Kind.TEXT and (tables := tables_in(source)):
        what += ", nor in its tables"
        remedy += f"; or choose a table: {tables}"
    return ReadError(what, source=source.name, line=1, remedy=remedy)


def _asked_for(name: str) -> list[Format]:
    if not name:
        return _BY_CONFIDENCE
    chosen = [family for family in FORMATS if family.name == name]
    if not chosen:
        known = ", ".join(family.name for family in FORMATS if family.name not in _REFUSALS)
        raise UsageError(f"unknown format {name}", remedy=f"choose one of {known}")
    return chosen
