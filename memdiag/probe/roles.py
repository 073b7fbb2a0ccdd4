"""What a process does in its job, where that can be told from inside."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Asking:
    """What multiprocessing keeps weakly: while this lives, it calls back."""


_asking: list[_Asking] = []


def when_child_of_multiprocessing(then: Callable[[str], None]) -> None:
    """In a process just forked: have `then` called with its role if multiprocessing made it.

    multiprocessing calls back once the child knows its name; in a child of a bare `os.fork` nothing
    happens. No more is left in its registry than there was: children of children inherit it.
    """
    util = sys.modules.get("multiprocessing.util")
    _asking.clear()  # of the parent, which was a child itself
    if util is None:
        return
    asking = _Asking()
    _asking.append(asking)

    def call(_: object) -> None:
        _asking.clear()
        then(multiprocessing_role())

    util.register_after_fork(asking, call)


def multiprocessing_role() -> str:
    """ "DataLoader worker 3", "Process-2", or "" in a process that multiprocessing did not make."""
    module = sys.modules.get("multiprocessing.process")
    if module is None or module.parent_process() is None:
        return ""
    process = module.current_process()
    target = getattr(process, "_target", None)
    if getattr(target, "__name__", "") == "_worker_loop":
        return f"DataLoader worker {_argument(process, target, 'worker_id')}"
    return str(process.name)


def at_end_of_worker(then: Callable[[], None]) -> None:
    """In a child of multiprocessing: have `then` called when its work has ended, also by an error,
    which is then being handled. Such a process takes no leave of the interpreter."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, then, exitpriority=0)


def _argument(process: Any, target: Any, name: str) -> Any:
    """The argument `name` that the process's function is to be called with."""
    if name in process._kwargs:
        return process._kwargs[name]
    return process._args[target.__code__.co_varnames.index(name)]
