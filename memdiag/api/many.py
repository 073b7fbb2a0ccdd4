"""`memdiag.analyze_many`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from memdiag.fleet import engines, run
from memdiag.fleet.judge_file import How
from memdiag.fleet.paths import paths as all_paths
from memdiag.fleet.results_file import ResultsFile
from memdiag.values.fleet import RecordingResult

_Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def analyze_many(
    paths: _Paths,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    results: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Iterator[RecordingResult]:
    """Judge many recordings in other processes. Yields a result for each as it is ready, in any
    order; no more are in memory than the workers need.

    paths: files, directories, patterns, `@list.txt`, and URLs that fsspec opens (memdiag[fleet]).
    executor: any `concurrent.futures.Executor`: of dask, mpi4py, a pool of your own, which is not
    shut down. By default processes on this machine, `jobs` of them, one for each core.
    results: a .sqlite, .parquet or .duckdb file that keeps what was found. Recordings that it has
    are judged again only if they have changed; for others, the result has `is_unchanged` and no
    verdict. storage_options: for fsspec.

    What cannot be read is a result with an `error`, and so is a recording that kills its worker. A
    script that uses processes must do so below `if __name__ == "__main__":`.

    Raises ReadError if a pattern or a list cannot be read, UsageError or OutputExists for a file of
    results that is none, and CannotMeasure if another process uses it.
    """
    named = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    engine = engines.local(jobs=jobs) if executor is None else engines.of_executor(executor)
    storage = dict(storage_options or {})
    how = How(storage=tuple(storage.items()))
    found = all_paths((os.fspath(one) for one in named), storage)
    if results is None:
        yield from run.judged(found, engine, how)
        return
    with ResultsFile(Path(results)) as kept:
        yield from run.judged(found, engine, how, kept)
