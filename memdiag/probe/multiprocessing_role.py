"""The role of a process that multiprocessing has made."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Key:
    """Key of a callback in multiprocessing, which keeps it weakly: the callback lives as long."""


_registered: list[_Key] = []


def on_multiprocessing_child(then: Callable[[str], None]) -> None:
    """In a forked process: call `then` with its role if multiprocessing has made it.

    multiprocessing calls back once the child knows its name, and never in a child of `os.fork`.
    Nothing is left in its registry afterwards, which children of this child would inherit.
    """
    util = sys.modules.get("multiprocessing.util")
    _registered.clear()  # registered by the parent, which was a child itself
    if util is None:
        return
    key = _Key()
    _registered.append(key)

    def call(_: object) -> None:
        _registered.clear()
        then(multiprocessing_role())

    util.register_after_fork(key, call)


def multiprocessing_role() -> str:
    """The role ("DataLoader worker 3", "Process-2"), "" outside of multiprocessing."""
    # (Its functions raise while another thread is importing it.)
    module = sys.modules.get("multiprocessing.process")
    process = getattr(module, "_current_process", None)
    if process is None or getattr(module, "_parent_process", None) is None:
        return ""
    target = getattr(process, "_target", None)
    if getattr(target, "__name__", "") == "_worker_loop":
        return f"DataLoader worker {_argument(process, target, 'worker_id')}"
    return str(process.name)


def on_worker_exit(then: Callable[[], None]) -> None:
    """In a child of multiprocessing: call `then` when its work has ended.

    If it has failed, the exception is being handled then. Such a process skips `atexit`.
    """
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, then, exitpriority=0)


def _argument(process: Any, target: Any, name: str) -> Any:
    """The argument `name` of the process's function."""
    if name in process._kwargs:
        return process._kwargs[name]
    return process._args[target.__code__.co_varnames.index(name)]
