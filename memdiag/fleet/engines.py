"""Where recordings are judged: anything with the interface of `concurrent.futures.Executor`.

Scheduling, queues and retries are those of the engine.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from memdiag.errors import CannotMeasure, UsageError
from memdiag.fleet.judge_file import ONE_THREAD, start_worker
from memdiag.values.sanitize import printable

_UNKNOWN_WORKERS = 16
# An engine takes milliseconds for a call; Spark, for which it is a job, a quarter of a second.
_CALL_S, _SPARK_CALL_S = 0.25, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A way to get an executor.

    opened: the executor, for a `with` statement. workers: how many tasks run at once. can_reopen:
    a broken executor may be replaced by a new one. call_s: how long a call should take: many times
    as long as what the engine needs for it.
    """

    opened: Callable[[], AbstractContextManager[Executor]]
    workers: int
    can_reopen: bool = False
    call_s: float = _CALL_S


def of_executor(executor: Executor) -> Engine:
    """An executor of the caller, who shuts it down."""
    workers = getattr(executor, "_max_workers", None)
    return Engine(
        opened=lambda: contextlib.nullcontext(executor),
        workers=workers if isinstance(workers, int) else _UNKNOWN_WORKERS,
    )


def named(name: str, *, address: str = "", jobs: int | None = None) -> Engine:
    """The engine of this name, one of `NAMES`. Raises UsageError.

    address: of a cluster that runs already; "" for one that is started here. jobs: number of
    workers, None for one for each core.
    """
    try:
        engine = NAMES[name]
    except KeyError:
        raise UsageError(
            f"invalid value {printable(name)!r} for --engine",
            remedy=f"choose {', '.join(NAMES)}",
        ) from None
    if address and name == "local":
        raise UsageError("--engine-address requires another engine", remedy="--engine dask")
    try:
        return engine(address, jobs)
    except ImportError as error:
        raise UsageError(
            f"--engine {name} requires {error.name or name}",
            remedy=f"pip install 'memdiag[{name}]'",
        ) from error


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local(address: str = "", jobs: int | None = None) -> Engine:
    """Processes on this machine."""
    workers = jobs or cores()

    @contextmanager
    def opened() -> Iterator[Executor]:
        # Not forked: polars and numpy may have threads here.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=start_worker)
        try:
            yield pool
        except BaseException:  # Ctrl-C, or the caller wants no more: nobody waits for a large file
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    return Engine(opened=opened, workers=workers, can_reopen=True)


def _dask(address: str, jobs: int | None) -> Engine:
    import distributed

    workers = jobs or cores()

    @contextmanager
    def opened() -> Iterator[Executor]:
        with contextlib.ExitStack() as stack:
            try:
                if address:
                    client = stack.enter_context(distributed.Client(address, timeout="10s"))
                else:
                    import dask

                    # A look at the stack every 10 ms, which nobody sees without a dashboard.
                    stack.enter_context(
                        dask.config.set({"distributed.worker.profile.enabled": False})
                    )
                    cluster = distributed.LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        dashboard_address=None,
                        env=dict.fromkeys(ONE_THREAD, "1"),
                    )
                    client = stack.enter_context(distributed.Client(stack.enter_context(cluster)))
            except OSError as error:  # TimeoutError is one
                raise _unreachable("dask", address, error) from error
            # pure: the same task of two calls would otherwise be answered from memory
            yield client.get_executor(pure=False)

    return Engine(opened=opened, workers=_UNKNOWN_WORKERS if address else workers)


def _ray(address: str, jobs: int | None) -> Engine:
    import ray

    @contextmanager
    def opened() -> Iterator[Executor]:
        started = not ray.is_initialized()
        if started:
            try:
                ray.init(
                    address=address or "local",
                    num_cpus=None if address else jobs or cores(),
                    include_dashboard=None if address else False,
                    log_to_driver=False,
                    logging_level="ERROR",
                )
            except (ConnectionError, OSError, RuntimeError) as error:
                raise _unreachable("ray", address, error) from error
        try:
            yield _Ray(ray)
        finally:
            if started:
                ray.shutdown()

    return Engine(opened=opened, workers=_UNKNOWN_WORKERS if address else jobs or cores())


class _Ray(Executor):
    """Ray's tasks as futures; Ray retries a task whose worker died."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._functions: dict[Any, Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if fn not in self._functions:
            self._functions[fn] = self._ray.remote(fn)
        future: Future[Any] = self._functions[fn].remote(*args, **kwargs).future()
        return future


def _mpi(address: str, jobs: int | None) -> Engine:
    from mpi4py import MPI
    from mpi4py.futures import MPIPoolExecutor

    workers = jobs or max(MPI.COMM_WORLD.Get_size() - 1, 1)
    return Engine(opened=lambda: MPIPoolExecutor(jobs), workers=workers)


def _spark(address: str, jobs: int | None) -> Engine:
    from pyspark.sql import SparkSession

    @contextmanager
    def opened() -> Iterator[Executor]:
        builder = SparkSession.builder.appName("memdiag")
        builder = builder.master(address or f"local[{jobs or cores()}]")
        session = builder.config("spark.ui.enabled", "false").getOrCreate()
        try:
            with _Spark(session.sparkContext) as executor:
                yield executor
        finally:
            session.stop()

    workers = _UNKNOWN_WORKERS if address else jobs or cores()
    return Engine(opened=opened, workers=workers, call_s=_SPARK_CALL_S)


class _Spark(ThreadPoolExecutor):
    """A Spark job of one task for each call; a thread waits for it."""

    def __init__(self, context: Any) -> None:
        super().__init__(max(int(context.defaultParallelism), 1))
        self._context = context

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        def run() -> Any:
            rows = self._context.parallelize([(args, kwargs)], 1)
            return rows.map(lambda given: fn(*given[0], **given[1])).collect()[0]

        return super().submit(run)


def _unreachable(name: str, address: str, error: Exception) -> CannotMeasure:
    where = f" at {printable(address)}" if address else ""
    said = (str(error).splitlines() or [type(error).__name__])[0]
    return CannotMeasure(
        f"{name} cannot be reached{where}: {printable(said)}", remedy="see --engine-address"
    )


NAMES: dict[str, Callable[[str, int | None], Engine]] = {
    "local": local,
    "dask": _dask,
    "ray": _ray,
    "mpi": _mpi,
    "spark": _spark,
}
"""The engines by the name that `--engine` takes."""
