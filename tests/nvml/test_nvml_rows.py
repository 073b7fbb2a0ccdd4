"""Rung 2: NVML's rows of the tree's processes, through every trap known of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Play = Callable[..., list[Any]]
MIB = 1 << 20
ONE_GPU = 'device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G reserved=600M used=1000M\n'
TWO_GPUS = ONE_GPU + 'device 1 name="NVIDIA A100" uuid=GPU-bbbb total=80G used=2000M\n'


def vram(view: dict[str, Any]) -> dict[str, int]:
    """pid -> MiB."""
    return {pid: readings["vram_bytes"] // MIB for pid, readings in view["by_pid"].items()}


def test_a_process_in_several_lists_counts_once_with_the_largest_figure(play: Play) -> None:
    rows = (
        "row 0 compute pid=7 used=500M\nrow 0 graphics pid=7 used=510M\nrow 0 mps pid=7 used=na\n"
    )
    (view,) = play(ONE_GPU + rows, [{"pids": [7]}])
    assert vram(view) == {"7": 510}
    assert view["tree"] == {"vram_bytes": 510 * MIB}


@pytest.mark.parametrize("kind", ["compute", "graphics", "mps"])
def test_a_process_is_found_in_each_list(play: Play, kind: str) -> None:
    (view,) = play(ONE_GPU + f"row 0 {kind} pid=7 used=300M\n", [{"pids": [7]}])
    assert vram(view) == {"7": 300}


def test_rows_of_other_processes_are_never_the_targets(play: Play) -> None:
    (view,) = play(ONE_GPU + "row 0 compute pid=8 used=300M\n", [{"pids": [7]}])
    assert view["by_pid"] == {}
    assert view["tree"] == {}
    assert view["missing"]["reason"] == "no process of the target has GPU memory"


def test_a_tree_is_summed_over_processes_and_gpus(play: Play) -> None:
    rows = "row 0 compute pid=7 used=100M\nrow 1 compute pid=7 used=20M\n"
    rows += "row 1 compute pid=8 used=3M\nrow 1 compute pid=9 used=4000M\n"
    (view,) = play(TWO_GPUS + rows, [{"pids": [6, 7, 8]}])
    assert vram(view) == {"7": 120, "8": 3}
    assert view["tree"] == {
        "vram_bytes": 123 * MIB,
        "gpu0_vram_bytes": 100 * MIB,
        "gpu1_vram_bytes": 23 * MIB,
    }


def test_memory_that_no_row_accounts_for_is_charged_to_nobody(play: Play) -> None:
    """Managed memory: 60 GB of a card are in use, of which the driver tells 5 GB of the process."""
    card = 'device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G used=60000M\n'
    (view,) = play(card + "row 0 compute pid=7 used=5000M\n", [{"pids": [7]}])
    assert vram(view) == {"7": 5000}
    assert view["tree"] == {"vram_bytes": 5000 * MIB}


def test_memory_that_processes_share_is_in_the_row_of_each(play: Play) -> None:
    """CUDA IPC: two processes map the same 900 MB of the 1000 MB in use; their rows say so."""
    rows = "row 0 compute pid=7 used=950M\nrow 0 compute pid=8 used=950M\n"
    (view,) = play(ONE_GPU + rows, [{"pids": [7, 8]}])
    assert vram(view) == {"7": 950, "8": 950}
    assert view["tree"] == {"vram_bytes": 1900 * MIB}


def test_processes_come_and_go(play: Play) -> None:
    rows = "row 0 compute pid=7 used=100M from=1 to=2\nrow 0 compute pid=8 used=50M from=2\n"
    steps = [{"frame": frame, "pids": [7, 8]} for frame in range(4)]
    views = play(ONE_GPU + rows, steps)
    assert [vram(view) for view in views] == [{}, {"7": 100}, {"7": 100, "8": 50}, {"8": 50}]


def test_a_hundred_processes_fit(play: Play) -> None:
    rows = "".join(f"row 0 compute pid={pid} used=1M\n" for pid in range(100, 200))
    (view,) = play(ONE_GPU + rows, [{"pids": list(range(100, 200))}])
    assert view["tree"] == {"vram_bytes": 100 * MIB}


def test_a_driver_without_the_newest_calls_is_asked_by_the_older_ones(play: Play) -> None:
    # nvidia-ml-py's own call raises NVMLLibraryMismatchError here, which is no NVMLError.
    rows = "row 0 compute pid=7 used=500M\nrow 0 graphics pid=8 used=5M\n"
    (view,) = play(ONE_GPU + rows, [{"pids": [7, 8]}], without=("v3",))
    assert vram(view) == {"7": 500, "8": 5}


def test_a_driver_with_neither_call_is_too_old(play: Play) -> None:
    rows = "row 0 compute pid=7 used=500M\n"
    (view,) = play(ONE_GPU + rows, [{"pids": [7], "opened": []}], without=("v3", "v2"))
    assert view["tree"] == {}
    assert "too old" in view["missing"]["reason"]
    assert "update" in view["missing"]["remedy"]


def test_scrambled_rows_are_discarded_all(play: Play) -> None:
    rows = "scrambled\ndriver 535.54.03\n"
    rows += "".join(f"row 0 compute pid={pid} used={pid}M\n" for pid in (7, 8, 9))
    (view,) = play(ONE_GPU + rows, [{"pids": [0, 7, 8, 9], "opened": []}])
    assert view["by_pid"] == {}
    assert "rows are invalid" in view["missing"]["reason"]
    assert "535.86" in view["missing"]["remedy"]


def test_rows_do_not_go_by_the_layout_that_withdrawn_bindings_have(play: Play) -> None:
    rows = "row 0 compute pid=7 used=500M\nrow 0 compute pid=8 used=30M\n"
    (view,) = play(ONE_GPU + rows, [{"pids": [7, 8]}], withdrawn_bindings=True)
    assert vram(view) == {"7": 500, "8": 30}


@pytest.mark.parametrize("fault", ["code=3", "code=13"])
def test_a_card_without_graphics_or_mps_lists_has_its_compute_rows(play: Play, fault: str) -> None:
    scenario = ONE_GPU + "row 0 compute pid=7 used=500M\n"
    scenario += f"fault nvmlDeviceGetGraphicsRunningProcesses_v3 {fault}\n"
    scenario += f"fault nvmlDeviceGetMPSComputeRunningProcesses_v3 {fault}\n"
    (view,) = play(scenario, [{"pids": [7]}])
    assert vram(view) == {"7": 500}


def test_a_card_that_does_not_tell_its_memory_still_tells_its_processes(play: Play) -> None:
    scenario = ONE_GPU + "row 0 compute pid=7 used=500M\nfault nvmlDeviceGetMemoryInfo_v2 code=3\n"
    scenario += "fault nvmlDeviceGetMemoryInfo code=3\n"
    (view,) = play(scenario, [{"pids": [7]}])
    assert vram(view) == {"7": 500}


def test_a_lost_gpu_is_a_reason_and_never_a_smaller_sum(play: Play) -> None:
    rows = "row 0 compute pid=7 used=100M\nrow 1 compute pid=7 used=20M\n"
    rows += "row 0 compute pid=8 used=5M\nfault * device=1 code=15 from=1 to=1\n"
    steps = [{"frame": frame, "pids": [7, 8]} for frame in range(3)]
    before, lost, after = play(TWO_GPUS + rows, steps)
    assert vram(before) == vram(after) == {"7": 120, "8": 5}
    assert vram(lost) == {"8": 5}  # untouched by the loss
    assert lost["tree"] == {}
    assert "lost" in lost["missing"]["reason"]


def test_a_pid_given_out_again_starts_anew(play: Play) -> None:
    rows = "row 1 compute pid=7 used=20M to=0\nrow 0 compute pid=7 used=5M from=2\n"
    rows += "fault * device=1 code=15 from=1\n"
    steps = [{"pids": [7]}, {"frame": 1, "pids": []}, {"frame": 2, "pids": [7]}]
    views = play(TWO_GPUS + rows, steps)
    assert vram(views[2]) == {"7": 5}


MIG = (
    'device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G mig=1\n'
    'mig 0/0 name="NVIDIA A100 MIG 3g.40gb" uuid=MIG-1111 total=40G used=50M gi=1 ci=0\n'
    'mig 0/2 name="NVIDIA A100 MIG 3g.40gb" uuid=MIG-2222 total=40G used=60M gi=2 ci=0\n'
    "row 0/0 compute pid=7 used=100M gi=1 ci=0\nrow 0/2 compute pid=8 used=30M gi=2 ci=0\n"
)


def test_mig_instances_are_asked_by_their_own_handles(play: Play) -> None:
    # The whole card refuses a user without privileges: memory and process lists.
    faults = "row 0 compute pid=7 used=na gi=1 ci=0\n"
    (view,) = play(MIG + faults, [{"pids": [7, 8]}])
    assert vram(view) == {"7": 100, "8": 30}
    assert view["tree"]["gpu0_mig2_vram_bytes"] == 30 * MIB
    (seen,) = play(MIG, mode="inventory")
    assert [device["instance"] for device in seen["devices"]] == [0, 2]


def test_a_mig_card_without_instances_in_reach_says_what_to_do(play: Play) -> None:
    scenario = 'device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G mig=1\n'
    scenario += "fault nvmlDeviceGetMemoryInfo_v2 code=4\n"
    scenario += "fault nvmlDeviceGetComputeRunningProcesses_v3 code=4\n"
    (view,) = play(scenario, [{"pids": [7]}])
    assert "denies permission" in view["missing"]["reason"]
    assert "MIG" in view["missing"]["remedy"]


def test_a_driver_that_knows_no_mig_is_read_as_usual(play: Play) -> None:
    (view,) = play(ONE_GPU + "row 0 compute pid=7 used=5M\n", [{"pids": [7]}], without=("mig",))
    assert vram(view) == {"7": 5}
