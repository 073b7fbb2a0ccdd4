"""What a worker does: judges recordings, and returns what is kept of them.

`judge_files` is the only function that an engine runs. It takes and returns plain values, and
raises for nothing that a file may hold.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from memdiag import safe_open
from memdiag.errors import ReadError
from memdiag.values.fleet import POINTS, RecordingResult, SeriesResult
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.recording.read_options import ReadOptions
    from memdiag.values.findings import Finding
    from memdiag.values.measurements import Limit, Recording, Series

_CHUNK = 1 << 20
_FORMAT = 1  # of results; a new one has everything judged again
_LONGEST_LABEL, _LONGEST_ERROR = 200, 500
PATIENCE_S = 30.0
"""How long a web server may say nothing (heuristic)."""
# What stores know of a file, beside its size, that changes with its content.
_CHANGING = (
    "ETag",
    "etag",
    "mtime",
    "LastModified",
    "last_modified",
    "updated",
    "md5",
    "generation",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A recording to judge. tag, key: of the results that are known already, "" without any."""

    path: str
    tag: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How recordings are read and judged.

    options: of the reader. limits: in addition to those of the recording. planned_x: where runs are
    planned to end, None for what the recording says. storage: options of fsspec. with_points: keep
    the points of all series; by default only of recordings that have the label `job`, or ranks.
    """

    options: ReadOptions | None = None
    limits: tuple[Limit, ...] = ()
    planned_x: float | None = None
    storage: tuple[tuple[str, Any], ...] = ()
    with_points: bool = False

    @property
    def digest(self) -> str:
        """Changes with everything that may change a result."""
        from memdiag import __version__

        said = (__version__, _FORMAT, self.options, self.limits, self.planned_x, self.with_points)
        return _digest(repr(said).encode())


ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS")
"""Variables that are 1 for a worker, before it imports anything."""


def start_worker() -> None:
    """Prepare a process that does nothing else: one thread, since each core has a worker.

    It ends with its parent, even if that is killed, and leaves Ctrl-C to it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    import gc

    gc.set_threshold(50_000)  # nearly everything that a recording leaves is freed without it


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def judge_files(tasks: Sequence[Task], how: How, call_s: float = math.inf) -> list[RecordingResult]:
    """A result for each task, in its order, of those that are judged within `call_s` seconds, and
    at least of one. Raises nothing for what is wrong with a file."""
    began_s, end_s = time.process_time(), time.monotonic() + call_s
    results: list[RecordingResult] = []
    for task in tasks:
        results.append(_judge_file(task, how))
        if time.monotonic() >= end_s:
            break
    each_s = (time.process_time() - began_s) / max(len(results), 1)
    return [replace(result, cpu_s=each_s) for result in results]


