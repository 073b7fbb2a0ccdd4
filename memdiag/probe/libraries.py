"""Libraries that tell of iterations: tqdm's bars, scikit-learn's fits, gymnasium's episodes.

Each is a loop like those that `loop_events` finds, and competes with them. What a wrapper is around
gets the very same arguments, and returns and raises what it does.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from functools import wraps
from time import monotonic

from .loops import BAR, LIBRARY, Loop, is_package, is_standard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType
    from typing import Any

    from .loop_steps import LoopSteps

_MOST = 256
_DEEPEST = 64
_TQDM = f"{os.sep}tqdm{os.sep}"


class Libraries:
    """The hooks in one process's libraries."""

    def __init__(self, steps: LoopSteps) -> None:
        self._steps = steps
        self._loops: dict[tuple[int, int, int], Loop] = {}
        self._undo: list[Callable[[], None]] = []

    def remove(self) -> None:
        """Leave the libraries as they were; what somebody has wrapped since stays."""
        for undo in self._undo:
            try:
                undo()
            except Exception:
                continue

    def hook_tqdm(self, _: Any) -> None:
        """Count what bars hand out, and calls of `update`. Raises if there is no place for it."""
        bar: Any = vars(sys.modules["tqdm.std"])["tqdm"]
        iterate = bar.__iter__

        @wraps(iterate)
        def __iter__(self: Any) -> Iterator[Any]:  # noqa: N807
            try:
                # `map` is no frame: tracebacks of the program stay its own.
                handed_out: Iterator[Any] = map(count_of(self), iterate(self))
            except Exception:
                handed_out = iterate(self)
            return handed_out

        count_of = self._count_of
        own = iterate.__code__
        bar.__iter__ = __iter__
        self._undo.append(lambda: _put_back(bar, "__iter__", __iter__, iterate))
        self._before(bar, "update", lambda *call: self._updated(own, *call))

    def hook_sklearn(self, _: Any) -> None:
        """Count the fits that have ended. Raises if there is no place for it.

        `_fit_context`, which is around every `fit`, enters this context: no frame of ours is.
        """
        base: Any = sys.modules["sklearn.base"]
        if not hasattr(base, "_fit_context"):
            raise AttributeError
        enter, ended = base.config_context, self._fitted
        depths: dict[int, int] = {}

        @wraps(enter)
        def config_context(*args: Any, **kwargs: Any) -> Any:
            try:
                return _Fit(enter(*args, **kwargs), depths, ended)
            except Exception:
                return enter(*args, **kwargs)

        base.config_context = config_context
        self._undo.append(lambda: _put_back(base, "config_context", config_context, enter))

    def hook_gymnasium(self, gymnasium: Any) -> None:
        """Count episodes: single steps are far too short. Raises if there is no place for it."""
        self._before(gymnasium.wrappers.OrderEnforcing, "reset", self._reset)

    # -- what the hooks call -------------------------------------------------------------------

    def _count_of(self, bar: Any) -> Callable[[Any], Any]:
        """What passes on each thing that a bar hands out, in the frame that asks for it."""
        known: list[Loop] = []
        loop_of = self._of_bar

        def count(thing: Any) -> Any:
            try:
                if not known:
                    known.append(loop_of(bar, sys._getframe(1)))
                loop = known[0]
            except Exception:
                return thing
            loop.count(monotonic())
            return thing

        return count

    def _updated(self, own: CodeType, bar: Any, frame: FrameType) -> None:
        if frame.f_code is own:
            return  # iterated over, which is counted already
        loop = self._of_bar(bar, frame)
        if loop.thread == get_ident():
            loop.count(monotonic())

    def _of_bar(self, bar: Any, frame: FrameType | None) -> Loop:
        while frame is not None and _TQDM in frame.f_code.co_filename:
            frame = frame.f_back
        depth = abs(getattr(bar, "pos", 0) or 0)
        loop = self._loop(frame, depth, "iterations of the loop", BAR)
        total = getattr(bar, "total", None)
        loop.total = total if type(total) is int else 0
        return loop

    def _fitted(self, depth: int) -> None:
        loop = self._loop(_of_the_program(sys._getframe(2)), depth, "fits by scikit-learn", LIBRARY)
        if loop.thread == get_ident():
            loop.count(monotonic())

    def _reset(self, _: Any, frame: FrameType) -> None:
        loop = self._loop(_of_the_program(frame), 0, "episodes of gymnasium", LIBRARY)
        if loop.thread == get_ident():
            loop.count(monotonic())

    def _loop(self, frame: FrameType | None, depth: int, what: str, owner: int) -> Loop:
        if frame is None or len(self._loops) >= _MOST:
            raise LookupError
        code, at = frame.f_code, frame.f_lasti
        key = id(code), at, depth
        loop = self._loops.get(key)
        if loop is None or loop.code is not code:
            is_own = not is_package(code) and not is_standard(code)
            loop = Loop(code, at, depth, get_ident(), owner if is_own else LIBRARY)
            loop.what = what
            self._loops[key] = loop
            self._steps.add(loop)
        return loop

    def _before(self, owner: Any, name: str, tell: Callable[[Any, FrameType], None]) -> None:
        original = getattr(owner, name)

        @wraps(original)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:  # noqa: SIM105
                tell(self, sys._getframe(1))
            except Exception:
                pass
            return original(self, *args, **kwargs)

        setattr(owner, name, wrapper)
        self._undo.append(lambda: _put_back(owner, name, wrapper, original))


class _Fit:
    """The context of one fit, which says how deep inside of other fits it was."""

    __slots__ = ("_context", "_depths", "_ended")

    def __init__(self, context: Any, depths: dict[int, int], ended: Callable[[int], None]) -> None:
        self._context, self._depths, self._ended = context, depths, ended

    def __enter__(self) -> Any:
        try:
            thread = get_ident()
            self._depths[thread] = self._depths.get(thread, 0) + 1
        except Exception:
            return self._context.__enter__()
        return self._context.__enter__()

    def __exit__(self, *error: Any) -> Any:
        try:
            thread = get_ident()
            depth = self._depths.pop(thread, 1) - 1
            if depth > 0:
                self._depths[thread] = depth
            self._ended(depth)
        except Exception:
            return self._context.__exit__(*error)
        return self._context.__exit__(*error)


def _of_the_program(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is neither a package's nor the standard library's."""
    for _ in range(_DEEPEST):
        if frame is None or not (is_package(frame.f_code) or is_standard(frame.f_code)):
            break
        frame = frame.f_back
    return frame


def _put_back(owner: Any, name: str, ours: Any, original: Any) -> None:
    if getattr(owner, name) is ours:
        setattr(owner, name, original)
