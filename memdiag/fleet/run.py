"""Judges many recordings, with or without a file of results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from memdiag.fleet import stream
from memdiag.fleet.engines import Engine
from memdiag.fleet.judge_file import How, Task
from memdiag.fleet.results_file import ResultsFile
from memdiag.values.fleet import RecordingResult

_LOOKED_UP = 500


def judged(
    paths: Iterable[str], engine: Engine, how: How, results: ResultsFile | None = None
) -> Iterator[RecordingResult]:
    """A result for each path, in the order in which they are ready.

    results: where they are kept; recordings that are unchanged since are not judged again, and
    `is_unchanged` in what is returned.
    """
    tasks = (Task(path=path) for path in paths) if results is None else _known(paths, results, how)
    for result in stream.results(tasks, engine, how):
        if results is not None:
            results.add(result, how.digest)
        yield result


def _known(paths: Iterable[str], results: ResultsFile, how: How) -> Iterator[Task]:
    left, digest = iter(paths), how.digest
    while batch := list(itertools.islice(left, _LOOKED_UP)):
        yield from results.known(batch, digest)


def judge_into(
    results: ResultsFile,
    paths: Iterable[str],
    engine: Engine,
    how: How,
    progress: Callable[[int], None] = lambda _: None,
) -> None:
    """Judge the paths and keep the results. progress: receives the number of results so far."""
    for number, _ in enumerate(judged(paths, engine, how, results), 1):
        progress(number)
