"""Processes of a distributed job save and stop at the same step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memdiag import tags
from memdiag.integrations.pressure import PressureFlags

# Memory reaches the level in one of the two processes alone.
PROGRAM = """
import sys
import torch.distributed as dist
from memdiag import tags
from memdiag.integrations.pressure import PressureFlags
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
flags = PressureFlags("warn", "critical")
answers = [flags.take()]
if rank == 1:
    for level, function in tags.pressure_calls:
        if level == "warn":
            function()
answers += [flags.take(), flags.take()]
print(answers)
"""


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    registered: list[object] = []
    monkeypatch.setattr(tags, "pressure_calls", registered)
    return registered


def test_flags_are_set_once_for_each_crossing() -> None:
    flags = PressureFlags("warn", "critical")
    assert flags.take() == (False, False)
    reached = dict(tags.pressure_calls)
    reached["critical"]()
    assert flags.take() == (False, True)
    assert flags.take() == (False, False)
    reached["warn"]()
    reached["critical"]()
    assert flags.take() == (True, True)


def test_levels_that_are_not_wanted_register_nothing(calls: list[object]) -> None:
    assert PressureFlags(None, None).take() == (False, False)
    assert calls == []
    with pytest.raises(ValueError, match="level must be one of"):
        PressureFlags("crit", None)


@pytest.mark.torch
@pytest.mark.slow
def test_processes_of_a_job_decide_together(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    printed = [process.communicate(timeout=120)[0] for process in processes]
    assert printed == ["[(False, False), (True, False), (False, False)]\n"] * 2
