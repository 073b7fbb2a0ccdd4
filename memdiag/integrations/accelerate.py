"""Saving and stopping an Accelerate training under memory pressure.

    from memdiag.integrations.accelerate import MemdiagGuard
    guard = MemdiagGuard(accelerator, "emergency", save_on="critical")
    for batch in loader:
        ...
        if guard.step():
            break

Outside `memdiag run` it does nothing.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import memdiag
from memdiag.integrations.pressure import PressureFlags


class MemdiagGuard:
    """Saves the state of an Accelerator once memory reaches a level."""

    def __init__(
        self,
        accelerator: Any,
        directory: str | PathLike[str],
        *,
        save_on: str | None = "critical",
        stop_on: str | None = None,
    ) -> None:
        """directory: where `accelerator.save_state` writes. save_on, stop_on: "warn", "critical"
        or "leak"; None for never.
        """
        self._accelerator = accelerator
        self._directory = directory
        self._flags = PressureFlags(save_on, stop_on)
        self._steps = 0

    def step(self) -> bool:
        """An optimizer step has ended, in all processes. Return True if the training is to stop."""
        self._steps += 1
        memdiag.step(self._steps)
        save, stop = self._flags.take()
        if save:
            self._accelerator.save_state(str(self._directory))
        return stop
