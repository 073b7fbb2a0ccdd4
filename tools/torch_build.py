"""Install torch for the demo and the tests, unless that would bring a GPU's worth of packages.

`torch_build.py auto` installs the version that pyproject.toml pins if pip finds a build without
CUDA packages, and says what to do if it does not; `1` installs it in any case; `0` does nothing.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

# Distributions of this kind in a build's requirements mean several GB and a GPU.
GPU_PREFIXES = ("nvidia-", "cuda-", "triton", "pytorch-triton", "rocm")


def main() -> int:
    wanted = sys.argv[1]
    requirement = pinned()
    if already_there(requirement):
        return 0
    if wanted == "0":
        print("torch: left out as asked (TORCH=0); what needs it is skipped")
        return 0
    if wanted == "auto":
        why_not = reason_against(requirement)
        if why_not:
            print(f"torch: left out. {why_not}")
            return 0
    print(f"torch: installing {requirement} (once)", flush=True)
    return subprocess.run(pip("install", str(requirement)), check=False).returncode


def pinned() -> Requirement:
    """The `demo` extra's one requirement."""
    lines = importlib.metadata.requires("memdiag") or []
    for requirement in map(Requirement, lines):
        marker = requirement.marker
        # What holds without the extra as well (`python_version < "3.11"`) is no part of it.
        if (
            marker is None
            or marker.evaluate({"extra": ""})
            or not marker.evaluate({"extra": "demo"})
        ):
            continue
        requirement.marker = None
        return requirement
    raise SystemExit("pyproject.toml pins no torch in its `demo` extra")


def already_there(requirement: Requirement) -> bool:
    try:
        return requirement.specifier.contains(importlib.metadata.version(requirement.name))
    except importlib.metadata.PackageNotFoundError:
        return False


def reason_against(requirement: Requirement) -> str:
    """Why pip should not install it here; empty if it should."""
    with tempfile.TemporaryDirectory() as directory:
        plan = Path(directory, "plan.json")
        command = pip("install", "--dry-run", "--no-deps", "--report", str(plan), str(requirement))
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        if asked.returncode != 0:
            last = (asked.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            return f"pip finds no {requirement} for this Python: {last}"
        chosen = json.loads(plan.read_text())["install"][0]["metadata"]
    gpu = gpu_packages(chosen)
    if not gpu:
        return ""
    return (
        f"pip finds only a build of {chosen['version']} for GPUs here, which needs {gpu[0]} and"
        " more: several GB in all.\n"
        "  Give pip an index of CPU builds (PIP_EXTRA_INDEX_URL), or take it anyway: TORCH=1.\n"
        "  What needs torch is skipped."
    )


def gpu_packages(metadata: dict[str, Any]) -> list[str]:
    """The GPU packages among a distribution's requirements on this platform."""
    names = [
        requirement.name
        for requirement in map(Requirement, metadata.get("requires_dist", []))
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]
    return [name for name in names if name.lower().startswith(GPU_PREFIXES)]


def pip(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", *arguments]


if __name__ == "__main__":
    raise SystemExit(main())
