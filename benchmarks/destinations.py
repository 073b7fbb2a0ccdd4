"""What `--to` costs: memory of the process that sends, and CPU time of it and of memdiag.

    python benchmarks/destinations.py [--seconds 20]

Each tracker that is installed gets a program of 100 steps a second; W&B is offline, MLflow writes
to SQLite, and a collector of OpenTelemetry answers on the loopback interface. Memory is PSS, with
the processes that the tracker starts, shortly before the end; CPU time is user + system, and for
memdiag that of its sidecar, without judging the recording.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

_PROGRAM = """\
import sys, time, memdiag
until, step = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < until:
    memdiag.step(step)
    step += 1
    time.sleep(0.01)
"""


class _Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    with HTTPServer(("127.0.0.1", 0), _Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        trackers = {
            "": "",
            "prometheus:0": "prometheus_client",
            f"otlp:http://127.0.0.1:{collector.server_port}": "opentelemetry",
            "tensorboard:logs": "tensorboard",
            "wandb": "wandb",
            "mlflow:sqlite:///mlflow.db": "mlflow",
        }
        print(f"{'--to':14} {'PSS':>8} {'its CPU':>9} {'memdiag':>9}")
        for tracker, package in trackers.items():
            if package and find_spec(package) is None:
                print(f"{package:14} not installed")
                continue
            pss_mb, sent_s, own_s = measured(tracker, seconds)
            name = tracker.partition(":")[0] or "(none)"
            print(f"{name:14} {pss_mb:5.0f} MB {sent_s:7.2f} s {own_s:7.2f} s")


def measured(tracker: str, seconds: float) -> tuple[float, float, float]:
    """MB of the process that sends, its CPU seconds, and those of memdiag."""
    to = ["--to", tracker] if tracker else []
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "memdiag", "run", "-q", "-o", "r.csv", *to, "--"]
        job = subprocess.Popen(
            [*command, sys.executable, "-c", _PROGRAM, str(seconds)],
            cwd=name,
            env={**os.environ, "WANDB_MODE": "offline"},
            stderr=subprocess.DEVNULL,
        )
        time.sleep(0.8 * seconds)
        pss_bytes, cpu_s = 0, 0.0
        for one in psutil.Process(job.pid).children():
            if one.name() == "memdiag-to":
                for process in (one, *one.children(recursive=True)):
                    pss_bytes += process.memory_full_info().pss
                    cpu_s += sum(process.cpu_times()[:2])
        job.wait()
        cost = json.loads(Path(name, "r.meta.json").read_text())["cost"]
    return pss_bytes / 1e6, cpu_s, float(cost["cpu_s"])


if __name__ == "__main__":
    main()