def is_url(path: str) -> bool:
    """Return True for a path that fsspec opens: `s3://bucket/run.csv`."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.isalnum()


def _judge_file(task: Task, how: How) -> RecordingResult:
    known = RecordingResult(path=task.path, labels=_labels_of_path(task.path))
    try:
        with _local(task.path, how) as (path, tag):
            if tag and tag == task.tag:
                return replace(known, tag=tag, key=task.key, is_unchanged=True)
            key = _key(path)
            known = replace(known, tag=tag, key=key)
            if key and key == task.key:
                return replace(known, is_unchanged=True)
            result = _judged(path, known, how)
            if tag and _tag(path) != tag and not is_url(task.path):
                result = replace(result, tag="")  # it was written to meanwhile: look again
    except Exception as error:  # a bug, in memdiag or a library, must not stop the others
        return replace(known, error=printable(_reason(error)[:_LONGEST_ERROR]))
    return result


def _reason(error: BaseException) -> str:
    """Why a recording could not be judged."""
    if isinstance(error, ReadError):
        return error.message if error.line is None else f"line {error.line}: {error.message}"
    if isinstance(error, MemoryError):
        return "no memory was left in the worker"
    if isinstance(error, TimeoutError):
        return "the store did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, OSError) and error.__cause__ is not None:
        return _reason(error.__cause__)  # fsspec's says the address only
    return f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _local(path: str, how: How) -> Iterator[tuple[str, str]]:
    """A local file with the content of the path, and the tag of that; "" if there is none."""
    if not is_url(path):
        yield path, _tag(path)
        return
    system, name = store(path, _storage(path, how))
    info = system.info(name)
    changing = [str(info[key]) for key in _CHANGING if info.get(key)]
    tag = _digest(f"{info.get('size')} {' '.join(changing)}".encode()) if changing else ""
    with tempfile.TemporaryDirectory(prefix="memdiag-") as folder:
        # The name of an object may be anything: only its last part's ending is used.
        ending = "".join(PurePosixPath(name.split("?")[0]).suffixes[-2:])
        copy = Path(folder) / f"recording{ending if ending.replace('.', '').isalnum() else ''}"
        with system.open(name, "rb") as source, copy.open("xb") as file:
            shutil.copyfileobj(source, file, _CHUNK)
        sidecar = name.rsplit(".", 1)[0] + ".meta.json"
        with contextlib.suppress(Exception):  # most have none, and some stores answer 403 for that
            system.get_file(sidecar, str(copy.with_name("recording.meta.json")))
        yield str(copy), tag


def store(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """The file system of fsspec that has this URL, and the name in it. Raises ReadError without the
    package for this kind of store, and what the store raises.
    """
    try:
        import fsspec

        found: tuple[Any, str] = fsspec.core.url_to_fs(url, **options)
    except ImportError as error:
        # fsspec says which one in its own words, and has the import that failed as the cause.
        missing = error.name or getattr(error.__cause__, "name", None) or ""
        package = printable(missing.partition(".")[0]) or "a package for this kind of store"
        extra = "'memdiag[fleet]'" if package == "fsspec" else package
        raise ReadError(
            f"reading it requires {package}", source=url, remedy=f"pip install {extra}"
        ) from error
    except ValueError as error:
        if "Protocol not known" not in str(error):
            raise
        scheme = printable(url.partition("://")[0])
        raise ReadError(
            f"{scheme}:// is not a kind of store",
            source=url,
            remedy="fsspec reads s3://, gs://, hdfs://, abfs://, https:// and others",
        ) from error
    return found


def _tag(path: str) -> str:
    """Size, time and identity of a local file and of its sidecar; "" without a regular file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a bytes-like name stays as it is
    except (OSError, ValueError):
        return ""
    text = f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"
    with contextlib.suppress(OSError, ValueError):
        beside = os.stat(_sidecar(path))  # noqa: PTH116
        text += f" {beside.st_size} {beside.st_mtime_ns}"
    return _digest(text.encode())


def _storage(path: str, how: How) -> dict[str, Any]:
    """Options of fsspec. A web server that does not answer is given up soon, not after minutes."""
    given = dict(how.storage)
    if path.startswith(("http://", "https://")) and "client_kwargs" not in given:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=PATIENCE_S, sock_read=PATIENCE_S)
        given["client_kwargs"] = {"timeout": timeout}
    return given


def _written_at(path: str) -> str:
    """ISO time at which a local file was last written."""
    try:
        at_s = os.stat(path).st_mtime  # noqa: PTH116
        return datetime.fromtimestamp(at_s, timezone.utc).isoformat(timespec="seconds")
    except (OSError, ValueError, OverflowError):
        return ""


@functools.lru_cache(maxsize=1)
def _sidecar(path: str) -> str:
    from memdiag.recording.native.sidecar import sidecar_path

    return str(sidecar_path(Path(path)))


def _key(path: str) -> str:
    """BLAKE2b of the content of a regular file and of its sidecar; "" for anything else."""
    sums = hashlib.blake2b(digest_size=16)
    for number, name in enumerate((path, _sidecar(path))):
        try:
            fd = safe_open.open_regular(name)
        except (OSError, ValueError):
            if number == 0:
                return ""
            continue
        with safe_open.closing(fd):
            while block := os.read(fd, _CHUNK):
                sums.update(block)
    return sums.hexdigest()


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _judged(path: str, known: RecordingResult, how: How) -> RecordingResult:
    from memdiag.analysis.diagnose import judge
    from memdiag.recording.read import read
    from memdiag.recording.read_options import DEFAULTS

    recording = read(path, how.options or DEFAULTS)
    recording = replace(
        recording,
        source=known.path,
        limits=recording.limits + how.limits,
        planned_x=recording.planned_x if how.planned_x is None else how.planned_x,
    )
    found = judge(recording)
    labels = {**known.labels, **_labels(recording)}
    by = {(s.metric, s.column, s.process): s for s in recording.series}
    with_points = how.with_points or "job" in labels or any(s.is_rank for s in recording.series)
    deciding = found.deciding
    if deciding is None:
        return replace(known, error="it holds no readings of memory")
    started_at = recording.about.get("started_at") or _written_at(known.path)
    return replace(
        known,
        verdict=found.verdict,
        confidence=found.confidence,
        why=deciding.reason.value,
        series=tuple(
            _kept(
                one,
                by[one.metric, one.column, one.process],
                is_deciding=one is deciding,
                with_points=with_points,
            )
            for one in found.series
        ),
        labels=labels,
        started_at=printable(started_at) if isinstance(started_at, str) else "",
    )


