"""The parts of `make gpu-check` that need no GPU; the trainings themselves do."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gpu_check
import pytest
from gpu_check import EXPECTED, MIB, RUN_OUT, Result, Smi, off_smi, off_torch, table

RIGHT = Result(
    disease="copies",
    verdict="leak",
    smi_off_mib=2.0,
    reserved_off_mib=0.0,
    allocated_off_mib=0.1,
    allocations_off=0.0,
    overhead=0.002,
    peak_vram_mib=900.0,
)


def row(
    at_s: float, step: int | None = None, process: str = "main", **cells: int
) -> dict[str, str]:
    keys = {"at_s": str(at_s), "process": process, "pid": "7", "vram_bytes": ""}
    return (
        keys | {"step": "" if step is None else str(step)} | {k: str(v) for k, v in cells.items()}
    )


def test_the_program_has_every_disease_that_is_checked() -> None:
    tree = ast.parse(gpu_check.PROGRAM.read_text(encoding="utf-8"))
    lists = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign)
             and getattr(node.targets[0], "id", "") == "choices"]  # fmt: skip
    assert set(ast.literal_eval(lists[0])) == set(EXPECTED)
    assert set(EXPECTED) >= RUN_OUT


def test_figures_are_compared_step_by_step() -> None:
    truth = [{"step": n, "reserved_bytes": n * 100 * MIB} for n in range(5)]
    rows = [row(n, step=n, vram_reserved_bytes=n * 100 * MIB + 2 * MIB) for n in range(5)]
    rows += [row(9.0), row(9.0, step=77, vram_reserved_bytes=1)]  # between steps; unknown step
    assert off_torch(rows, truth, "vram_reserved_bytes", "reserved_bytes") == 2.0
    assert off_torch(rows, truth, "vram_allocated_bytes", "reserved_bytes") is None


def test_nvidia_smi_is_compared_with_the_nearest_reading_of_the_same_process() -> None:
    smi = Smi(seen=[(100.0, {7: 500}), (101.0, {7: 600, 8: 9}), (102.0, {})])
    rows = [row(1.1, vram_bytes=604 * MIB), row(0.1, vram_bytes=496 * MIB)]
    rows += [row(1.1, process="tree", vram_bytes=1), row(1.2)]
    assert off_smi(rows, smi, began_s=100.0) == 4.0
    assert off_smi([row(0.0)], smi, began_s=100.0) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"verdict": "stable"},
        {"smi_off_mib": 100.0},
        {"reserved_off_mib": 1.0},
        {"allocated_off_mib": 1.0},
        {"allocations_off": 1.0},
        {"allocated_off_mib": None},  # torch's figures are always to be had
        {"allocations_off": None},
        {"overhead": 0.05},
        {"cause": "device_memory"},  # of a training that ended well
        {"disease": "oom"},  # which the report did not explain
    ],
)
def test_anything_off_is_wrong(wrong: dict[str, object]) -> None:
    assert RIGHT.is_right
    assert replace(RIGHT, smi_off_mib=None).is_right  # nvidia-smi may list nobody
    result = replace(RIGHT, **wrong)  # type: ignore[arg-type]
    assert not result.is_right
    assert "WRONG" in table([RIGHT, result])
    assert table([RIGHT]).count("| ok |") == 1


def test_without_a_gpu_it_says_so_and_ends(tmp_path: Path) -> None:
    program = Path(gpu_check.__file__)
    done = subprocess.run(
        [sys.executable, str(program), "--out", str(tmp_path / "out")],
        env={"PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "gpu-check can't run here" in done.stderr
    assert not (tmp_path / "out").exists()
