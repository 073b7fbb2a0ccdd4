"""What a collector on the loopback interface gets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import tracked_runs

from memdiag.destinations.messages import End
from memdiag.destinations.otlp import OpenTelemetry

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[bytes]]]:
    """A server that takes metrics, and what it took."""
    taken: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/metrics"
            taken.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", taken
        finally:
            server.shutdown()


def points(body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of the resource, and values by name and attributes."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    (resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    about = {one.key: one.value.string_value for one in resource.resource.attributes}
    found = {}
    for metric in resource.scope_metrics[0].metrics:
        for point in metric.gauge.data_points:
            labels = ",".join(f"{one.key}={one.value.string_value}" for one in point.attributes)
            found[f"{metric.name} {metric.unit} {{{labels}}}"] = point.as_double or point.as_int
    return about, found


def test_a_collector_gets_readings_verdict_and_whose_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=lab")
    with collector() as (url, taken):
        destination = OpenTelemetry(url, {})
        destination.start(tracked_runs.RUN, lambda _: None)
        destination.rows(tracked_runs.rows())
        destination.judge(tracked_runs.LEAK)
        destination.finish(End(judgment=tracked_runs.LEAK, files={}))
    about, found = points(taken[-1])
    assert about["memdiag.run"] == "train-4711"
    assert about["service.name"] == "memdiag"
    assert about["deployment.environment"] == "lab"
    assert found["memdiag.rss By {process=tree}"] == 10**9 + 2 * 10**6 * 199
    assert found["memdiag.verdict 1 {verdict=leak}"] == 1
    assert found["memdiag.growth_bytes_per_step 1 {}"] == 2e6
    assert found["memdiag.limit By {limit=GPU 0}"] == 24e9


def test_the_name_of_the_service_is_that_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "another")  # restored
    with collector() as (url, taken):
        destination = OpenTelemetry(url, {"OTEL_SERVICE_NAME": "llm"})
        destination.start(tracked_runs.RUN, lambda _: None)
        destination.rows(tracked_runs.rows(1))
        destination.finish(None)
    assert points(taken[-1])[0]["service.name"] == "llm"


def test_a_collector_that_refuses_is_a_failure() -> None:
    with collector(status=400) as (url, _):
        destination = OpenTelemetry(url, {})
        destination.start(tracked_runs.RUN, lambda _: None)
        destination.rows(tracked_runs.rows(1))
        with pytest.raises(ConnectionError, match="did not take the metrics"):
            destination.finish(None)