def _kept(found: Finding, series: Series, *, is_deciding: bool, with_points: bool) -> SeriesResult:
    growth, hit = (
        found.growth_per_x,
        min(found.limit_hits, key=lambda h: h.at_x.value, default=None),
    )
    return SeriesResult(
        metric=printable(found.metric),
        column=printable(found.column),
        process=printable(found.process),
        role=found.role.value,
        unit=found.unit.value,
        axis=found.axis.kind.value,
        verdict=found.verdict,
        confidence=found.confidence,
        reason=found.reason.value,
        samples=found.samples,
        first_x=found.first_x,
        last_x=found.last_x,
        start_value=found.start_value,
        latest_value=found.latest_value,
        peak_value=found.peak_value,
        growth_per_x=None if growth is None else _finite(growth.value),
        growth_low=None if growth is None else _finite(growth.low),
        growth_high=None if growth is None else _finite(growth.high),
        growth_per_s=None if found.growth_per_s is None else _finite(found.growth_per_s.value),
        onset_x=None if found.onset_x is None else _finite(found.onset_x.value),
        limit_name="" if hit is None else printable(hit.limit),
        limit_bytes=None if hit is None else hit.limit_bytes,
        limit_at_x=None if hit is None else _finite(hit.at_x.value),
        limit_in_s=None if hit is None else hit.in_s,
        is_deciding=is_deciding,
        is_rank=series.is_rank,
        points=_points(series) if with_points else (),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _points(series: Series) -> tuple[tuple[float, float], ...]:
    """The series in equal parts of its readings, by x: mean x, median y."""
    import numpy as np

    held = np.isfinite(series.x) & np.isfinite(series.y)
    x, y = series.x[held], series.y[held]
    if not len(x):
        return ()
    if (np.diff(x) < 0).any():
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    if len(x) <= POINTS:
        return tuple(zip(x.tolist(), y.tolist(), strict=True))
    edges = np.linspace(0, len(x), POINTS + 1).round().astype(np.int64)
    middle = (edges[:-1] + edges[1:]) // 2
    width = int(np.diff(edges).min())
    at = edges[:-1, None] + np.arange(width)[None, :]
    medians = np.partition(y[at], width // 2, axis=1)[:, width // 2]
    return tuple(zip(x[middle].tolist(), medians.tolist(), strict=True))


def _labels_of_path(path: str) -> dict[str, str]:
    parent = path.rpartition("/")[0]
    return {"directory": printable(parent.rpartition("/")[2][:_LONGEST_LABEL])} if parent else {}


def _labels(recording: Recording) -> dict[str, str]:
    """What the recording says of its run. Its texts are from outside."""
    about = recording.about
    found = about.get("labels")
    labels = dict(found) if isinstance(found, dict) else {}
    labels.setdefault("node", about.get("host"))
    labels.setdefault("script", _script(about.get("command")))
    return {
        printable(key[:_LONGEST_LABEL]): printable(value[:_LONGEST_LABEL])
        for key, value in labels.items()
        if isinstance(key, str) and isinstance(value, str) and value
    }


def _script(command: Any) -> str:
    """The first word of a command that names a script, else the program."""
    if not isinstance(command, list) or not command:
        return ""
    words = [word for word in command if isinstance(word, str)]
    found = next(
        (word for word in words if word.endswith((".py", ".sh"))), words[0] if words else ""
    )
    return found.rpartition("/")[2]
