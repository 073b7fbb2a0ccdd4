"""Prometheus: an endpoint to scrape, or a file for node_exporter's textfile collector."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memdiag import safe_open
from memdiag.destinations.destination import Destination
from memdiag.destinations.messages import TREE, End, Judgment, Row, Run
from memdiag.destinations.request import checked_directory
from memdiag.errors import UsageError
from memdiag.safe_open import read_regular
from memdiag.values.metrics import METRIC_ROLES
from memdiag.values.sanitize import printable

PORT, HOST = 9760, "127.0.0.1"
VERDICTS = ("inconclusive", "leak", "stable", "warmup")
_FILE_ENDING = ".prom"  # node_exporter reads no others
_BEGINNING = b"# HELP memdiag_run_info"
_REQUESTS = 8  # answered at a time
_REQUEST_S = 5.0
_WRITE_S = 5.0  # between two writes of the file


def checked(where: str, environ: Mapping[str, str]) -> str:
    """`HOST:PORT` of an address that is free, or the file in full. Raises UsageError."""
    if where.endswith(_FILE_ENDING):
        folder, name = os.path.split(where)
        full = Path(checked_directory(folder or ".", "--to prometheus")) / name
        if not full.parent.is_dir():
            raise UsageError(f"directory does not exist: {printable(folder)} (--to prometheus)")
        _refuse_foreign(full)
        return str(full)
    host, port = _address(where)
    try:
        with socket.create_server((host, port), family=_family(host)):
            pass
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "not a host name"
        raise UsageError(
            f"cannot listen on {printable(host)}:{port}: {why} (--to prometheus)",
            remedy="give a free port: --to prometheus:0",
        ) from error
    return f"{host}:{port}"


def _refuse_foreign(path: Path) -> None:
    """Raise UsageError if the file is there and memdiag did not write it."""
    try:
        is_ours = not path.is_symlink() and read_regular(path, most_bytes=64).startswith(_BEGINNING)
    except FileNotFoundError:
        return
    except OSError:
        is_ours = False
    if not is_ours:
        raise UsageError(
            f"{printable(str(path))} exists and was not written by memdiag (--to prometheus)",
            remedy="name a new file",
        )


def _address(where: str) -> tuple[str, int]:
    host, _, port = where.rpartition(":")
    try:
        number = int(port) if port else PORT
    except ValueError:
        number = -1
    if not 0 <= number < 1 << 16:
        raise UsageError(
            f"invalid value {printable(where)!r} for --to prometheus: not a port",
            remedy="write prometheus:9760, prometheus:HOST:PORT or prometheus:/DIR/memdiag.prom",
        )
    return host.strip("[]") or HOST, number


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


class _State:
    """What is exposed now; a collector of prometheus_client."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._row: Row | None = None
        self._judgment = Judgment(verdict="inconclusive")
        self._has_ended = False

    def set(self, *, row: Row | None = None, judgment: Judgment | None = None) -> None:
        with self._lock:
            self._row = row or self._row
            self._judgment = judgment or self._judgment

    def end(self) -> None:
        with self._lock:
            self._has_ended = True

    def collect(self) -> Iterator[Any]:
        """The families. Each series carries the name of the run."""
        from prometheus_client.core import (
            GaugeMetricFamily,
            InfoMetricFamily,
            StateSetMetricFamily,
        )

        with self._lock:
            row, judgment, has_ended = self._row, self._judgment, self._has_ended
        run = self._run
        info = InfoMetricFamily("memdiag_run", "The run.", labels=["run"])
        about = {"program": run.program, "pid": str(run.pid), "version": run.memdiag}
        info.add_metric([run.name], about)
        yield info
        verdict = StateSetMetricFamily("memdiag_verdict", "The verdict so far.", labels=["run"])
        verdict.add_metric([run.name], {one: one == judgment.verdict for one in VERDICTS})
        yield verdict
        for name, what, value in _numbers(run, row, judgment, has_ended):
            family = GaugeMetricFamily(name, what, labels=["run"])
            family.add_metric([run.name], value)
            yield family
        limits = GaugeMetricFamily("memdiag_limit_bytes", "A limit.", labels=["run", "limit"])
        for name, size in judgment.limits_bytes.items():
            limits.add_metric([run.name, name], size)
        yield limits
        if row is not None:
            yield from self._readings(row)

    def _readings(self, row: Row) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        families: dict[str, Any] = {}
        counters = GaugeMetricFamily(
            "memdiag_counter", "A counter of the program.", labels=["run", "process", "name"]
        )
        for process, readings in row.readings.items():
            for metric, value in readings.items():
                if metric not in METRIC_ROLES:
                    counters.add_metric([self._run.name, process, metric], value)
                    continue
                family = families.setdefault(
                    metric,
                    GaugeMetricFamily(
                        f"memdiag_{metric}", f"The metric {metric}.", labels=["run", "process"]
                    ),
                )
                family.add_metric([self._run.name, process], value)
        yield from families.values()
        yield counters


