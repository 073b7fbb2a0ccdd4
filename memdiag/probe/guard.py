"""Keeps exceptions of the probe out of the program."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])


def never_raises(function: F) -> F:
    """Make a function return None instead of raising an exception."""

    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            return None

    return guarded  # type: ignore[return-value]


def is_foreign(error: BaseException) -> bool:
    """Return True if an exception is not of the probe: a signal handler of the program has raised
    it meanwhile.
    """
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_globals.get("__package__") != __package__:
            return True
        at = at.tb_next
    return False
