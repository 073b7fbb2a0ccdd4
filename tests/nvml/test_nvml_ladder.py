"""Rungs 3 to 5: what is said where NVML has no row of the target, and what never is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Play = Callable[..., list[Any]]
MIB = 1 << 20
ONE_GPU = 'device 0 name="NVIDIA A100" uuid=GPU-aaaa total=80G reserved=600M used=1000M\n'
OLD = "driver 525.60.13\n" + ONE_GPU
NEW = "driver 550.54.15\n" + ONE_GPU
# The context is made at second 1; five seconds later a row of one's own would have come.
BEFORE = {"pids": [7], "opened": [], "at_s": 0.5}
EARLY, LATE = {"at_s": 1.0}, {"at_s": 7.0}


def test_in_a_container_the_sole_new_row_is_taken_and_labelled(play: Play) -> None:
    rows = "row 0 compute pid=41000 used=900M\nrow 0 compute pid=52000 used=300M grow=7M from=1\n"
    steps = [
        BEFORE,
        {"pids": [7], "frame": 1, **EARLY},
        {"pids": [7], "frame": 1, **LATE},
        {"pids": [7], "frame": 2, "at_s": 8.0},
    ]
    views = play(OLD + rows, steps, own_pids=False)[1:]
    assert views[0]["tree"] == {}  # the target's row may yet come
    assert views[1]["tree"] == {"vram_new_row_bytes": 307 * MIB}
    assert views[2]["tree"] == {"vram_new_row_bytes": 314 * MIB}
    assert "--pid=host" in views[2]["missing"]["remedy"]  # and NVML's own row stays missing


def test_two_new_rows_leave_the_device_beyond_its_baseline(play: Play) -> None:
    rows = "row 0 compute pid=52000 used=300M from=1\nrow 0 compute pid=52001 used=300M from=2\n"
    scenario = OLD.strip() + " grow=10M\n" + rows
    steps = [
        BEFORE,
        {"pids": [7], "frame": 1, **EARLY},
        {"pids": [7], "frame": 1, **LATE},
        {"pids": [7], "frame": 2, "at_s": 8.0},
        {"pids": [7], "frame": 1, "at_s": 9.0},  # the second one has gone again
    ]
    views = play(scenario, steps, own_pids=False)[1:]
    keys = [list(view["tree"]) for view in views]
    assert keys == [
        [],
        ["vram_new_row_bytes"],
        ["vram_device_delta_bytes"],
        ["vram_device_delta_bytes"],
    ]
    assert views[2]["tree"]["vram_device_delta_bytes"] == 20 * MIB


def test_a_target_that_used_the_gpu_before_it_was_seen_is_not_given_a_new_row(play: Play) -> None:
    rows = "row 0 compute pid=41000 used=900M\nrow 0 compute pid=52000 used=300M from=1\n"
    steps = [{"pids": [7], **EARLY}, {"pids": [7], "frame": 1, **LATE}]
    views = play(OLD + rows, steps, own_pids=False)
    assert list(views[1]["tree"]) == ["vram_device_delta_bytes"]


def test_host_pids_are_not_mistaken_for_the_containers(play: Play) -> None:
    rows = "row 0 compute pid=7 used=900M\n"  # the host's pid 7
    steps = [{"pids": [7], "opened": [], **LATE}]
    (view,) = play(OLD + rows, steps, own_pids=False)
    assert view["by_pid"] == {}
    assert view["tree"] == {}


def test_a_container_on_a_newer_driver_has_its_rows(play: Play) -> None:
    rows = "row 0 compute pid=7 used=900M\n"
    (view,) = play(NEW + rows, [{"pids": [7]}], own_pids=False)
    assert view["by_pid"] == {"7": {"vram_bytes": 900 * MIB}}


def test_a_neighbour_in_the_same_container_is_not_taken_for_the_target(play: Play) -> None:
    rows = "row 0 compute pid=55 used=900M from=1\n"
    steps = [{"pids": [7], "frame": 1, "running": [55], "at_s": at_s} for at_s in (1.0, 7.0)]
    views = play(NEW + rows, [BEFORE, *steps], own_pids=False)
    assert "vram_new_row_bytes" not in views[2]["tree"]


@pytest.mark.parametrize("figure", ["na", "0"])
def test_rows_without_figures_leave_the_device_beyond_its_baseline(play: Play, figure: str) -> None:
    # WSL2 and WDDM say N/A; drivers 535.113 to 565.56 say 0 inside a container.
    scenario = NEW.strip() + f" grow=10M\nrow 0 compute pid=7 used={figure} from=1\n"
    steps = [{"pids": [7], "frame": 1, **EARLY}, {"pids": [7], "frame": 3, **LATE}]
    views = play(scenario, steps)
    assert views[0]["tree"] == {}
    assert views[1]["tree"] == {"vram_device_delta_bytes": 30 * MIB}
    assert "without its memory" in views[1]["missing"]["reason"]


def test_a_strangers_memory_is_not_shown_for_a_target_without_a_gpu(play: Play) -> None:
    rows = "row 0 compute pid=52000 used=300M grow=7M from=1\n"
    steps = [{"pids": [7], "opened": [], "frame": f, "at_s": 10.0 * f} for f in range(4)]
    for own_pids in (True, False):
        for view in play(OLD + rows, steps, own_pids=own_pids):
            assert view["tree"] == {}
            assert view["missing"]["reason"] == "no process of the target has GPU memory"


def test_rows_with_figures_end_the_guessing_for_good(play: Play) -> None:
    rows = "row 0 compute pid=7 used=na from=1 to=1\nrow 0 compute pid=7 used=90M from=2 to=2\n"
    rows += "row 0 compute pid=7 used=na from=3\n"
    steps = [{"pids": [7], "frame": f, "at_s": 10.0 * f} for f in range(4)]
    views = play(NEW + rows, steps)
    assert views[2]["tree"] == {"vram_bytes": 90 * MIB}
    assert views[3]["tree"] == {}
    assert "without its memory" in views[3]["missing"]["reason"]


def test_the_baseline_leaves_out_devices_that_the_target_may_not_use(play: Play) -> None:
    scenario = "driver 525.60.13\n"
    scenario += "device 0 name=A uuid=GPU-aaaa total=80G used=0 grow=100M\n"
    scenario += "device 1 name=A uuid=GPU-bbbb total=80G used=0 grow=1M\n"
    steps = [{"pids": [7], **EARLY}, {"pids": [7], "frame": 5, **LATE}]
    views = play(scenario, steps, own_pids=False, environ={"CUDA_VISIBLE_DEVICES": "1"})
    assert views[1]["tree"] == {"vram_device_delta_bytes": 5 * MIB}


def test_a_device_that_fails_leaves_no_partial_difference(play: Play) -> None:
    scenario = "driver 525.60.13\n"
    scenario += "device 0 name=A uuid=GPU-aaaa total=80G used=0 grow=100M\n"
    scenario += "device 1 name=A uuid=GPU-bbbb total=80G used=0 grow=1M\n"
    scenario += "fault * device=1 code=15 from=5\n"
    steps = [{"pids": [7], **EARLY}, {"pids": [7], "frame": 5, **LATE}]
    assert play(scenario, steps, own_pids=False)[1]["tree"] == {}
