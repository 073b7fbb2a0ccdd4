"""Calls the functions that the program has given to `memdiag.on_pressure`, at a step.

memdiag leaves a file beside the ring when memory reaches a level. The thread of the heartbeat looks
for it and has the next step measured; the functions run after that step, in the main thread.
"""

from __future__ import annotations

import sys
from time import monotonic

from .guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from .session import Session

# Time between two looks, which take 2 us. Heuristic.
LOOK_S = 0.05
_TAGS, _CALLS = "memdiag.tags", "pressure_calls"


def registered() -> list[tuple[str, Callable[[], object]]]:
    """The levels and functions that the program has given so far: the list itself."""
    calls: list[tuple[str, Callable[[], object]]] = getattr(sys.modules.get(_TAGS), _CALLS, [])
    return calls


class PressureCalls:
    """The calls in one process. No method raises an `Exception`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: list[str] = []
        self._is_calling = False

    def look(self) -> None:
        """Look for levels that were reached. Called by the heartbeat, and at measured steps."""
        try:
            for level in {level for level, _ in registered()}:
                if self._session.take_pressure(level):
                    self._waiting.append(level)
            if self._waiting:
                self._session.measure_next()
        except ours(Exception):
            return

    def tick(self) -> None:
        """Call what is due. Called after a step, in its thread.

        What is not an `Exception` (SystemExit) ends the program, as from anywhere else in it.
        """
        if self._is_calling or not self._session.is_in_main_thread():
            return
        self.look()
        self._is_calling = True
        try:
            while self._waiting:
                level = self._waiting.pop(0)
                for one, function in list(registered()):
                    if one == level:
                        self._call(level, function)
        finally:
            self._is_calling = False

    def after_fork_in_child(self) -> None:
        """A forked child has files of its own."""
        self._waiting = []
        self._is_calling = False

    def _call(self, level: str, function: Callable[[], object]) -> None:
        name, began_s = getattr(function, "__qualname__", type(function).__name__), monotonic()
        result = "was called"
        try:
            function()
        except ours(Exception) as error:
            result = f"failed ({type(error).__name__})"
            _log(level, name)
        except BaseException as error:
            result = f"ended the program ({type(error).__name__})"
            raise
        finally:
            took_s = monotonic() - began_s
            step = self._session.step_now()
            at = f" at step {step}" if step >= 0 else ""
            self._session.note(f"on_pressure({level!r}): {name:.60} {result}{at}, {took_s:.2f} s")


def _log(level: str, name: str) -> None:
    """Log the exception that is being handled, as the program logs."""
    try:
        import logging

        logger = logging.getLogger("memdiag")
        logger.exception("on_pressure(%r): %s failed; the training continues", level, name)
    except ours(Exception):
        return
