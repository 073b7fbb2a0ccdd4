"""Phases whose beginning and end are told in two calls, as callbacks do."""

from __future__ import annotations

import memdiag


class Spans:
    """The phases that are open. One that is open already does not begin again."""

    def __init__(self) -> None:
        self._open: dict[str, memdiag.phase] = {}

    def begin(self, name: str) -> None:
        """Phase `name` begins, inside those that are open."""
        if name not in self._open:
            self._open[name] = memdiag.phase(name)
            self._open[name].__enter__()

    def end(self, name: str) -> None:
        """Phase `name` ends, if it is open."""
        phase = self._open.pop(name, None)
        if phase is not None:
            phase.__exit__(None, None, None)
