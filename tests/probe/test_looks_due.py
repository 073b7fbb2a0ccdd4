"""A look beside the names that is due begins with a walk of its own, whatever walks have taken."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memdiag.probe import holder_sampler
from memdiag.probe.holder_sampler import HolderSampler
from memdiag.probe.session import Session

if TYPE_CHECKING:
    import pytest


class _Sampler:
    """A sampler that may not walk any more, in a process whose memory is given."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.malloc = 1 << 20
        session = Session(str(directory))
        monkeypatch.setattr(session.schedule, "in_use_now", lambda: (self.malloc, 1000, -1))
        monkeypatch.setattr(holder_sampler, "_CHECK_S", 0.0)
        self.one = HolderSampler(session)
        self.tried: Any = self.one
        self.one.tick()
        self.tried._spacing._due_s = 0.0
        for _ in range(3):
            self.one.walk_now(lambda *_: None)
        self.tried._spacing._due_s = inf
        self.tried._look_due_s = 0.0

    @property
    def looks(self) -> int:
        looks: int = self.tried._unnamed.looks
        return looks


def test_growth_without_a_name_is_looked_for_when_it_is_due(program, tmp_path, monkeypatch) -> None:
    sampler = _Sampler(tmp_path, monkeypatch)
    sampler.one.tick()
    assert sampler.looks == 0  # nothing has grown
    sampler.malloc += 64 << 20
    sampler.one.tick()
    assert sampler.looks == 1


def test_looks_that_take_long_come_later(program, tmp_path, monkeypatch) -> None:
    sampler = _Sampler(tmp_path, monkeypatch)
    sampler.malloc += 64 << 20
    monkeypatch.setattr(holder_sampler, "_SHARE_BESIDE", 0.01)
    sampler.tried._beside_s = 3.0
    sampler.one.tick()
    assert sampler.tried._look_due_s > 300
    assert sampler.tried._count_due_s > 300


def test_one_recursion_error_does_not_end_the_walks(program, tmp_path, monkeypatch) -> None:
    sampler = _Sampler(tmp_path, monkeypatch)

    def fails(*_: Any) -> None:
        raise RecursionError

    sampler.malloc += 64 << 20
    with monkeypatch.context() as patched:
        patched.setattr(sampler.tried, "_walk", fails)
        sampler.one.tick()
    sampler.one.tick()
    assert sampler.looks == 0  # not at once
    now_s = holder_sampler.monotonic()
    monkeypatch.setattr("memdiag.probe.guard.monotonic", lambda: now_s + 5)
    sampler.one.tick()
    assert sampler.looks == 1
