"""Builds the fake libnvidia-ml.so.1 and plays scenarios on it through the real nvidia-ml-py."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent
_SOURCE = _HERE / "fake_nvml.c"


def _compiler() -> str | None:
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def build_fake_nvml(directory: Path, *without: str) -> Path:
    """The directory of a libnvidia-ml.so.1 that lacks the symbols (or groups) in `without`."""
    compiler = _compiler()
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler and Linux to build the fake NVML library")
    directory.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]
    command += [str(directory / "libnvidia-ml.so.1"), str(_SOURCE)]
    command += [f"-DWITHOUT_{symbol}" for symbol in without]
    subprocess.run(command, check=True, timeout=60)
    return directory


@pytest.fixture(scope="session")
def fake_nvml(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`fake_nvml("v3")` is the directory of a library without the `_v3` calls; built once."""
    built: dict[tuple[str, ...], Path] = {}

    def find(*without: str) -> Path:
        if without not in built:
            built[without] = build_fake_nvml(tmp_path_factory.mktemp("nvml"), *without)
        return built[without]

    return find


@pytest.fixture
def environ(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """`environ(directory, scenario)`: an environment in which that library plays that scenario."""

    def make(library: Path | None, scenario: str) -> dict[str, str]:
        path = tmp_path / "scenario.txt"
        path.write_bytes(scenario.encode(errors="surrogateescape"))
        made = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
        made |= {"FAKE_NVML_SCENARIO": str(path), "FAKE_NVML_FRAME": str(tmp_path / "frame")}
        if library is not None:
            made["LD_LIBRARY_PATH"] = str(library)
        return made

    return make


@pytest.fixture
def play_in() -> Callable[..., list[Any]]:
    """`play_in(environ, steps, mode=..., **orders)`: what memdiag saw at each step."""

    def run(
        process_environ: dict[str, str],
        steps: list[dict[str, Any]] | None = None,
        *,
        mode: str = "ladder",
        **orders: Any,
    ) -> list[Any]:
        done = subprocess.run(
            [sys.executable, str(_HERE / "player.py")],
            input=json.dumps({"mode": mode, "steps": steps or [], **orders}),
            capture_output=True,
            text=True,
            timeout=60,
            env=process_environ,
            check=False,
        )
        assert not done.stderr, done.stderr
        played: list[Any] = json.loads(done.stdout)
        return played

    return run


@pytest.fixture
def play(
    fake_nvml: Callable[..., Path],
    environ: Callable[..., dict[str, str]],
    play_in: Callable[..., list[Any]],
) -> Callable[..., list[Any]]:
    """`play(scenario, steps, mode=..., without=(...), **orders)` with the fake library."""

    def run(
        scenario: str,
        steps: list[dict[str, Any]] | None = None,
        *,
        without: tuple[str, ...] = (),
        **orders: Any,
    ) -> list[Any]:
        return play_in(environ(fake_nvml(*without), scenario), steps, **orders)

    return run
