"""What the callbacks for trainers have in common."""

from __future__ import annotations

from collections.abc import Callable

import memdiag


class TrainerCallback:
    """A callback that begins and ends phases.

    Not a subclass of a trainer's own class, so that nothing has to be imported for it: trainers
    call methods by name, and those that are not defined do nothing.
    """

    def __init__(self) -> None:
        self._open: dict[str, memdiag.phase] = {}

    def _begin(self, name: str) -> None:
        """Phase `name` begins inside those that are open, unless it is open itself."""
        if name not in self._open:
            self._open[name] = memdiag.phase(name)
            self._open[name].__enter__()

    def _end(self, name: str) -> None:
        """Phase `name` ends, if it is open."""
        phase = self._open.pop(name, None)
        if phase is not None:
            phase.__exit__(None, None, None)

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Events, of this and later versions, that memdiag does not use."""
        if name.startswith("on_"):
            return lambda *_, **__: None
        raise AttributeError(name)
