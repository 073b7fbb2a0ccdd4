"""Functions that run inside a context manager from their first statement to their last."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def inside(manager: AbstractContextManager[Any], function: Callable[P, R]) -> Callable[P, R]:
    """`function`, run inside `manager`, which must be reusable.

    A coroutine or generator is inside it while it runs, not while it is created.
    """
    call: Any = function

    @functools.wraps(function)
    def plain(*args: P.args, **kwargs: P.kwargs) -> Any:
        with manager:
            return call(*args, **kwargs)

    @functools.wraps(function)
    def generator(*args: P.args, **kwargs: P.kwargs) -> Generator[Any, Any, Any]:
        with manager:
            return (yield from call(*args, **kwargs))

    @functools.wraps(function)
    async def coroutine(*args: P.args, **kwargs: P.kwargs) -> Any:
        with manager:
            return await call(*args, **kwargs)

    @functools.wraps(function)
    async def stream(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Any]:
        with manager:
            async for item in call(*args, **kwargs):
                yield item

    if inspect.isasyncgenfunction(function):
        return stream  # type: ignore[return-value]
    if inspect.iscoroutinefunction(function):
        return coroutine  # type: ignore[return-value]
    return generator if inspect.isgeneratorfunction(function) else plain  # type: ignore[return-value]
