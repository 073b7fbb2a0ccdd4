"""Keeps Python's garbage collector running when it would run without the probe.

The collector runs once the number of objects has grown by a threshold. Objects that the probe
creates for a look would bring that on, and free garbage that the program's own objects would have
left for later. So they are added to the threshold until the next collection.
"""

from __future__ import annotations

import gc

from .guard import never_raises

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Thresholds = tuple[int, int, int]

# More objects than a look creates.
_ROOM = 1_000_000


class CollectionCallback:
    """A function in `gc.callbacks`, as long as it is wanted.

    Python runs the handlers of signals that have come during a collection in the first function
    that it calls afterwards, and ignores what they raise in one of these. So another one, without
    code in Python, takes its place later. (An entry that is removed during a collection would have
    Python leave out the next one.)
    """

    def __init__(self, function: Callable[[str, dict[str, Any]], None]) -> None:
        self._function = function
        kept: dict[str, Any] = {}
        self._idle = kept.__setitem__

    def begin(self) -> None:
        """Have the function called from now on."""
        if self._function not in gc.callbacks:
            self._replace(self._idle, self._function)
            if self._function not in gc.callbacks:
                gc.callbacks.append(self._function)

    def end(self) -> None:
        """Have it called no more."""
        self._replace(self._function, self._idle)

    def remove(self) -> None:
        """Leave nothing behind."""
        for one in (self._function, self._idle):
            if one in gc.callbacks:
                gc.callbacks.remove(one)

    def _replace(self, before: Any, after: Any) -> None:
        if before in gc.callbacks:
            gc.callbacks[gc.callbacks.index(before)] = after


class OwnObjects:
    """What is created inside of `with` does not bring on a collection, then or later.

    It may not be nested. Thresholds that the program sets meanwhile stay as they are.
    """

    def __init__(self) -> None:
        self._programs: Thresholds = (0, 0, 0)
        self._set: Thresholds | None = None
        self._extra = self._count = 0
        self._callback = CollectionCallback(self._collected)
        # Inside of `with`: what is measured now has the probe's own objects in it.
        self.exist = False

    def __enter__(self) -> None:
        self.exist = True
        now = gc.get_threshold()
        if now != self._set:
            self._programs, self._extra = now, 0
        if self._programs[0] > 0 and gc.isenabled():
            self._count = gc.get_count()[0]
            self._raise_by(self._extra + _ROOM)

    def __exit__(self, *_: object) -> None:
        self.exist = False
        if self._set is None or gc.get_threshold() != self._set:
            return
        self._extra += max(0, gc.get_count()[0] - self._count)
        self._callback.begin()
        self._raise_by(self._extra)

    def remove(self) -> None:
        """Leave the collector as the program has set it."""
        self._restore()
        self._callback.remove()

    def _raise_by(self, extra: int) -> None:
        self._set = (self._programs[0] + extra, *self._programs[1:])
        gc.set_threshold(*self._set)

    @never_raises
    def _collected(self, phase: str, info: dict[str, Any]) -> None:
        """Python calls this before and after each collection, which begins to count anew."""
        if phase == "stop" and self._set is not None:
            self._callback.end()
            self._restore()

    def _restore(self) -> None:
        ours, self._set = self._set, None
        if ours is not None and gc.get_threshold() == ours:
            gc.set_threshold(*self._programs)
