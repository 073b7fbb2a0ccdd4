"""Tensors in reference cycles: garbage while Python's collector is on, a leak without it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from terminals import MEMDIAG

PROGRAM = Path(__file__).resolve().parents[2] / "fixtures" / "programs" / "torch_cycles.py"
LONGEST_S = 200

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def recorded(where: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """The finding and the report."""
    pytest.importorskip("torch")
    command = [*MEMDIAG, "run", "-o", "r.csv", "--json-file", "r.json", "--"]
    command += [sys.executable, str(PROGRAM), *arguments]
    ended = subprocess.run(
        command, cwd=where, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    (found,) = json.loads((where / "r.json").read_text())["recordings"]
    return found, ended.stderr


def test_garbage_that_waits_for_the_collector_is_no_leak(tmp_path: Path) -> None:
    found, said = recorded(tmp_path)
    assert found["verdict"] != "leak", said
    assert found["cause"] is None
    assert "tensors accumulate" not in said


def test_without_a_collector_it_is_a_leak_of_cycles(tmp_path: Path) -> None:
    found, said = recorded(tmp_path, "--no-collector")
    assert found["verdict"] == "leak", said
    assert found["leaking"]["kind"] == "cycles"
    assert found["growth"]["growth_per_x"]["value"] == pytest.approx(128 * 1024 * 4, rel=0.1)
    assert "gc.enable()" in said
