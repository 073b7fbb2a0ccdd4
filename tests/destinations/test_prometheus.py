"""The endpoint and the file, read by Prometheus' own parsers."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tracked_runs

from memdiag.destinations.messages import Judgment, Row
from memdiag.destinations.prometheus import Prometheus, merged

pytest.importorskip("prometheus_client")
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


@pytest.fixture
def served() -> Iterator[tuple[Prometheus, str]]:
    said: list[str] = []
    destination = Prometheus("127.0.0.1:0", {})
    destination.start(tracked_runs.RUN, said.append)
    try:
        yield destination, said[0]
    finally:
        destination.finish(None)


def scraped(url: str, headers: dict[str, str] | None = None) -> str:
    request = urllib.request.Request(url, headers=headers or {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def samples(text: str, *, is_openmetrics: bool = False) -> dict[str, Any]:
    from prometheus_client import parser
    from prometheus_client.openmetrics import parser as openmetrics

    parse = (
        openmetrics.text_string_to_metric_families
        if is_openmetrics
        else (parser.text_string_to_metric_families)
    )
    found = {}
    for family in parse(text):
        for one in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(one.labels.items()) if k != "run")
            found[f"{one.name}{{{labels}}}"] = one.value
            assert one.labels["run"] == "train-4711"
    return found


@pytest.mark.parametrize("is_openmetrics", [False, True])
def test_both_formats_hold_the_latest_readings_and_the_verdict(
    served: tuple[Prometheus, str], is_openmetrics: bool
) -> None:
    destination, url = served
    destination.rows(tracked_runs.rows())
    destination.judge(tracked_runs.LEAK)
    text = scraped(url, OPENMETRICS if is_openmetrics else None)
    found = samples(text, is_openmetrics=is_openmetrics)
    assert found["memdiag_rss_bytes{process=tree}"] == 10**9 + 2 * 10**6 * 199
    assert found["memdiag_counter{name=copies/now,process=rank0}"] == 1
    assert found["memdiag_verdict{memdiag_verdict=leak}"] == 1
    assert found["memdiag_verdict{memdiag_verdict=stable}"] == 0
    assert found["memdiag_growth_bytes_per_step{}"] == 2e6
    assert found["memdiag_limit_bytes{limit=cgroup memory.max}"] == 16e9
    assert found["memdiag_full_seconds{}"] == 3600
    assert found["memdiag_step{}"] == 199
    assert found["memdiag_ended{}"] == 0


def test_there_is_a_verdict_before_the_first_sample(served: tuple[Prometheus, str]) -> None:
    found = samples(scraped(served[1]))
    assert found["memdiag_verdict{memdiag_verdict=inconclusive}"] == 1
    assert "memdiag_confidence_ratio{}" not in found


@pytest.mark.parametrize("name", ["step", 'a"b\\\n', "x_total", "rss_bytes ", "ü", "verdict_info"])
def test_any_name_of_a_counter_is_exposed(served: tuple[Prometheus, str], name: str) -> None:
    destination, url = served
    readings = {"tree": {name: 5.0, "rss_bytes": 7.0}}
    destination.rows([Row(at_s=1.0, step=3, phase="", readings=readings)])
    for is_openmetrics, headers in ((False, {}), (True, OPENMETRICS)):
        found = samples(scraped(url, headers), is_openmetrics=is_openmetrics)
        assert found[f"memdiag_counter{{name={name},process=tree}}"] == 5
        assert found["memdiag_step{}"] == 3


def test_clients_that_send_nothing_do_not_keep_others_waiting(
    served: tuple[Prometheus, str],
) -> None:
    _, url = served
    port = int(url.split(":")[2].split("/")[0])
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
    try:
        assert "memdiag_verdict" in scraped(url)
    finally:
        for one in silent:
            one.close()


def test_the_file_is_replaced_as_a_whole_and_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "memdiag.prom"
    destination = Prometheus(str(path), {})
    destination.start(tracked_runs.RUN, lambda _: None)
    destination.rows(tracked_runs.rows(3))
    first = path.stat().st_ino
    assert samples(path.read_text())["memdiag_step{}"] == 2
    destination.finish(tracked_runs.end(tmp_path))
    found = samples(path.read_text())
    assert found["memdiag_ended{}"] == 1
    assert found["memdiag_verdict{memdiag_verdict=leak}"] == 1
    assert path.stat().st_ino != first
    assert path.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in tmp_path.glob("*.prom*")] == ["memdiag.prom"]


def test_a_process_that_has_ended_is_not_exposed_any_more() -> None:
    def row(at_s: float, **readings: dict[str, float]) -> Row:
        return Row(at_s=at_s, step=None, phase="", readings=readings)

    found = merged(
        [
            row(0.1, tree={"rss_bytes": 3.0, "uss_bytes": 2.0}, rank1={"rss_bytes": 1.0}),
            row(0.2, tree={"rss_bytes": 2.0}),
        ]
    )
    assert found.readings == {"tree": {"rss_bytes": 2.0, "uss_bytes": 2.0}}


def test_a_verdict_without_a_series_has_no_growth(served: tuple[Prometheus, str]) -> None:
    destination, url = served
    destination.judge(Judgment(verdict="stable", confidence=0.9))
    found = samples(scraped(url))
    assert found["memdiag_verdict{memdiag_verdict=stable}"] == 1
    assert not [name for name in found if "growth" in name]
