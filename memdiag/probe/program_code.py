"""What of a process is the program's own: source files, classes, generators, running functions."""

from __future__ import annotations

import gc
import importlib.machinery
import opcode
import os
import sys
import types
import weakref

from .installed import STANDARD_LIBRARY, package_folder
from .plain_access import module_attributes, module_file, module_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GENERATORS = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_FRAME_NAMES = ("gi_frame", "cr_frame", "ag_frame")
_MOST_FILES = 10_000
# Tasks of asyncio, and coroutines of one that wait for each other. Heuristic.
_MOST_TASKS, _MOST_AWAITS = 100, 20
# The instruction at which a suspended frame continues, its arguments after `yield from` and
# `await`, and its distance from the last instruction.
_SUSPENDED = opcode.opmap.get("RESUME", opcode.opmap.get("YIELD_FROM"))
_HOW = (2, 3) if "RESUME" in opcode.opmap else ()
_BEHIND = 0 if sys.version_info >= (3, 13) else 2
# Weak sets of asyncio's tasks: up to Python 3.11, and from 3.12 to 3.13.
_ALL_TASKS = ("_all_tasks", "_scheduled_tasks")
# Packages of memdiag's code: the probe's in the program, and both where a process measures itself.
_OURS = frozenset((__name__.partition(".")[0], "_memdiag_probe", "memdiag"))
# Packages of interactive shells. Their objects lead to all that a shell has, and some are names in
# its `__main__`; what a person typed there has names of its own.
_SHELLS = frozenset(("IPython", "ipykernel"))


def is_ours(module: str) -> bool:
    """Return True for the name of a module of memdiag's."""
    return module.partition(".")[0] in _OURS


def is_shells(module: str) -> bool:
    """Return True for the name of a module of an interactive shell."""
    return module.partition(".")[0] in _SHELLS


def is_users(file: str) -> bool:
    """Return True if a source file is neither of the standard library, nor of a package; or of the
    package that is run.
    """
    return _is_outside(file) or file.startswith(tuple(_run))


def _is_outside(file: str) -> bool:
    known = _outside.get(file)
    if known is None:
        path = file if file[:1] == "<" else os.path.abspath(file)  # noqa: PTH100
        known = not path.startswith((*STANDARD_LIBRARY, "<")) and not package_folder(path)
        if len(_outside) < _MOST_FILES:
            _outside[file] = known
    return known


_outside: dict[str, bool] = {}
_run: list[str] = []  # the folder of the package that is run


def find_package_run() -> None:
    """Let the installed package that is run count as the program, by `python -m package.train` or
    by a console script, unless the process has other modules that no package has: a test runner or
    a server runs those.
    """
    main = sys.modules.get("__main__")
    folder = _package_run(main)
    others = sys.modules.items() if folder else ()
    has_others = any(
        _is_outside(module_file(module) or "<")
        for name, module in list(others)
        if module is not main and type(module) is types.ModuleType and not is_ours(str(name))
    )
    _run[:] = [folder] if folder and not has_others else []


def _package_run(main: Any) -> str:
    """The folder of the installed package of which `__main__` is, or that it calls, or the file of
    `__main__`; "" if it is not in a package.
    """
    file = module_file(main)
    folder = package_folder(file)
    if not folder:
        return _package_called(file)
    spec = module_attributes(main).get("__spec__")
    if type(spec) is not importlib.machinery.ModuleSpec:  # run by its path
        return os.path.dirname(file) + os.sep  # noqa: PTH120
    package, dot, _ = spec.name.partition(".")
    if is_shells(package):
        return ""
    return f"{folder}{package}{os.sep}" if dot else file


def _package_called(file: str) -> str:
    """The folder of the package that a console script calls, as installers write these: `sys.exit(
    main())`, without functions of its own; "" for other scripts.
    """
    if os.path.basename(os.path.dirname(file)) != "bin" or file.endswith(".py"):  # noqa: PTH119, PTH120
        return ""
    for frame in running_frames():
        code = frame.f_code
        is_script = code.co_filename == file and "exit" in code.co_names
        if is_script and not any(type(one) is types.CodeType for one in code.co_consts):
            name: str
            for name in code.co_names:
                folder = package_folder(module_file(sys.modules.get(name)))
                if folder and not (is_ours(name) or is_shells(name)):
                    return folder + name.partition(".")[0] + os.sep
    return ""


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


def delegate(generator: Any) -> Any:
    """The generator of the program that a generator delegates to by `yield from`, None without."""
    inner = _awaited(generator) if type(generator) is types.GeneratorType else None
    frame = generator_frame(inner) if type(inner) is types.GeneratorType else None
    return inner if frame is not None and is_users(frame.f_code.co_filename) else None


def running_frames() -> list[Any]:
    """The frames of all threads, the outermost of each first, without the probe's and a shell's."""
    found = []
    frame: Any
    for frame in list(sys._current_frames().values()):
        stack = []
        at = frame
        while at is not None:
            package = at.f_globals.get("__package__")
            if package != __package__ and not (type(package) is str and is_shells(package)):
                stack.append(at)
            at = at.f_back
        found += stack[::-1]
    # One of them is the frame of this function. It would refer to itself, and so keep the walk and
    # all that it has found until the next collection.
    del frame, at
    return found


def awaiting_frames() -> list[Any]:
    """The frames of the program in the coroutines of asyncio's tasks that wait for something: they
    run again, with the same local variables. Up to Python 3.13.
    """
    found = []
    for task in _tasks()[:_MOST_TASKS]:
        at = next((one for one in gc.get_referents(task) if type(one) in GENERATORS), None)
        for _ in range(_MOST_AWAITS):
            if type(at) not in GENERATORS:
                break
            frame = generator_frame(at)
            if frame is not None and frame.f_back is None and is_users(frame.f_code.co_filename):
                found.append(frame)
            at = _awaited(at)
    return found


def _awaited(generator: Any) -> Any:
    """What a generator or coroutine that is suspended delegates to, None without.

    `gi_yieldfrom` and `cr_await` of one that is running, here or in another thread, can end the
    process up to CPython 3.12: it takes what stands behind an instruction for one, and reads below
    the stack. The collector knows of frames that run: the last object that it sees of a frame is on
    top of the stack, and behind it comes the exception that was handled last, or None.
    """
    frame = generator_frame(generator)
    if frame is None or not _delegates(frame):
        return None
    seen = gc.get_referents(generator if sys.version_info >= (3, 11) else frame)
    return next((one for one in seen[:-3:-1] if not _is_exception(type(one))), None)


def _is_exception(kind: type) -> bool:
    return kind is type(None) or issubclass(kind, BaseException)


def _delegates(frame: Any) -> bool:
    """Return True if a frame that is not running is suspended at `yield from` or `await`."""
    code, at = frame.f_code.co_code, frame.f_lasti + _BEHIND
    if not 0 < at < len(code) - 1:
        return False
    return bool(code[at] == _SUSPENDED and (not _HOW or code[at + 1] & 3 in _HOW))


def _tasks() -> list[Any]:
    module = sys.modules.get("asyncio.tasks")
    if type(module) is not types.ModuleType:
        return []
    found = []
    for name in _ALL_TASKS:
        group = module_attributes(module).get(name)
        if type(group) is weakref.WeakSet:
            data = vars(group).get("data")
            found += [one() for one in list(data)] if type(data) is set else []
    return [one for one in found if one is not None]
