"""The public tags: `step`, `phase`, `counter`.

They report to the probe that `memdiag run` has injected into the process, and do nothing without
it. They never raise for the values they get: a step that is not a whole number, or a counter that
is not a finite number, is ignored, and memdiag notes it in the report.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

_PROBE = "_memdiag_probe"  # the name of the module of the probe in the target


def _listener() -> "Any":
    return getattr(sys.modules.get(_PROBE), "listener", None)


def step(n: int) -> None:
    """Report that step `n` has finished: an optimizer step, an iteration, a batch."""
    listener = _listener()
    if listener is not None:
        listener.step(n)


def counter(name: str, value: float) -> None:
    """Record your own number beside the memory, such as the number of model copies in use."""
    listener = _listener()
    if listener is not None:
        listener.counter(name, value)


class phase:  # noqa: N801 (reads as a keyword: `with memdiag.phase("eval"):`)
    """Mark the body of a `with`, or a decorated function, as phase `name`. Phases nest."""

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
