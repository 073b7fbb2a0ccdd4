"""Finds the GPUs that a process may use, from CUDA_VISIBLE_DEVICES.

The variable (CUDA programming guide, "Environment Variables") is a list of indices, UUIDs, unique
prefixes of UUIDs, or MIG ids. The list ends at its first invalid entry; an empty or invalid list
hides every GPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memdiag.capture.gpu.nvml import Device
from memdiag.values.measurements import Unavailable

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_OLD_MIG_ID = re.compile(r"MIG-(GPU-[0-9a-f-]+)/(\d+)/(\d+)", re.I)  # before driver R470


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """The devices that a target may use.

    ordered: CUDA's order is known (cuda:0 is devices[0]). False if CUDA sorts different GPUs by
        speed, which NVML does not report.
    """

    devices: tuple[Device, ...]
    ordered: bool


def visible(environ: Mapping[str, str], devices: Sequence[Device]) -> Visible | Unavailable:
    """The devices that a process with this environment may use, in CUDA's order if known."""
    asked = environ.get(_VARIABLE)
    by_bus = environ.get("CUDA_DEVICE_ORDER", "").strip().upper() == "PCI_BUS_ID"
    ordered = by_bus or len({device.name for device in devices}) <= 1
    if asked is None:
        return Visible(devices=tuple(devices), ordered=ordered)
    named = [entry.strip() for entry in asked.split(",")]
    chosen = _chosen(named, devices)
    if not chosen:
        return Unavailable(
            reason=f"{_VARIABLE} hides every GPU from the target",
            remedy=f"unset {_VARIABLE} or set it to a GPU (see nvidia-smi -L)",
        )
    if ordered or not any(entry.lstrip("+-").isdigit() for entry in named):
        return Visible(devices=tuple(chosen), ordered=True)
    return Visible(devices=tuple(devices), ordered=False)  # indices in an unknown order


def _chosen(named: Sequence[str], devices: Sequence[Device]) -> list[Device]:
    chosen: list[Device] = []
    for entry in named:
        found = _named(entry, devices)
        if not found:
            break
        if any(device in chosen for device in found):
            return []  # CUDA rejects a list with a device that occurs twice
        chosen += found
    return chosen


def _named(entry: str, devices: Sequence[Device]) -> list[Device]:
    if entry.isdigit():  # an index of a GPU; of a GPU in MIG mode CUDA uses the first instance
        return [device for device in devices if device.index == int(entry)][:1]
    old = _OLD_MIG_ID.fullmatch(entry)
    if old is not None:  # instance numbers are not NVML's indices: use any instance of the GPU
        return [device for device in devices if device.instance is not None][:1]
    if not entry.upper().startswith(("GPU-", "MIG-")):
        return []
    begun = [device for device in devices if device.uuid.lower().startswith(entry.lower())]
    return begun if len(begun) == 1 else []
