"""Iterations that libraries report: tqdm's bars, scikit-learn's fits, gymnasium's episodes.

Each is a loop like those that `loop_events` finds, and one of them is selected. Wrapped functions
get the same arguments, return the same values and raise the same exceptions.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from functools import wraps
from time import monotonic

from .guard import ours
from .loops import BAR, LIBRARY, Loop, is_package, is_standard_library
from .wrap import put_back, undo_all, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType
    from typing import Any

    from .loop_steps import LoopSteps

# Limits of the loops, and of the frames searched for the program's. Heuristic.
_MAX_LOOPS = 256
_MAX_DEPTH = 64
_TQDM = f"{os.sep}tqdm{os.sep}"


class Libraries:
    """Hooks in the libraries of one process."""

    def __init__(self, steps: LoopSteps) -> None:
        self._steps = steps
        self._loops: dict[tuple[int, int, int], Loop] = {}
        self._undo: list[Callable[[], None]] = []

    def remove(self) -> None:
        """Restore the libraries. Methods that somebody has wrapped since stay, without effect."""
        undo_all(self._undo)

    def hook_tqdm(self, _: Any) -> None:
        """Count items of bars, and calls of `update`. Raises if tqdm does not support it."""
        bar: Any = vars(sys.modules["tqdm.std"])["tqdm"]
        iterate = bar.__iter__

        @wraps(iterate)
        def __iter__(self: Any) -> Iterator[Any]:  # noqa: N807
            try:
                # `map` adds no frame to tracebacks of the program.
                items: Iterator[Any] = map(counter(self), iterate(self))
            except ours(Exception):
                items = iterate(self)
            return items

        counter = self._counter
        iterate_code = iterate.__code__
        bar.__iter__ = __iter__
        self._undo.append(lambda: put_back(bar, "__iter__", __iter__, iterate))
        self._before(bar, "update", lambda *call: self._bar_updated(iterate_code, *call))

    def hook_sklearn(self, _: Any) -> None:
        """Count the fits that have ended. Raises if scikit-learn does not support it.

        `_fit_context` wraps every `fit` and enters this context, which adds no frame to tracebacks.
        """
        base: Any = sys.modules["sklearn.base"]
        if not hasattr(base, "_fit_context"):
            raise AttributeError
        enter, ended = base.config_context, self._fit_ended
        depths: dict[int, int] = {}

        @wraps(enter)
        def config_context(*args: Any, **kwargs: Any) -> Any:
            try:
                return _Fit(enter(*args, **kwargs), depths, ended)
            except ours(Exception):
                return enter(*args, **kwargs)

        base.config_context = config_context
        self._undo.append(lambda: put_back(base, "config_context", config_context, enter))

    def hook_gymnasium(self, gymnasium: Any) -> None:
        """Count episodes: steps are too short. Raises if gymnasium does not support it."""
        self._before(gymnasium.wrappers.OrderEnforcing, "reset", self._reset)

    # -- called by the hooks -------------------------------------------------------------------

    def _counter(self, bar: Any) -> Callable[[Any], Any]:
        """Return a function that counts and returns an item, called in the consumer's frame."""
        known: list[Loop] = []
        loop_of = self._loop_of_bar

        def count(item: Any) -> Any:
            try:
                if not known:
                    known.append(loop_of(bar, sys._getframe(1)))
                loop = known[0]
            except ours(Exception):
                return item
            loop.count(monotonic())
            return item

        return count

    def _bar_updated(self, iterate_code: CodeType, bar: Any, frame: FrameType) -> None:
        if frame.f_code is iterate_code:
            return  # the items are counted already
        loop = self._loop_of_bar(bar, frame)
        if loop.thread == get_ident():
            loop.count(monotonic())

    def _loop_of_bar(self, bar: Any, frame: FrameType | None) -> Loop:
        while frame is not None and _TQDM in frame.f_code.co_filename:
            frame = frame.f_back
        depth = abs(getattr(bar, "pos", 0) or 0)
        loop = self._loop(frame, depth, "iterations of the loop", BAR)
        total = getattr(bar, "total", None)
        loop.total = total if type(total) is int else 0
        return loop

    def _fit_ended(self, depth: int) -> None:
        loop = self._loop(_program_frame(sys._getframe(2)), depth, "fits by scikit-learn", LIBRARY)
        if loop.thread == get_ident():
            loop.count(monotonic())

    def _reset(self, _: Any, frame: FrameType) -> None:
        loop = self._loop(_program_frame(frame), 0, "episodes of gymnasium", LIBRARY)
        if loop.thread == get_ident():
            loop.count(monotonic())

    def _loop(self, frame: FrameType | None, depth: int, what: str, owner: int) -> Loop:
        if frame is None or len(self._loops) >= _MAX_LOOPS:
            raise LookupError
        code, at = frame.f_code, frame.f_lasti
        key = id(code), at, depth
        loop = self._loops.get(key)
        if loop is None or loop.code is not code:
            is_own = not is_package(code) and not is_standard_library(code)
            loop = Loop(code, at, depth, get_ident(), owner if is_own else LIBRARY)
            loop.what = what
            self._loops[key] = loop
            self._steps.add(loop)
        return loop

    def _before(self, owner: Any, name: str, count: Callable[[Any, FrameType], None]) -> None:
        """Call `count` with the instance and the caller's frame before each call of a method."""

        def before(args: tuple[Any, ...], _: dict[str, Any]) -> None:
            count(args[0], sys._getframe(2))  # this function, the wrapper, its caller

        self._undo.append(wrap(owner, name, before=before))


class _Fit:
    """The context of one fit, which knows how deep within other fits it is."""

    __slots__ = ("_context", "_depths", "_ended")

    def __init__(self, context: Any, depths: dict[int, int], ended: Callable[[int], None]) -> None:
        self._context, self._depths, self._ended = context, depths, ended

    def __enter__(self) -> Any:
        try:
            thread = get_ident()
            self._depths[thread] = self._depths.get(thread, 0) + 1
        except ours(Exception):
            return self._context.__enter__()
        return self._context.__enter__()

    def __exit__(self, *error: Any) -> Any:
        try:
            thread = get_ident()
            depth = self._depths.pop(thread, 1) - 1
            if depth > 0:
                self._depths[thread] = depth
            self._ended(depth)
        except ours(Exception):
            return self._context.__exit__(*error)
        return self._context.__exit__(*error)


def _program_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of neither a package nor the standard library."""
    for _ in range(_MAX_DEPTH):
        if frame is None or not (is_package(frame.f_code) or is_standard_library(frame.f_code)):
            break
        frame = frame.f_back
    return frame
