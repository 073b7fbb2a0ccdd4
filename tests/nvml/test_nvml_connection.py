"""No driver, or one that fails: always a reason and what to do, never a traceback."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Play = Callable[..., list[Any]]
ONE_GPU = 'device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G reserved=600M used=1000M\n'


@pytest.mark.parametrize(
    ("code", "reason", "remedy"),
    [
        (4, "denies permission", "/dev/nvidia"),
        (9, "kernel driver is not loaded", "modprobe"),
        (15, "GPU is lost", "dmesg"),
        (17, "operating system blocks", "/dev/nvidia"),
        (18, "library and kernel module have different versions", "reboot"),
        (999, "Unknown Error", ""),
        (777, "777", ""),
    ],
)
def test_a_failing_start_of_nvml_is_a_reason(
    play: Play, code: int, reason: str, remedy: str
) -> None:
    (seen,) = play(ONE_GPU + f"fault nvmlInitWithFlags code={code}\n", mode="inventory")
    assert reason in seen["reason"] or code == 777
    assert seen["reason"].strip()
    assert remedy in seen["remedy"]


def test_a_machine_without_the_driver_library_says_so(
    environ: Callable[..., dict[str, str]], tmp_path: Path, play_in: Play
) -> None:
    (tmp_path / "libnvidia-ml.so.1").touch()  # hides a real one: an empty file can't be loaded
    (seen,) = play_in(environ(tmp_path, ""), mode="inventory")
    assert "libnvidia-ml.so.1" in seen["reason"]
    assert "--gpus all" in seen["remedy"]


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("raise ImportError('none')", "not installed"),
        ("def nvmlInit():\n    pass\n", "shadows"),
    ],
)
def test_missing_or_foreign_bindings_are_refused(
    environ: Callable[..., dict[str, str]], tmp_path: Path, play_in: Play, module: str, reason: str
) -> None:
    (tmp_path / "pynvml.py").write_text(module)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    (seen,) = play_in(environ(None, "") | {"PYTHONPATH": path}, mode="inventory")
    assert reason in seen["reason"]
    assert "nvidia-ml-py" in seen["remedy"]


def test_a_driver_without_devices_is_a_reason(play: Play) -> None:
    (seen,) = play("driver 550.54.15\n", mode="inventory")
    assert "no device" in seen["reason"]


def test_the_inventory_names_driver_cuda_and_allocatable_memory(play: Play) -> None:
    (seen,) = play("driver 535.113.01\ncuda 12020\n" + ONE_GPU, mode="inventory")
    assert seen["driver"] == {"version": "535.113.01", "nvml": "12.550.54.15", "cuda": "12.2"}
    (device,) = seen["devices"]
    assert (device["name"], device["uuid"]) == ("NVIDIA A100", "GPU-aaaa")
    assert device["total_bytes"] == (80 << 30) - (600 << 20)


def test_a_device_that_is_lost_from_the_start_does_not_hide_the_others(play: Play) -> None:
    scenario = ONE_GPU + 'device 1 name="NVIDIA A100" uuid=GPU-bbbb total=80G used=0\n'
    scenario += "fault nvmlDeviceGetHandleByIndex_v2 device=0 code=15\n"
    (seen,) = play(scenario, mode="inventory")
    assert "lost" in seen["devices"][0]["total_bytes"]["reason"]
    assert seen["devices"][1]["uuid"] == "GPU-bbbb"


def test_a_name_that_is_no_text_does_not_fail(play: Play) -> None:
    (seen,) = play(ONE_GPU.replace("A100", "A\udcff100"), mode="inventory")
    assert seen["devices"][0]["name"] == "unnamed GPU"


def test_memory_that_the_driver_reserves_is_not_counted_as_used(play: Play) -> None:
    steps = [{"pids": [7]}, {"pids": [7], "frame": 1}]
    fault = "fault nvmlDeviceGetComputeRunningProcesses_v3 code=4\n"
    for without in ((), ("nvmlDeviceGetMemoryInfo_v2",)):
        (seen,) = play(ONE_GPU, mode="inventory", without=without)
        reserved = 0 if without else 600 << 20
        assert seen["devices"][0]["total_bytes"] == (80 << 30) - reserved
        views = play(ONE_GPU.strip() + " grow=5M\n" + fault, steps, without=without)
        assert [view["tree"]["vram_device_delta_bytes"] for view in views] == [0, 5 << 20]
