"""Wraps functions of a framework, and unwraps them again."""

from __future__ import annotations

from functools import wraps

from .guard import never_raises, ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def nothing(*_: Any) -> None:
    """Do nothing before or after a call."""


def let_compile(function: Any) -> None:
    """Let torch.compile trace a function of ours: one it may not trace splits the graph."""
    function.__code__ = function.__code__.replace(co_filename=f"<{function.__module__}>")


def put_back(owner: Any, name: str, ours: Any, original: Any) -> None:
    """Restore `owner.name`, unless somebody else has replaced it since."""
    if getattr(owner, name) is ours:
        setattr(owner, name, original)


def wrap(
    owner: Any,
    name: str,
    *,
    before: Callable[[tuple[Any, ...], dict[str, Any]], Any] = nothing,
    after: Callable[[Any, tuple[Any, ...]], None] = nothing,
    also_on_error: bool = False,
) -> Callable[[], None]:
    """Call `before(args, kwargs)` and `after(its result, args)` around `owner.name`.

    Returns a function that undoes it. `after` is not called if `before` has failed.
    """
    original = getattr(owner, name)

    @wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            token = before(args, kwargs)
        except ours(Exception):
            return original(*args, **kwargs)
        done = False
        try:
            result = original(*args, **kwargs)
            done = True
            return result
        finally:
            if done or also_on_error:
                try:
                    after(token, args)
                except ours(Exception):
                    done = False

    setattr(owner, name, wrapper)
    return lambda: put_back(owner, name, wrapper, original)


def undo_all(undo: list[Callable[[], None]]) -> None:
    """Call each function, whatever the others raise."""
    for one in undo:
        never_raises(one)()
