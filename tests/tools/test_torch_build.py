"""The demo's torch: taken without asking only if it brings no GPU packages."""

from __future__ import annotations

import platform

import pytest
import torch_build


def test_a_cpu_build_brings_no_gpu_packages() -> None:
    metadata = {"requires_dist": ["filelock", "sympy>=1.13", "numpy; extra == 'opt'"]}
    assert torch_build.gpu_packages(metadata) == []


def test_gpu_packages_count_only_where_they_would_be_installed() -> None:
    here = platform.system()
    metadata = {
        "requires_dist": [
            f"nvidia-cublas==13.1; platform_system == '{here}'",
            f"triton==3.7; platform_system == '{here}'",
            "nvidia-nccl-cu13; platform_system == 'Plan 9'",
            "cuda-bindings; extra == 'cuda'",
        ]
    }
    assert torch_build.gpu_packages(metadata) == ["nvidia-cublas", "triton"]


def test_the_project_pins_one_version() -> None:
    (specifier,) = torch_build.pinned().specifier
    assert specifier.operator == "=="


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cpu"])
def test_a_local_build_of_the_pinned_version_satisfies_the_pin(version: str) -> None:
    assert torch_build.pinned().specifier.contains(version)
