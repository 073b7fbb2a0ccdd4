"""The parts of `make gpu-check` that need no GPU; the trainings themselves do."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gpu_check
import pytest
from gpu_check import (
    EXPECTED,
    FRAMEWORKS,
    KEEPING,
    MIB,
    RUN_OUT,
    SMI,
    Result,
    Smi,
    off_smi,
    off_torch,
    offset,
    read_truth,
    table,
)

RIGHT = Result(
    check="copies",
    said="leak of vram_allocated_bytes",
    expected="leak",
    is_as_expected=True,
    offs={SMI: (2.0, 24.0), "allocated (MiB)": (0.1, 0.5), "allocations": (0.0, 0.0)},
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


def test_the_programs_that_keep_too_much_say_where_and_how_much() -> None:
    assert {path.stem for path in KEEPING.glob("*.py")} == set(FRAMEWORKS)
    for path in KEEPING.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("# <- kept here") == 1
        assert 'print(f"kept per step ' in text


def test_figures_are_compared_step_by_step() -> None:
    truth = [{"step": n, "reserved_bytes": n * 100 * MIB} for n in range(5)]
    rows = [row(n, step=n, vram_reserved_bytes=n * 100 * MIB + 2 * MIB) for n in range(5)]
    rows += [row(9.0), row(9.0, step=77, vram_reserved_bytes=1)]  # between steps; unknown step
    assert off_torch(rows, truth, "vram_reserved_bytes", "reserved_bytes") == 2.0
    assert off_torch(rows, truth, "vram_allocated_bytes", "reserved_bytes") is None


def test_nvidia_smi_is_compared_between_two_of_its_answers() -> None:
    smi = Smi(seen=[(100.0, {7: 500}), (102.0, {7: 600, 8: 9}), (103.0, {})])
    rows = [row(1.0, vram_bytes=554 * MIB), row(2.0, vram_bytes=604 * MIB)]
    rows += [row(1.0, process="tree", vram_bytes=1), row(1.2), row(9.0, vram_bytes=MIB)]
    assert off_smi(rows, smi, offset_s=100.0) == 4.0
    assert off_smi([row(0.0)], smi, offset_s=100.0) is None


def test_the_clocks_are_aligned_by_the_steps() -> None:
    truth = [{"step": n, "at_s": 50.0 + n} for n in range(3)]
    rows = [row(n + 0.5, step=n, vram_allocated_bytes=1) for n in range(3)] + [row(7.0)]
    assert offset(rows, truth) == 49.5
    assert offset([row(1.0)], truth) == 0.0


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    path.write_text('{"step": 0}\n{"ste', encoding="utf-8")
    assert read_truth(path) == [{"step": 0}]


@pytest.mark.parametrize(
    "wrong",
    [
        {"is_as_expected": False},
        {"offs": {SMI: (100.0, 24.0)}},
        {"offs": {"allocated (MiB)": (1.0, 0.5)}},
        {"offs": {"allocations": (1.0, 0.0)}},
        {"offs": {"allocations": (None, 0.0)}},  # torch's figures are always to be had
    ],
)
def test_anything_off_is_wrong(wrong: dict[str, object]) -> None:
    assert RIGHT.is_right
    assert replace(RIGHT, offs={SMI: (None, 24.0)}).is_right  # nvidia-smi may list nobody
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
