"""A process's place in a distributed job, by its environment or by what it told torch."""

from __future__ import annotations

import sys
import types
from types import SimpleNamespace

import pytest

from memdiag.probe.multiprocessing_role import multiprocessing_role
from memdiag.probe.process_identity import ranks

UNKNOWN = (-1, -1, -1)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "PMI_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)


def _torch(monkeypatch: pytest.MonkeyPatch, *, begun: bool, rank: int = 1, world: int = 2) -> None:
    said = SimpleNamespace(
        is_initialized=lambda: begun, get_rank=lambda: rank, get_world_size=lambda: world
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", said)  # type: ignore[arg-type]


def test_nobody_says_a_rank() -> None:
    assert ranks() == UNKNOWN


def test_launchers_tell_it_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "3"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "8")):
        monkeypatch.setenv(name, value)
    assert ranks() == (3, 1, 8)


def test_spawned_processes_tell_it_to_torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    _torch(monkeypatch, begun=False)
    assert ranks() == UNKNOWN
    _torch(monkeypatch, begun=True)
    assert ranks() == (1, -1, 2)


def test_a_world_of_one_is_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    _torch(monkeypatch, begun=True, rank=0, world=1)
    assert ranks() == UNKNOWN


def test_torch_that_is_being_imported_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.distributed", SimpleNamespace())  # type: ignore[arg-type]
    assert ranks() == UNKNOWN


def test_a_module_that_another_thread_is_importing_gives_no_role(monkeypatch) -> None:
    half = types.ModuleType("multiprocessing.process")
    exec("def parent_process():\n    return _parent_process", vars(half))  # noqa: S102
    monkeypatch.setitem(sys.modules, "multiprocessing.process", half)
    assert multiprocessing_role() == ""
