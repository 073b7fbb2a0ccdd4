"""`memdiag doctor` on machines with GPUs that are not there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DOCTOR = [sys.executable, "-m", "memdiag", "doctor"]
ONE_GPU = 'device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G reserved=600M used=1000M\n'


@pytest.fixture
def doctor(
    fake_nvml: Callable[..., Path], environ: Callable[..., dict[str, str]]
) -> Callable[..., dict[str, dict[str, Any]]]:
    """`doctor(scenario, without=(...), **environ)`: the checks by name."""

    def run(
        scenario: str, *, without: tuple[str, ...] = (), **more: str
    ) -> dict[str, dict[str, Any]]:
        done = subprocess.run(
            [*DOCTOR, "--json"],
            env=environ(fake_nvml(*without), scenario) | more,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        document = json.loads(done.stdout)
        checks = {check["name"]: check for check in document["checks"]}
        return checks | {"": document}

    return run


Doctor = Callable[..., dict[str, dict[str, Any]]]


def test_a_card_that_tells_everything(doctor: Doctor) -> None:
    checks = doctor("driver 550.54.15\n" + ONE_GPU + "row 0 compute pid=7 used=5M\n")
    assert checks[""]["device_memory"] in {"yes", "partly"}  # partly: these tests in a container
    assert checks["nvml"]["facts"] == {
        "driver": "550.54.15",
        "cuda": "12.4",
        "nvml": "12.550.54.15",
    }
    facts = checks["gpu_0"]["facts"]
    assert (facts["name"], facts["used_bytes"]) == ("NVIDIA A100", 1000 << 20)
    assert checks["visible_devices"]["facts"]["labels"] == ["GPU 0"]


def test_a_card_that_tells_no_process_memory_is_partly_measurable(doctor: Doctor) -> None:
    for scenario, without in (
        (ONE_GPU, ("v3", "v2")),
        (ONE_GPU + "row 0 compute pid=7 used=na\n", ()),
        (ONE_GPU + "scrambled\n" + "row 0 compute pid=7 used=1M\n" * 3, ()),
    ):
        checks = doctor(scenario, without=without)
        assert checks["gpu_0"]["ability"] == checks[""]["device_memory"] == "partly"
        assert checks["gpu_0"]["remedy"]


def test_a_lost_card_beside_a_good_one(doctor: Doctor) -> None:
    scenario = ONE_GPU + 'device 1 name="NVIDIA A100" uuid=GPU-bbbb total=80G\n'
    checks = doctor(scenario + "fault nvmlDeviceGetHandleByIndex_v2 device=1 code=15\n")
    assert checks["gpu_1"]["ability"] == "no"
    assert "dmesg" in checks["gpu_1"]["remedy"]
    assert checks["gpu_0"]["ability"] in {"yes", "partly"}


def test_mig_instances_are_listed(doctor: Doctor) -> None:
    scenario = 'device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G mig=1\n'
    scenario += 'mig 0/3 name="MIG 1g.10gb" uuid=MIG-1111 total=10G gi=1 ci=0\n'
    assert doctor(scenario)["gpu_0_mig_3"]["facts"]["mig"] is True


def test_a_failing_driver_is_told_with_its_remedy(doctor: Doctor) -> None:
    checks = doctor(ONE_GPU + "fault nvmlInitWithFlags code=18\n")
    assert "different versions" in checks["nvml"]["facts"]["reason"]
    assert "reboot" in checks["nvml"]["remedy"]
    assert checks[""]["host_memory"] is True


@pytest.mark.slow
def test_a_hanging_driver_is_told_and_does_not_hold_the_doctor_up(doctor: Doctor) -> None:
    checks = doctor(ONE_GPU + "fault nvmlDeviceGetMemoryInfo_v2 ms=50000\n")
    assert "did not respond" in checks["nvml"]["facts"]["reason"]


def test_hidden_gpus_are_told(doctor: Doctor) -> None:
    checks = doctor(ONE_GPU, CUDA_VISIBLE_DEVICES="-1")
    assert checks["visible_devices"]["ability"] == "no"


def test_the_screen_shows_the_same(
    fake_nvml: Callable[..., Path], environ: Callable[..., dict[str, str]]
) -> None:
    done = subprocess.run(
        DOCTOR,
        env=environ(fake_nvml(), ONE_GPU) | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "NVIDIA A100, 85.3 GB, 1.05 GB in use" in done.stdout.replace("\n" + " " * 28, " ")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert len(done.stdout.splitlines()) <= 40  # one screen
