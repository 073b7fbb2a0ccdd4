"""The dashboard and the alert rules use metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tracked_runs

from memdiag.destinations.prometheus import VERDICTS, Prometheus
from memdiag.values.metrics import METRIC_ROLES
from memdiag.values.verdict import Verdict

GRAFANA = Path(__file__).parents[2] / "docs" / "grafana"
ALERTS, DASHBOARD = GRAFANA / "memdiag-alerts.yml", GRAFANA / "memdiag-dashboard.json"
pytest.importorskip("prometheus_client")


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is exposed of a leak, and the metrics that another run might have."""
    directory = tmp_path_factory.mktemp("prom")
    destination = Prometheus(str(directory / "m.prom"), {})
    destination.start(tracked_runs.RUN, lambda _: None)
    destination.rows(tracked_runs.rows(2))
    destination.finish(tracked_runs.end(directory))
    others = "".join(f"memdiag_{metric}{{process,run}}\n" for metric in METRIC_ROLES)
    return (directory / "m.prom").read_text() + others


def expressions() -> list[str]:
    dashboard: Any = json.loads(DASHBOARD.read_text())
    found = [one["expr"] for panel in dashboard["panels"] for one in panel["targets"]]
    return [*found, dashboard["templating"]["list"][1]["query"], ALERTS.read_text()]


def test_every_metric_and_label_of_dashboard_and_alerts_is_exposed(exposed: str) -> None:
    for expression in expressions():
        for name, labels in re.findall(r"\b(memdiag_\w+)(?:\{([^}]*)\})?", expression):
            is_label = f"{name}=" in exposed and f"\n{name}{{" not in exposed
            assert is_label or f"\n{name}{{" in exposed, name
            for label in re.findall(r"(\w+)(?:=~|!~|!=|=)", labels):
                assert f"{label}=" in exposed, (name, label)


def test_prometheus_accepts_the_alert_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool")
    subprocess.run([promtool, "check", "rules", str(ALERTS)], check=True, timeout=60)


def test_every_verdict_is_a_state() -> None:
    assert sorted(one.value for one in Verdict) == list(VERDICTS)
    for expression in expressions():
        named = re.findall(r'memdiag_verdict="(\w+)"', expression)
        assert set(named) <= set(VERDICTS)


def test_dashboard_panels_do_not_overlap() -> None:
    dashboard: Any = json.loads(DASHBOARD.read_text())
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    cells = [
        (x, y)
        for one in places
        for x in range(one["x"], one["x"] + one["w"])
        for y in range(one["y"], one["y"] + one["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)
