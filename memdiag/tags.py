"""The public tags: `step`, `phase`, `counter`, and `on_pressure`.

They report to the probe that `memdiag run` has injected into the process, and do nothing without
it. The tags never raise for the values they get: a step that is not a whole number, or a counter
that is not a finite number, is ignored, and memdiag notes it in the report.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar

    F = TypeVar("F", bound="Callable[[], object]")
    P = ParamSpec("P")
    R = TypeVar("R")

_PROBE = "_memdiag_probe"  # the name of the module of the probe in the target
_LEVELS = ("warn", "critical", "leak")

# Levels, and functions to call once memory has reached them. The probe reads it, also one that is
# attached later.
pressure_calls: "list[tuple[str, Callable[[], object]]]" = []


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


def on_pressure(level: str) -> "Callable[[F], F]":
    """Have the decorated function called, without arguments, once memory has reached this level.

    level: "warn" (`--warn-at`), "critical" (`--critical-at`) or "leak" (`--on leak=...`).
    It is called after the next step, in the main thread, once for each crossing. An exception is
    logged, and the training continues; SystemExit ends the program. Raises ValueError for another
    level, and TypeError if what is decorated cannot be called.
    """
    if level not in _LEVELS:
        raise ValueError("level must be one of " + ", ".join(_LEVELS) + f", not {level!r}")

    def register(function: "F") -> "F":
        if not callable(function):
            raise TypeError("on_pressure needs a function")
        pressure_calls.append((level, function))
        follow = getattr(_listener(), "follow_pressure", None)
        if follow is not None:
            follow()
        return function

    return register


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
