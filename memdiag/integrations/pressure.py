"""Saving and stopping under memory pressure: what the callbacks for trainers share."""

from __future__ import annotations

import sys
from typing import Any

import memdiag


class PressureFlags:
    """Whether a training is to be saved, or stopped, because memory has reached a level.

    In a distributed job all processes get the same answer, at the same step: the first one that
    memory has reached decides. That takes one `all_reduce` of two numbers per call.
    """

    def __init__(self, save_on: str | None, stop_on: str | None) -> None:
        """save_on, stop_on: "warn", "critical" or "leak"; None for never. Raises ValueError."""
        self._flags = [False, False]
        self._is_used = False
        for at, level in enumerate((save_on, stop_on)):
            if level is not None:
                self._is_used = True
                memdiag.on_pressure(level)(lambda at=at: self._set(at))

    def take(self) -> tuple[bool, bool]:
        """Return if the training is to be saved, and if it is to stop, once for each crossing.

        Call it after each step, in all processes of the job.
        """
        if not self._is_used:
            return False, False
        found, self._flags = self._flags, [False, False]
        save, stop = _of_any_process(found)
        return save, stop

    def _set(self, at: int) -> None:
        self._flags[at] = True


def _of_any_process(flags: list[bool]) -> list[bool]:
    """Each flag as it is set in any process of a job of torch's."""
    torch: Any = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return flags
    if distributed.get_world_size() < 2:
        return flags
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    found = torch.tensor([int(flag) for flag in flags], device=device)
    distributed.all_reduce(found, op=distributed.ReduceOp.MAX)
    return [bool(flag) for flag in found.tolist()]
