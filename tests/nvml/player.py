"""Runs inside a process whose libnvidia-ml.so.1 is the fake one: plays steps, prints what is seen.

Standard input: {"mode": "ladder" | "source" | "inventory", "environ": {...}, "own_pids": bool,
"steps": [...]}; standard output: a JSON list with one entry per step. A step sets the scenario's
`frame`, and for a ladder the time `at_s`, the tree's `pids`, and which pids are `opened` (have
CUDA's device file open) and `running` outside the tree.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from memdiag.capture.gpu.cuda_visible_devices import visible
from memdiag.capture.gpu.nvml import Nvml, Reading, connect
from memdiag.capture.gpu.process_memory import Place, TreeMemory
from memdiag.capture.gpu.source import GpuSource
from memdiag.capture.process.tree import TREE, Process, ProcessId
from memdiag.values.measurements import Unavailable

_FRAME = Path(os.environ["FAKE_NVML_FRAME"])


def _set_frame(frame: int) -> None:
    fresh = _FRAME.with_suffix(".new")
    fresh.write_text(f"{frame}\n")
    fresh.replace(_FRAME)


def _plain(value: Any) -> Any:
    """A view as JSON; the reason where there is no figure."""
    if isinstance(value, Unavailable):
        return {"reason": value.reason, "remedy": value.remedy}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value


def _place(step: dict[str, Any], orders: dict[str, Any]) -> Place:
    return Place(
        own_pids=orders.get("own_pids", True),
        has_driver=orders.get("has_driver", True),
        is_running=lambda pid: pid in step.get("running", ()),
        has_opened=lambda pid: pid in step.get("opened", step["pids"]),
    )


def play_tree_memory(orders: dict[str, Any]) -> list[Any]:
    """One reading per step, taken at once; the first step is the baseline as well."""
    _set_frame(0)
    nvml = connect()
    if isinstance(nvml, Unavailable):
        return [_plain(nvml)]
    seen = visible(orders.get("environ", {}), nvml.devices)
    if isinstance(seen, Unavailable):
        return [_plain(seen)]
    now: dict[str, Any] = {"pids": []}
    place = Place(
        own_pids=orders.get("own_pids", True),
        has_driver=orders.get("has_driver", True),
        is_running=lambda pid: _place(now, orders).is_running(pid),
        has_opened=lambda pid: _place(now, orders).has_opened(pid),
    )
    ladder = TreeMemory(place=place, visible=seen, driver=nvml.driver, baseline=_read(nvml, 0.0))
    views = []
    for step in orders["steps"]:
        ladder.forget(set(now["pids"]) - set(step["pids"]))
        now.clear()
        now.update(step)
        _set_frame(step.get("frame", 0))
        views.append(_plain(ladder.see(_read(nvml, step.get("at_s", 100.0)), step["pids"])))
    nvml.close()
    return views


def _read(nvml: Nvml, at_s: float) -> Reading:
    return dataclasses.replace(nvml.read(), at_s=at_s)


def play_source(orders: dict[str, Any]) -> list[Any]:
    """The thread that reads by itself; a step waits for a reading that began after its frame.

    A step with `silent` waits for the source to say that there is no reading instead.
    """
    _set_frame(0)
    source = GpuSource(
        interval_s=0.005,
        rest_s=0.0,
        environ=orders.get("environ", {}),
        place=_place({"pids": []}, orders),
        **orders.get("options", {}),
    )
    source.start(wait_s=orders.get("wait_s", 10.0))
    seen = []
    for step in orders["steps"]:
        _set_frame(step.get("frame", 0))
        seen.append(_step(source, step))
    began_s = time.monotonic()
    source.close()
    seen.append(
        {
            "closed_in_s": time.monotonic() - began_s,
            "about": source.about(),
            "missing": _plain(source.missing()),
            "limits": [[limit.name, limit.value_bytes, limit.metric] for limit in source.limits()],
        }
    )
    return seen


def _step(source: GpuSource, step: dict[str, Any]) -> dict[str, Any]:
    processes = [Process(id=ProcessId(pid, 1), name="x") for pid in step["pids"]]
    views, longest_s, waited = [], 0.0, step.get("readings", 2)
    # Until a driver that has hung answers again, each look gives the reason.
    wants_figures = step.get("figures", False)
    until = time.monotonic() + 20
    while len(views) < waited:  # the second reading began after the frame was set
        began_s = time.monotonic()
        view = source.read(processes)
        longest_s = max(longest_s, time.monotonic() - began_s)
        if view and (isinstance(view[TREE].get("vram_bytes"), int) or not wants_figures):
            views.append(view)
        if time.monotonic() > until:
            raise TimeoutError(f"no reading for {step}")
        time.sleep(0.002)
    last = views[-1]
    return {
        "tree": _plain(dict(last[TREE])),
        "by_pid": {str(who.pid): dict(r) for who, r in last.items() if who != TREE},
        "longest_s": longest_s,
    }


def play_inventory(orders: dict[str, Any]) -> list[Any]:
    """Driver and devices."""
    del orders
    nvml = connect()
    if isinstance(nvml, Unavailable):
        return [_plain(nvml)]
    return [_plain({"driver": nvml.driver, "devices": nvml.devices})]


def play_visible(orders: dict[str, Any]) -> list[Any]:
    """One answer for each environment."""
    nvml = connect()
    assert not isinstance(nvml, Unavailable), nvml
    answers = [visible(environ, nvml.devices) for environ in orders["environs"]]
    return [
        _plain(answer)
        if isinstance(answer, Unavailable)
        else {"devices": [device.label for device in answer.devices], "ordered": answer.ordered}
        for answer in answers
    ]


def _withdrawn_bindings() -> None:
    """nvidia-ml-py 12.535.77, withdrawn: its process rows have five fields."""
    import ctypes

    import pynvml

    class Row(ctypes.Structure):
        _fields_ = (
            *pynvml.c_nvmlProcessInfo_v2_t._fields_,
            ("usedGpuCcProtectedMemory", ctypes.c_ulonglong),
        )

    pynvml.c_nvmlProcessInfo_v3_t = pynvml.c_nvmlProcessInfo_t = Row


if __name__ == "__main__":
    orders_read = json.load(sys.stdin)
    if orders_read.get("withdrawn_bindings"):
        _withdrawn_bindings()
    played = {
        "ladder": play_tree_memory,
        "source": play_source,
        "inventory": play_inventory,
        "visible": play_visible,
    }[orders_read["mode"]](orders_read)
    json.dump(played, sys.stdout)
