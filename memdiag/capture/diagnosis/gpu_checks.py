"""What can be measured of GPU memory here: the GPU part of `memdiag doctor`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from memdiag.capture.gpu.cuda_visible_devices import visible
from memdiag.capture.gpu.nvml import Device, Driver, Reading, Usage, connect
from memdiag.capture.gpu.source import DRIVER_FILES, is_host_namespace
from memdiag.values.measurements import Ability, Check, Unavailable

_PATIENCE_S = 5.0  # a driver that takes longer hangs (without persistence mode it takes 2 s)
_OTHER_VENDORS = {"/dev/kfd": "AMD", "/dev/accel": "an accelerator that is not NVIDIA's"}
_INSIDE = "the allocators of torch, JAX and TensorFlow are still read inside the target"


def gpu_checks(environ: Mapping[str, str]) -> list[Check]:
    """Checks of the driver, devices and visibility. A driver that hangs is reported."""
    found = _within(_PATIENCE_S, _look)
    if isinstance(found, Unavailable):
        return [_no_driver(found), *_other_vendors()]
    driver, reading = found
    checks = [_driver(driver), *(_device(usage) for usage in reading.usages)]
    return [*checks, _visible(environ, [usage.device for usage in reading.usages])]


def _look() -> tuple[Driver, Reading] | Unavailable:
    nvml = connect()
    if isinstance(nvml, Unavailable):
        return nvml
    reading = nvml.read()
    nvml.close()
    return nvml.driver, reading


def _within(
    patience_s: float, look: Callable[[], tuple[Driver, Reading] | Unavailable]
) -> tuple[Driver, Reading] | Unavailable:
    """The result of `look`. If it hangs, its daemon thread is abandoned."""
    found: list[tuple[Driver, Reading] | Unavailable] = []
    thread = threading.Thread(target=lambda: found.append(look()), daemon=True)
    thread.start()
    thread.join(patience_s)
    if found:
        return found[0]
    return Unavailable(
        reason=f"the NVIDIA driver did not respond within {patience_s:.0f} s",
        remedy="check dmesg for Xid errors and nvidia-smi for hanging processes",
    )


def _no_driver(why: Unavailable) -> Check:
    has_device = any(Path(path).exists() for path in ("/dev/nvidiactl", *DRIVER_FILES))
    text = "{reason}" + (f"; {_INSIDE}" if has_device else "")
    return Check(
        name="nvml",
        title="GPU memory",
        ability=Ability.NO,
        text=text,
        facts={"reason": why.reason, "has_device_file": has_device},
        remedy=why.remedy,
    )


def _other_vendors() -> list[Check]:
    return [
        Check(
            name="other_gpu",
            title="other devices",
            ability=Ability.PARTLY,
            text=f"{{maker}} ({{path}}): not read from outside; {_INSIDE}",
            facts={"maker": vendor, "path": path},
        )
        for path, vendor in _OTHER_VENDORS.items()
        if Path(path).exists()
    ]


def _driver(driver: Driver) -> Check:
    return Check(
        name="nvml",
        title="NVIDIA driver",
        ability=Ability.YES,
        text="{driver}, CUDA {cuda}",
        facts={"driver": driver.version, "cuda": driver.cuda, "nvml": driver.nvml},
    )


def _device(usage: Usage) -> Check:
    device = usage.device
    facts: dict[str, object] = {"name": device.name, "uuid": device.uuid, "mig": device.mig}
    text = "{name}"
    if isinstance(device.total_bytes, int):
        facts["total_bytes"] = device.total_bytes
        text += ", {total_bytes}"
    if isinstance(usage.used_bytes, int):
        facts["used_bytes"] = usage.used_bytes
        text += ", {used_bytes} in use"
    ability, more, remedy = _per_process(usage)
    facts["per_process"] = ability.value
    return Check(
        name=device.label.lower().replace(" ", "_"),
        title=device.label,
        ability=ability,
        text=text + "; " + more,
        facts=facts,
        remedy=remedy,
    )


def _per_process(usage: Usage) -> tuple[Ability, str, str]:
    """Whether the driver reports the memory of single processes on the device, with a remedy."""
    fallback = "only the growth of the whole device since launch"
    if isinstance(usage.rows, Unavailable):
        worst = isinstance(usage.used_bytes, Unavailable)
        text = usage.rows.reason if worst else f"{fallback}: {usage.rows.reason}"
        return Ability.NO if worst else Ability.PARTLY, _braced(text), usage.rows.remedy
    if any(row.used_bytes is None for row in usage.rows):
        return (
            Ability.PARTLY,
            f"{fallback}: processes are listed without their memory (as under WSL2)",
            "use the framework's allocator, which is read inside the target",
        )
    if not is_host_namespace():
        return (
            Ability.PARTLY,
            "memory of single processes, if the driver knows this container's pids",
            "start the container with --pid=host to be sure",
        )
    return Ability.YES, "memory of every process", ""


def _visible(environ: Mapping[str, str], devices: list[Device]) -> Check:
    seen = visible(environ, devices)
    if isinstance(seen, Unavailable):
        return Check(
            name="visible_devices",
            title="visible GPUs",
            ability=Ability.NO,
            text="{reason}",
            facts={"reason": seen.reason},
            remedy=seen.remedy,
        )
    labels = [device.label for device in seen.devices]
    return Check(
        name="visible_devices",
        title="visible GPUs",
        ability=Ability.FACT,
        text="{labels}" if seen.ordered else "{labels}, in an order that only CUDA knows",
        facts={"labels": labels, "asked": environ.get("CUDA_VISIBLE_DEVICES")},
    )


def _braced(text: str) -> str:
    """Escape a reason for use in a template."""
    return text.replace("{", "{{").replace("}", "}}")