def _numbers(
    run: Run, row: Row | None, judgment: Judgment, has_ended: bool
) -> Iterator[tuple[str, str, float]]:
    """Name, help and value of the gauges with one series."""
    yield "memdiag_start_time_seconds", "When the run began, Unix time.", run.started_s
    yield "memdiag_ended", "1 once the run has ended.", float(has_ended)
    if row is not None:
        yield "memdiag_last_sample_timestamp_seconds", "Unix time.", run.started_s + row.at_s
        if row.step is not None:
            yield "memdiag_step", "The step of the training.", float(row.step)
    if judgment.confidence is not None:
        yield "memdiag_confidence_ratio", "Confidence in the verdict.", judgment.confidence
    unit = judgment.unit
    if judgment.growth_per_s is not None:
        yield f"memdiag_growth_{unit}_per_second", "Growth rate.", judgment.growth_per_s
    if judgment.growth_per_step is not None:
        yield f"memdiag_growth_{unit}_per_step", "Growth per step.", judgment.growth_per_step
    if judgment.full_in_s is not None:
        yield "memdiag_full_seconds", "Until a leak reaches the first limit.", judgment.full_in_s


class Prometheus(Destination):
    """The latest readings and the verdict so far."""

    def __init__(self, where: str, environ: Mapping[str, str]) -> None:
        """where: see `checked`."""
        self._where = where
        self._server: Any = None
        self._written_s = -math.inf

    def start(self, run: Run, say: Callable[[str], None]) -> None:
        from prometheus_client import CollectorRegistry

        self._state = _State(run)
        self._registry = CollectorRegistry()
        self._registry.register(self._state)
        if self._where.endswith(_FILE_ENDING):
            return
        host, _, port = self._where.rpartition(":")
        self._server = _server(host, int(port), self._registry)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        shown = f"[{host}]" if ":" in host else host
        say(f"http://{shown}:{self._server.server_port}/metrics")

    def rows(self, rows: Sequence[Row]) -> None:
        self._state.set(row=merged(rows))
        self._write(is_last=False)

    def judge(self, judgment: Judgment) -> None:
        self._state.set(judgment=judgment)
        self._write(is_last=False)

    def finish(self, end: End | None) -> None:
        self._state.end()
        if end is not None:
            self._state.set(judgment=end.judgment)
        self._write(is_last=True)
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _write(self, *, is_last: bool) -> None:
        now_s = time.monotonic()
        if self._server is not None or (now_s - self._written_s < _WRITE_S and not is_last):
            return
        from prometheus_client import generate_latest

        self._written_s = now_s
        path = Path(self._where)
        content = generate_latest(self._registry)
        with safe_open.closing(safe_open.open_parent(path)) as directory:
            fd = safe_open.replace(path.name, [content], dir_fd=directory)
        with contextlib.suppress(OSError):
            os.fchmod(fd, 0o644)  # node_exporter is another user
        os.close(fd)


def merged(rows: Sequence[Row]) -> Row:
    """The latest row, with readings of its processes that only earlier rows have."""
    latest = rows[-1]
    alive = set(latest.readings) | {TREE}
    readings: dict[str, dict[str, float]] = {}
    for row in rows:
        for process, found in row.readings.items():
            if process in alive:
                readings.setdefault(process, {}).update(found)
    return Row(at_s=latest.at_s, step=latest.step, phase=latest.phase, readings=readings)


def _server(host: str, port: int, registry: Any) -> Any:
    """A server that answers a few requests at a time and waits for none."""
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    from prometheus_client import make_wsgi_app
    from prometheus_client.exposition import ThreadingWSGIServer

    free = threading.BoundedSemaphore(_REQUESTS)

    class Handler(WSGIRequestHandler):
        timeout = _REQUEST_S

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing is logged."""

    class Server(ThreadingWSGIServer):  # type: ignore[misc]
        address_family = _family(host)

        def process_request(self, request: Any, client_address: Any) -> None:
            if free.acquire(blocking=False):
                super().process_request(request, client_address)
            else:
                self.shutdown_request(request)

        def process_request_thread(self, request: Any, client_address: Any) -> None:
            try:
                super().process_request_thread(request, client_address)
            finally:
                free.release()

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that went away is not an error."""

    return make_server(host, port, make_wsgi_app(registry), Server, Handler)


make = Prometheus
