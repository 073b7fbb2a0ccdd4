"""MLflow's file store: one file per metric, of lines `timestamp value step`.

The time is in milliseconds since 1970. `mlruns/EXPERIMENT/RUN/metrics/` holds the files of a run;
names with slashes (`system/gpu_0_memory_usage_megabytes`) are files in folders there.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath

from memdiag.errors import ReadError
from memdiag.recording.inputs.opening import mode_of
from memdiag.recording.inputs.refusals import too_large
from memdiag.recording.inputs.source import STDIN, Source
from memdiag.recording.lazy_polars import pl
from memdiag.recording.parsing.cells import to_numbers
from memdiag.recording.tables.table import Table
from memdiag.safe_open import read_regular
from memdiag.values.sanitize import printable

# After the step, newer versions name the data set and the model.
_LINE = r"^(1[0-9]{12}) ([-+0-9.eEnaifNIF]+)(?: (-?[0-9]+))?(?: [^ ]+){0,3}$"
_FOLDER = "metrics"
_LOOKED_AT = 8
_FILES_AT_MOST = 2000
_LINE_BYTES = 200


def is_metric(source: Source) -> bool:
    """Return True if the first lines are those of a metric's file."""
    first = [line for line in source.head().split("\n")[:_LOOKED_AT] if line.strip()]
    return bool(first) and all(re.match(_LINE, line.strip()) for line in first)


def read_metric(source: Source) -> Table:
    """The file of one metric, which has the name of the file."""
    name = "value" if source.name == STDIN else _metric_name(Path(source.name))
    return _as_table({name: _lines(source.all_bytes())}, source.name)


def is_run(directory: Path) -> bool:
    """Return True if this is the directory of a run's metrics."""
    if directory.name != _FOLDER or not stat.S_ISDIR(mode_of(directory) or 0):
        return False
    return any(_files(directory))


def runs_in(directory: Path) -> list[Path]:
    """The directories of metrics in a run, an experiment, or a whole `mlruns`."""
    below = (_FOLDER, f"*/{_FOLDER}", f"*/*/{_FOLDER}")
    inside = [path for pattern in below for path in sorted(directory.glob(pattern))]
    return [path for path in (directory, *inside) if is_run(path)]


def read_run(directory: Path, at_most_bytes: int) -> Table:
    """All metrics of a run as one table. Raises ReadError if they are larger."""
    metrics = {}
    left_bytes = at_most_bytes
    for path in sorted(_files(directory))[:_FILES_AT_MOST]:
        try:
            content = read_regular(path, most_bytes=left_bytes + 1)
        except OSError:  # deleted or replaced meanwhile
            continue
        left_bytes -= len(content)
        if left_bytes < 0:
            raise too_large(str(directory), at_most_bytes, packed=False)
        metrics[path.relative_to(directory).as_posix()] = _lines(content)
    return _as_table(metrics, str(directory))


def _files(directory: Path) -> Iterator[Path]:
    """Files in the directory and below that begin like a metric's."""
    for path in directory.rglob("*"):
        try:
            begin = read_regular(path, most_bytes=_LINE_BYTES)
        except OSError:
            continue
        first = begin.split(b"\n", 1)[0].decode("utf-8", errors="replace").strip()
        if re.match(_LINE, first):
            yield path


def _metric_name(path: Path) -> str:
    """The part of the path below `metrics`, or the file's name."""
    parts = PurePath(path).parts
    if _FOLDER in parts[:-1]:
        return "/".join(parts[len(parts) - parts[::-1].index(_FOLDER) :])
    return path.name


def _lines(content: bytes) -> pl.DataFrame:
    text = pl.Series(
        "line", content.decode("utf-8", errors="replace").splitlines(), dtype=pl.String
    )
    found = text.str.strip_chars().str.extract_groups(_LINE).struct.unnest()
    found.columns = ["timestamp", "value", "step"]
    return found.filter(found["timestamp"].is_not_null())


def _as_table(metrics: dict[str, pl.DataFrame], source: str) -> Table:
    """One row per moment and step, in the order of time."""
    tall = [
        frame.select(
            pl.col("timestamp").cast(pl.Int64),
            pl.col("step").cast(pl.Int64, strict=False),
            pl.Series("value", to_numbers(frame["value"]).values),
            pl.lit(at).alias("metric"),
        )
        for at, frame in enumerate(metrics.values())
        if len(frame)
    ]
    if not tall:
        raise ReadError(
            "its metrics have no numbers", source=source, remedy="name the directory of another run"
        )
    rows = pl.concat(tall).unique(["timestamp", "step", "metric"], keep="last", maintain_order=True)
    wide = rows.pivot("metric", index=["timestamp", "step"], values="value").sort(
        ["timestamp", "step"]
    )
    names = list(metrics)
    named = (printable(names[int(at)]) for at in wide.columns[2:])
    return Table.of(wide, ("timestamp", "step", *named))
