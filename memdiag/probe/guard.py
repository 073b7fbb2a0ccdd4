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
