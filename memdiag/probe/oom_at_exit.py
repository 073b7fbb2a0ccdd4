"""Finds out if the program ends because it is out of memory, from its last exception."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Iterator

DEVICE, HOST = 1.0, 2.0
# The length of a chain of exceptions (causes and contexts) that is searched.
_MOST = 8
# Frames of a deep recursion that are looked at.
_MOST_FRAMES = 100
# Types by name, because nothing is imported here, and texts of errors without a type of their own.
_DEVICE_TYPES = ("OutOfMemoryError", "ResourceExhaustedError")
_DEVICE_TEXTS = (
    "cuda out of memory",
    "hip out of memory",
    "xpu out of memory",
    "mps backend out of memory",
    "cuda_error_out_of_memory",
    "resource_exhausted",
)
_HOST_TEXTS = ("can't allocate memory", "not enough memory: you tried to allocate")


def out_of_memory() -> tuple[str, float] | None:
    """The text of the out-of-memory error that ends the program, and DEVICE or HOST.

    The exception is being handled (in a worker) or was the interpreter's last. None if there is
    none, or if it is a different error.
    """
    last = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    for error in _chain(sys.exc_info()[1] or last):
        # Not `str(error)`, which may run code of the program.
        text = BaseException.__str__(error)
        memory = _about(type(error).__name__, isinstance(error, MemoryError), text.lower())
        if memory is not None:
            is_text = any(isinstance(one, str) for one in error.args)
            words = " ".join(text.split()) if is_text else ""
            return words or type(error).__name__.lstrip("_"), memory
    return None


def failed_frames() -> list[FrameType]:
    """The frames of the functions that the last exception has ended, which still have their local
    variables. The innermost first.
    """
    last = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    found = []
    for error in _chain(sys.exc_info()[1] or last):
        at = error.__traceback__
        while at is not None:
            found.append(at.tb_frame)
            at = at.tb_next
    return found[: -_MOST_FRAMES - 1 : -1]


def _about(kind: str, is_memory_error: bool, text: str) -> float | None:
    if kind in _DEVICE_TYPES or any(words in text for words in _DEVICE_TEXTS):
        return DEVICE
    if is_memory_error or any(words in text for words in _HOST_TEXTS):
        return HOST
    return None


def _chain(error: object) -> Iterator[BaseException]:
    for _ in range(_MOST):
        if not isinstance(error, BaseException):
            return
        yield error
        error = error.__cause__ or error.__context__
