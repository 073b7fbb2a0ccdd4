"""What of a process is the program's own: source files, classes, generators, running functions."""

from __future__ import annotations

import os
import sys
import types

from .installed import STANDARD_LIBRARY, package_folder
from .plain_access import module_file, module_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GENERATORS = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_FRAME_NAMES = ("gi_frame", "cr_frame", "ag_frame")
_MOST_FILES = 10_000


def is_users(file: str) -> bool:
    """Return True if a source file is neither of the standard library, nor of a package."""
    known = _is_users.get(file)
    if known is None:
        path = file if file[:1] == "<" else os.path.abspath(file)  # noqa: PTH100
        known = not path.startswith((*STANDARD_LIBRARY, "<")) and not package_folder(path)
        if len(_is_users) < _MOST_FILES:
            _is_users[file] = known
    return known


_is_users: dict[str, bool] = {}


def is_users_class(kind: type) -> bool:
    """Return True if a class is defined in a file of the program."""
    file = module_file(sys.modules.get(module_name(kind)))
    return bool(file) and is_users(file)


def generator_frame(generator: Any) -> Any:
    """The frame of a generator or coroutine that has not ended, None of other objects."""
    for base, name in zip(GENERATORS, _FRAME_NAMES):
        if type(generator) is base:
            return getattr(generator, name)
    return None


def running_frames() -> list[Any]:
    """The frames of all threads, the outermost of each first, without the probe's."""
    found = []
    frame: Any
    for frame in list(sys._current_frames().values()):
        stack = []
        at = frame
        while at is not None:
            if at.f_globals.get("__package__") != __package__:
                stack.append(at)
            at = at.f_back
        found += stack[::-1]
    # One of them is the frame of this function. It would refer to itself, and so keep the walk and
    # all that it has found until the next collection.
    del frame, at
    return found
