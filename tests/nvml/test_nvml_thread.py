"""The driver is read off the sampling clock: it may hang, vanish and come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Play = Callable[..., list[Any]]
MIB = 1 << 20
ONE_GPU = 'device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G reserved=600M used=1000M\n'
ROW = "row 0 compute pid=7 used=500M grow=1M\n"
AT_ONCE = 0.25  # seconds; far above a thread switch on a busy machine, below every wait
QUICK = {"retry_s": 0.01, "stale_s": 0.5}


def test_values_follow_the_driver(play: Play) -> None:
    steps = [{"pids": [7]}, {"frame": 9, "pids": [7]}, {"pids": []}]
    *seen, end = play(ONE_GPU + ROW, steps, mode="source")
    assert [step["tree"].get("vram_bytes") for step in seen] == [500 * MIB, 509 * MIB, None]
    assert end["about"]["sources"] == {"vram_bytes": "NVML's values for the target's processes"}
    assert end["missing"] == []


def test_the_limit_of_a_gpu_is_what_others_leave_of_it(play: Play) -> None:
    end = play(ONE_GPU + ROW, [{"pids": [7]}], mode="source")[-1]
    allocatable = (80 << 30) - 600 * MIB
    assert end["limits"] == [["GPU 0 (NVIDIA A100)", allocatable - 500 * MIB, ""]]


def test_each_gpu_of_a_tree_has_its_own_limit_and_metric(play: Play) -> None:
    scenario = ONE_GPU + ROW
    scenario += 'device 1 name="NVIDIA T4" uuid=GPU-bbbb total=16G used=20M\n'
    scenario += 'device 2 name="NVIDIA T4" uuid=GPU-cccc total=16G used=20M\n'
    scenario += "row 1 compute pid=8 used=20M\n"
    end = play(scenario, [{"pids": [7, 8]}], mode="source")[-1]
    assert [limit[2] for limit in end["limits"]] == ["gpu0_vram_bytes", "gpu1_vram_bytes"]
    assert end["limits"][1] == ["GPU 1 (NVIDIA T4)", 16 << 30, "gpu1_vram_bytes"]


def test_a_target_without_device_memory_lacks_nothing(play: Play) -> None:
    seen, end = play(ONE_GPU + ROW, [{"pids": [8]}], mode="source")
    assert seen["tree"] == {}
    assert end["missing"] == []


def test_a_machine_without_a_device_lacks_nothing(play: Play) -> None:
    scenario = ONE_GPU + "fault nvmlInitWithFlags code=9\n"
    seen, end = play(scenario, [{"pids": [8]}], mode="source", has_driver=False)
    assert seen["tree"] == {}
    assert end["missing"] == []


@pytest.mark.slow
def test_a_hanging_call_delays_nothing_and_is_a_reason(play: Play) -> None:
    hang = "fault nvmlDeviceGetComputeRunningProcesses_v3 hold=1 from=1 to=1\n"
    steps = [
        {"pids": [7]},
        {"frame": 1, "pids": [7], "readings": 3},
        {"frame": 2, "pids": [7], "figures": True},
    ]
    *seen, _ = play(ONE_GPU + ROW + hang, steps, mode="source", options=QUICK)
    assert "has not responded" in seen[1]["tree"]["vram_bytes"]["reason"]
    assert seen[2]["tree"] == {"vram_bytes": 502 * MIB}
    assert max(step["longest_s"] for step in seen) < AT_ONCE


def test_a_hang_at_the_start_delays_the_launch_no_longer_than_asked(play: Play) -> None:
    hang = "fault nvmlInitWithFlags hold=1 to=0\n"
    steps = [{"pids": [7], "readings": 1}, {"frame": 1, "pids": [7], "figures": True}]
    *seen, end = play(ONE_GPU + ROW + hang, steps, mode="source", options=QUICK, wait_s=0.01)
    assert "has not responded" in seen[0]["tree"]["vram_bytes"]["reason"]
    assert seen[1]["tree"] == {"vram_bytes": 501 * MIB}
    assert end["about"]["baseline_late_s"] > 0  # and it is said that the baseline is late


def test_a_hang_at_the_end_does_not_hold_the_end_up(play: Play) -> None:
    hang = "fault nvmlDeviceGetMemoryInfo_v2 hold=1 from=1\n"
    steps = [{"pids": [7]}, {"frame": 1, "pids": [7], "readings": 3}]
    end = play(ONE_GPU + ROW + hang, steps, mode="source", options=QUICK)[-1]
    assert end["closed_in_s"] < 2


def test_a_gpu_that_is_lost_and_found_again(play: Play) -> None:
    scenario = ONE_GPU + ROW + "fault * device=0 code=15 from=1 to=1\n"
    steps = [{"pids": [7]}, {"frame": 1, "pids": [7]}, {"frame": 2, "pids": [7], "figures": True}]
    *seen, end = play(scenario, steps, mode="source", options=QUICK)
    assert "lost" in seen[1]["tree"]["vram_bytes"]["reason"]
    assert seen[2]["tree"] == {"vram_bytes": 502 * MIB}
    assert end["missing"]
    assert all("lost" in entry["why"]["reason"] for entry in end["missing"])


def test_a_driver_that_is_unloaded_and_loaded_again(play: Play) -> None:
    scenario = ONE_GPU + ROW + "fault * code=9 from=1 to=1\n"
    steps = [{"pids": [7]}, {"frame": 1, "pids": [7]}, {"frame": 2, "pids": [7], "figures": True}]
    *seen, _ = play(scenario, steps, mode="source", options=QUICK)
    assert "not loaded" in seen[1]["tree"]["vram_bytes"]["reason"]
    assert seen[2]["tree"] == {"vram_bytes": 502 * MIB}


def test_a_machine_without_a_driver_says_so_at_once(play: Play) -> None:
    *seen, end = play(ONE_GPU + "fault nvmlInitWithFlags code=9\n", [{"pids": [7]}], mode="source")
    assert "not loaded" in seen[0]["tree"]["vram_bytes"]["reason"]
    assert [entry["metric"] for entry in end["missing"]] == ["vram_bytes"]
    assert end["limits"] == []


def test_hidden_gpus_are_a_reason(play: Play) -> None:
    *seen, _ = play(ONE_GPU, [{"pids": [7]}], mode="source", environ={"CUDA_VISIBLE_DEVICES": ""})
    assert "hides every GPU" in seen[0]["tree"]["vram_bytes"]["reason"]
