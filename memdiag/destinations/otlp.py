"""OpenTelemetry: gauges, sent by OTLP over HTTP."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from memdiag.destinations.destination import Destination
from memdiag.destinations.messages import PREFIX, End, Judgment, Row, Run
from memdiag.destinations.request import checked_url

_SERVER = "http://localhost:4318"
_EVERY_MS, _PATIENCE_MS = 5000, 10_000


def checked(where: str, environ: Mapping[str, str]) -> str:
    """The URL of the collector as given. Raises UsageError if it cannot be reached."""
    named = environ.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") or environ.get(
        "OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    checked_url(where or named or _SERVER, "--to otlp")
    return where


class OpenTelemetry(Destination):
    """Gauges under `memdiag.`, with the process as an attribute, and the verdict as states."""

    def __init__(self, where: str, environ: Mapping[str, str]) -> None:
        """where: the URL of the collector, "" for that of the environment."""
        os.environ.update(environ)
        self._url = f"{where.rstrip('/')}/v1/metrics" if where else None
        self._lock = threading.Lock()
        self._gauges: dict[str, Any] = {}
        self._verdict = ""

    def start(self, run: Run, say: Callable[[str], None]) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource

        self._exporter = _watched(OTLPMetricExporter)(endpoint=self._url)
        reader = PeriodicExportingMetricReader(
            self._exporter, export_interval_millis=_EVERY_MS, export_timeout_millis=_PATIENCE_MS
        )
        about: dict[str, Any] = {
            "host.name": run.host,
            "process.pid": run.pid,
            "process.executable.name": run.program,
            f"{PREFIX}.run": run.name,
        }
        if "OTEL_SERVICE_NAME" not in os.environ:
            about["service.name"] = PREFIX
        resource = Resource.create(about)
        self._provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._meter = self._provider.get_meter(PREFIX, run.memdiag)

    def rows(self, rows: Sequence[Row]) -> None:
        row = rows[-1]
        for process, readings in row.readings.items():
            for metric, value in readings.items():
                unit = "By" if metric.endswith("_bytes") else "1"
                name = f"{PREFIX}.{metric.removesuffix('_bytes')}"
                self._set(name, value, {"process": process}, unit)
        if row.step is not None:
            self._set(f"{PREFIX}.step", row.step, {}, "1")
        self._raise()

    def judge(self, judgment: Judgment) -> None:
        for state in dict.fromkeys((self._verdict, judgment.verdict)):
            if state:
                is_so = int(state == judgment.verdict)
                self._set(f"{PREFIX}.verdict", is_so, {"verdict": state}, "1")
        self._verdict = judgment.verdict
        for name, value in _numbers(judgment):
            self._set(name, value, {}, "1")
        for limit, size in judgment.limits_bytes.items():
            self._set(f"{PREFIX}.limit", size, {"limit": limit}, "By")

    def finish(self, end: End | None) -> None:
        if end is not None:
            self.judge(end.judgment)
        self._provider.shutdown(timeout_millis=_PATIENCE_MS)
        self._raise()

    def _set(self, name: str, value: float, about: Mapping[str, str], unit: str) -> None:
        gauge = self._gauges.get(name)
        if gauge is None:
            gauge = self._gauges[name] = self._meter.create_gauge(name, unit=unit)
        gauge.set(value, about)

    def _raise(self) -> None:
        """Raise ConnectionError if the last export failed."""
        if self._exporter.has_failed:
            raise ConnectionError("the collector did not take the metrics")


def _numbers(judgment: Judgment) -> Iterator[tuple[str, float]]:
    for name, value in judgment.numbers().items():
        if not name.startswith("limit_bytes/"):
            yield f"{PREFIX}.{name}", value


def _watched(exporter: Any) -> Any:
    """The exporter, with `has_failed`: OpenTelemetry only logs failures."""

    class Watched(exporter):  # type: ignore[misc]
        has_failed = False

        def export(self, *arguments: Any, **options: Any) -> Any:
            from opentelemetry.sdk.metrics.export import MetricExportResult

            result = super().export(*arguments, **options)
            self.has_failed = result is not MetricExportResult.SUCCESS
            return result

    return Watched


make = OpenTelemetry
