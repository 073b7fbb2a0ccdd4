"""`--to wandb` and `--to mlflow` with the real libraries, and what is read back."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from terminals import MEMDIAG

from memdiag.recording.read import read

# Slow steps, so that each is in a row.
PROGRAM = """\
import time, memdiag
held = []
for step in range(60):
    held.append(b"1" * 1000000)
    memdiag.step(step)
    time.sleep(0.1)
"""
PATIENCE_S = 240
pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow's own libraries


def run(directory: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MEMDIAG, "run", "-o", "r.csv", *options, "--", sys.executable, "-c", PROGRAM],
        cwd=directory,
        text=True,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, "WANDB_MODE": "offline", "HOME": str(directory), **variables},
    )


def assert_read_back(recorded: Path, tracked: Path) -> None:
    """The series in the tracker are those of the recording, thinned out."""
    whole = {(one.process, one.metric): one for one in read(str(recorded)).series}
    found = {(one.process, one.metric): one for one in read(str(tracked)).series}
    assert {("tree", "rss_bytes"), ("main", "rss_bytes"), ("main", "malloc_bytes")} <= set(found)
    assert set(found) <= set(whole)
    for key, series in found.items():
        readings = set(series.y[np.isfinite(series.y)])
        # The first row may hold a reading from before the first step.
        assert len(readings - set(whole[key].y)) <= 1
        assert np.nanmax(series.x) == np.nanmax(whole[key].x)
    assert len(found["main", "rss_bytes"].y) > 20


def test_an_offline_run_of_wandb_is_read_back(tmp_path: Path) -> None:
    ended = run(tmp_path, "--to", "wandb:mine")
    assert re.search(r"--to wandb: \S+offline-run-\S+", ended.stderr), ended.stderr
    assert "failed" not in ended.stderr
    (found,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    assert_read_back(tmp_path / "r.csv", found)
    content = found.read_bytes()
    for text in (b"memdiag/verdict", b"memdiag/growth_bytes_per_step", b"memdiag.html", b"mine"):
        assert text in content, text


def test_wandb_joins_the_run_that_the_environment_names(tmp_path: Path) -> None:
    ended = run(tmp_path, "--to", "wandb", WANDB_RUN_ID="abc123")
    assert "failed" not in ended.stderr, ended.stderr
    (found,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    assert found.name == "run-abc123.wandb"


def test_wandb_without_a_key_is_an_error_before_the_job(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        ended = run(tmp_path, "--to", "wandb", WANDB_MODE="online", WANDB_BASE_URL=url)
    assert ended.returncode == 2
    assert ended.stderr.startswith(
        "memdiag: error: --to wandb needs an API key\n  hint: wandb login"
    )


def test_a_database_of_mlflow_is_read_back(tmp_path: Path) -> None:
    ended = run(tmp_path, "--to", "mlflow:sqlite:///mlflow.db")
    assert "failed" not in ended.stderr, ended.stderr
    assert_read_back(tmp_path / "r.csv", tmp_path / "mlflow.db")
    kept = client(f"sqlite:///{tmp_path}/mlflow.db").search_runs(["0"])[0]
    assert kept.info.status == "FINISHED"
    assert kept.data.tags["memdiag.verdict"] in ("LEAK", "INCONCLUSIVE")
    assert float(kept.data.tags["memdiag.growth_bytes_per_step"]) == pytest.approx(1e6, rel=0.2)
    assert "memdiag.limit_bytes.host_RAM" in kept.data.tags
    assert (tmp_path / "mlruns").exists()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of MLflow."""
    directory = tmp_path_factory.mktemp("server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    started = subprocess.Popen(
        [*command, "--workers", "1"],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            assert started.poll() is None
            try:
                with urllib.request.urlopen(f"{url}/health", timeout=5):
                    break
            except OSError:
                time.sleep(0.2)
        yield url
    finally:
        os.killpg(started.pid, 15)
        started.wait()


def client(uri: str) -> Any:
    import mlflow

    return mlflow.MlflowClient(uri)


def test_mlflow_joins_the_run_that_the_environment_names(server: str, tmp_path: Path) -> None:
    own = client(server).create_run("0").info.run_id
    ended = run(tmp_path, "--to", "mlflow", MLFLOW_TRACKING_URI=server, MLFLOW_RUN_ID=own)
    assert "failed" not in ended.stderr, ended.stderr
    (kept,) = client(server).search_runs(["0"])
    assert kept.info.run_id == own
    assert kept.info.status == "RUNNING"  # the training ends it
    assert kept.data.metrics["memdiag/step"] == 59
    assert len(client(server).get_metric_history(own, "memdiag/main/rss_bytes")) > 20
    reports = {one.path for one in client(server).list_artifacts(own, "memdiag")}
    assert "memdiag/memdiag.html" in reports


def test_a_server_that_ends_is_said_once_and_changes_nothing(tmp_path: Path) -> None:
    """It takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began_s = time.monotonic()
        ended = run(tmp_path, "-q", "--to", f"mlflow:{url}")
    assert ended.stderr.count("--to mlflow") <= 2
    assert "given up" in ended.stderr or "failed" in ended.stderr
    assert ended.returncode in (0, 1, 3)
    assert time.monotonic() - began_s < PATIENCE_S
    assert len((tmp_path / "r.csv").read_text().splitlines()) > 60
