"""Saving and stopping an Ignite training under memory pressure.

    from memdiag.integrations.ignite import MemdiagHandler
    MemdiagHandler(checkpoint, save_on="critical").attach(trainer)

`checkpoint` is what is called with the engine: an `ignite.handlers.Checkpoint`, or a function of
yours. Outside `memdiag run` nothing is saved or stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import memdiag
from memdiag.integrations.pressure import PressureFlags


class MemdiagHandler:
    """Reports iterations. Calls a function with the engine, and terminates it, at a level."""

    def __init__(
        self,
        save: Callable[[Any], object] | None = None,
        *,
        save_on: str | None = "critical",
        stop_on: str | None = None,
    ) -> None:
        """save_on, stop_on: "warn", "critical" or "leak"; None for never."""
        self._save = save
        self._flags = PressureFlags(save_on if save is not None else None, stop_on)

    def attach(self, engine: Any) -> None:
        """Run after each iteration of this engine."""
        events = import_module("ignite.engine").Events
        engine.add_event_handler(events.ITERATION_COMPLETED, self)

    def __call__(self, engine: Any) -> None:
        """An iteration has ended."""
        memdiag.step(engine.state.iteration)
        save, stop = self._flags.take()
        if save and self._save is not None:
            self._save(engine)
        if stop:
            engine.terminate()
