"""Runs tasks on an engine, a bounded number at a time: each task has one result."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait

from memdiag.fleet.engines import Engine
from memdiag.fleet.judge_file import How, Task, judge_files
from memdiag.values.fleet import RecordingResult
from memdiag.values.sanitize import printable

# Calls that wait for each worker.
_WAITING = 3
FIRST_TASKS, _MOST_TASKS = 8, 256
"""Tasks of a call before it is known how long one takes, and most of them."""
_LONGEST = 300


def results(tasks: Iterable[Task], engine: Engine, how: How) -> Iterator[RecordingResult]:
    """The results of all tasks, in the order in which they are ready.

    A worker that dies takes the calls that wait with it: their tasks are run again, one at a time
    in a new executor, and the one with which it dies again has an error as its result. An executor
    that cannot be replaced leaves an error for every task that it has not run.
    """
    batches = _Batches(tasks)
    while True:
        with engine.opened() as executor:
            calls = _Calls(executor, how, engine.call_s)
            yield from calls.results(batches, _WAITING * engine.workers)
        if not calls.lost:
            return
        if not engine.can_reopen:
            yield from map(_died, calls.lost)
            yield from (_died(task) for batch in batches for task in batch)
            return
        yield from _one_at_a_time(calls.lost, engine, how)


class _Batches(Iterator[tuple[Task, ...]]):
    """The tasks of one call after the other: as many as a call has time for."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._left = iter(tasks)
        self._back: deque[Task] = deque()
        self._size = FIRST_TASKS

    def __next__(self) -> tuple[Task, ...]:
        again = [self._back.popleft() for _ in range(min(self._size, len(self._back)))]
        batch = (*again, *itertools.islice(self._left, self._size - len(again)))
        if not batch:
            raise StopIteration
        return batch

    def judged(self, batch: tuple[Task, ...], count: int) -> None:
        """Take back those of a call that it had no time for."""
        if count < len(batch):
            self._back += batch[count:]
            self._size = count
        else:
            self._size = min(max(self._size, 2 * count), _MOST_TASKS)


class _Calls:
    """The calls of an executor. lost: tasks without a result because it is broken."""

    def __init__(self, executor: Executor, how: How, call_s: float) -> None:
        self.lost: list[Task] = []
        self._executor = executor
        self._given = how, call_s
        self._pending: dict[Future[list[RecordingResult]], tuple[Task, ...]] = {}

    def results(self, batches: _Batches, most_waiting: int) -> Iterator[RecordingResult]:
        """Results until all is done or the executor is broken, which takes no further batches."""
        try:
            while True:
                while not self.lost and len(self._pending) < most_waiting:
                    if (batch := next(batches, None)) is None:
                        break
                    self._submit(batch)
                if not self._pending:
                    return
                for future in wait(self._pending, return_when=FIRST_COMPLETED).done:
                    batch = self._pending.pop(future)
                    if found := self._ended(future, batch):
                        batches.judged(batch, len(found))
                    yield from found
        finally:
            for future in self._pending:
                future.cancel()

    def _submit(self, batch: tuple[Task, ...]) -> None:
        try:
            self._pending[self._executor.submit(judge_files, batch, *self._given)] = batch
        except BrokenExecutor:
            self.lost += batch

    def _ended(
        self, future: Future[list[RecordingResult]], batch: tuple[Task, ...]
    ) -> Sequence[RecordingResult]:
        error = future.exception()
        if error is None:
            return future.result()
        if isinstance(error, BrokenExecutor):
            self.lost += batch
        elif len(batch) == 1:
            return [_failed(batch[0], error)]
        else:  # the engine has given up on the call: find out which task it is
            for task in batch:
                self._submit((task,))
        return []


def _one_at_a_time(tasks: Sequence[Task], engine: Engine, how: How) -> Iterator[RecordingResult]:
    left = list(tasks)
    while left:
        with engine.opened() as executor:
            while left:
                task = left.pop(0)
                try:
                    found = executor.submit(judge_files, (task,), how).result()
                except BrokenExecutor:
                    yield _died(task)
                    break
                except Exception as error:
                    yield _failed(task, error)
                else:
                    yield from found


def _died(task: Task) -> RecordingResult:
    return RecordingResult(path=task.path, error="the worker process died while it was judged")


def _failed(task: Task, error: BaseException) -> RecordingResult:
    text = f"{type(error).__name__}: {error}"[:_LONGEST]
    return RecordingResult(path=task.path, error=f"the engine failed: {printable(text)}")
