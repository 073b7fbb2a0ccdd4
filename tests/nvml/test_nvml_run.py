"""`memdiag run` from end to end with GPUs that are not there."""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20
ONE_GPU = 'device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G reserved=600M used=1000M\n'
# Writes its pid where the fake driver looks for it, and then does nothing for a while.
PROGRAM = (
    "import os, sys, time\n"
    "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
    "until = time.monotonic() + float(sys.argv[2])\n"
    "while time.monotonic() < until:\n"
    "    time.sleep(0.05)\n"
)


@pytest.fixture
def recorded(
    fake_nvml: Callable[..., Path], environ: Callable[..., dict[str, str]], tmp_path: Path
) -> Callable[..., tuple[list[dict[str, str]], dict[str, Any]]]:
    """`recorded(scenario, seconds)`: the tree's rows and the sidecar of such a run."""

    def run(
        scenario: str, seconds: float, *options: str
    ) -> tuple[list[dict[str, str]], dict[str, Any]]:
        pid_file, output = tmp_path / "pid", tmp_path / "run.csv"
        command = [sys.executable, "-m", "memdiag", "run", "--output", str(output), *options]
        command += ["--", sys.executable, "-c", PROGRAM, str(pid_file), str(seconds)]
        done = subprocess.run(
            command,
            env=environ(fake_nvml(), scenario.replace("@PID", f"@{pid_file}")),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert "bug in memdiag" not in done.stderr, done.stderr
        with output.open() as file:
            rows = [row for row in csv.DictReader(file) if row["process"] == "tree"]
        return rows, json.loads(output.with_suffix(".meta.json").read_text())

    return run


Recorded = Callable[..., tuple[list[dict[str, str]], dict[str, Any]]]


def test_device_memory_is_recorded_with_its_source_and_limit(recorded: Recorded) -> None:
    scenario = ONE_GPU + "clock_ms 10\nrow 0 compute pid=@PID used=100M grow=1M\n"
    rows, sidecar = recorded(scenario, 1.5)
    found = [int(row["vram_bytes"]) for row in rows if row["vram_bytes"]]
    assert len(found) > 3
    assert found == sorted(found)
    assert found[-1] > found[0] > 100 * MIB
    assert sidecar["about"]["gpu"]["driver"] == "550.54.15"
    assert sidecar["about"]["gpu"]["devices"][0]["name"] == "NVIDIA A100"
    names = [limit["name"] for limit in sidecar["limits"]]
    assert "GPU 0 (NVIDIA A100)" in names
    assert not [entry for entry in sidecar["missing"] if entry["metric"] == "vram_bytes"]


@pytest.mark.slow
def test_a_driver_that_hangs_does_not_delay_the_sampling_of_the_host(recorded: Recorded) -> None:
    # The driver answers for a second, hangs for three, and answers again.
    scenario = ONE_GPU + "clock_ms 100\nrow 0 compute pid=@PID used=100M\n"
    scenario += "fault nvmlDeviceGetComputeRunningProcesses_v3 hold=1 from=10 to=40\n"
    interval_s = 0.25
    rows, sidecar = recorded(scenario, 5.5, "--interval", f"{interval_s}s")
    times = [float(row["at_s"]) for row in rows if row["rss_bytes"]]
    late_s = max(b - a for a, b in itertools.pairwise(times)) - interval_s
    assert late_s < 2 * interval_s
    told = [float(row["at_s"]) for row in rows if row["vram_bytes"]]
    assert min(told) < 1
    assert max(told) > 4  # it is read again after the hang
    reasons = [e["why"]["reason"] for e in sidecar["missing"] if e["metric"] == "vram_bytes"]
    assert reasons
    assert "has not responded" in reasons[0]
