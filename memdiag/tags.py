"""The public tags: `step`, `phase`, `counter`.

They speak to the probe that `memdiag run` has put into the process, and do nothing where there
is none. None of them ever raises for what it is given: a step that is no whole number, or a
counter that is no finite number, is ignored (and memdiag says so in its report).
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

_PROBE = "_memdiag_probe"  # the name under which the in-target part is loaded


def _listener() -> "Any":
    return getattr(sys.modules.get(_PROBE), "listener", None)


def step(n: int) -> None:
    """Say that step `n` has finished: an optimizer step, an iteration, a batch."""
    listener = _listener()
    if listener is not None:
        listener.step(n)


def counter(name: str, value: float) -> None:
    """Record a number of your own beside the memory, such as the copies of a model in use."""
    listener = _listener()
    if listener is not None:
        listener.counter(name, value)


class phase:  # noqa: N801 (reads as a keyword: `with memdiag.phase("eval"):`)
    """Say that the body of a `with`, or a decorated function, is phase `name`. Phases nest."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        listener = _listener()
        if listener is not None:
            listener.phase_begin(self._name)

    def __exit__(
        self,
        kind: "type[BaseException] | None",
        error: "BaseException | None",
        trace: "TracebackType | None",
    ) -> None:
        listener = _listener()
        if listener is not None:
            listener.phase_end(self._name)

    def __call__(self, function: "Callable[P, R]") -> "Callable[P, R]":
        from memdiag._span_decorator import inside

        return inside(self, function)
