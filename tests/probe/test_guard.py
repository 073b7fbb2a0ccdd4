"""Exceptions of the probe stay in it; those of the program pass, whatever the probe is doing."""

from __future__ import annotations

import ast
import ctypes
import functools
import json
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interpreters import interpreters

import memdiag.probe
from memdiag.probe import guard
from memdiag.probe.guard import Attempts, is_foreign, never_raises

PROBE = Path(memdiag.probe.__file__).parent
# They are executed before there is a guard, where nothing can be raised in the program.
WITHOUT = ("enter_process.py", "hidden_loader.py", "guard.py", "inject/sitecustomize.py")
ALARMS = """
import gc, signal, sys, time
session = sys.modules["_memdiag_probe"].listener
class Alarm(Exception): pass
awaits, raised, caught = False, 0, 0
def handler(number, frame):
    global awaits, raised
    frame = frame.f_back  # (the argument is bound anew)
    if awaits:
        awaits, raised = False, raised + 1
        raise Alarm
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.0007)
"""


class Timeout(Exception):
    """What a program raises in a signal handler."""


class _Handlers:
    def method(self, _number: int, _frame: Any) -> None:
        raise Timeout

    def __call__(self, _number: int, _frame: Any) -> None:
        raise TimeoutError


def _function(_number: int, frame: Any) -> None:
    frame = frame.f_back
    raise OSError(frame)


def _any(*_: Any) -> None:
    _raises()


def _raises() -> None:
    raise Timeout


@pytest.mark.parametrize(
    "handler",
    [_function, _any, _Handlers().method, _Handlers(), functools.partial(_function)],
)
def test_what_a_signal_handler_raises_passes(handler: Callable[..., None]) -> None:
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises((Timeout, OSError)):
            never_raises(_interrupted)()
    finally:
        signal.signal(signal.SIGALRM, before)


def _interrupted() -> None:
    signal.raise_signal(signal.SIGALRM)
    json.loads("")  # else an error of ours


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_a_program_passes(kind: type[BaseException]) -> None:
    def ends() -> None:
        raise kind

    with pytest.raises(kind):
        never_raises(ends)()


def test_an_error_in_a_library_that_the_probe_calls_is_the_probes() -> None:
    never_raises(json.loads)("")
    never_raises(functools.partial(int, "x"))()


def test_the_end_of_the_stack_is_the_probes() -> None:
    @never_raises
    def endless() -> None:
        endless.__wrapped__() if hasattr(endless, "__wrapped__") else again()

    def again() -> None:
        again()

    endless()


def test_what_another_thread_has_asked_for_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_is_ours", lambda frame: frame.f_code is works.__code__)
    found: list[bool] = []

    def works() -> None:
        try:
            while True:
                pass
        except Timeout as error:
            found.append(is_foreign(error))

    thread = threading.Thread(target=works)
    thread.start()
    raise_in: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raise_in(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Timeout))
    thread.join()
    assert found == [True]


def test_a_trace_function_of_the_program_may_end_it() -> None:
    class Quit(Exception):
        pass

    def trace(frame: Any, event: str, _argument: Any) -> Any:
        if event == "line" and frame.f_code is traced.__code__:
            raise Quit
        return trace

    def traced() -> int:
        return 1

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(Quit):
            never_raises(traced)()
    finally:
        sys.settrace(before)


def test_each_guard_lets_exceptions_of_the_program_pass() -> None:
    others = [
        f"{path.relative_to(PROBE)}:{clause.lineno}"
        for path in sorted(PROBE.rglob("*.py"))
        if str(path.relative_to(PROBE)) not in WITHOUT
        for clause in ast.walk(ast.parse(path.read_text()))
        if isinstance(clause, ast.ExceptHandler) and not _lets_pass(clause)
    ]
    assert others == []


def _lets_pass(clause: ast.ExceptHandler) -> bool:
    kinds = clause.type
    if isinstance(kinds, ast.Name) and kinds.id == "BaseException":
        return any(isinstance(one, ast.Raise) for one in ast.walk(clause))
    if isinstance(kinds, ast.Name) and kinds.id == "RecursionError":
        return True
    return isinstance(kinds, ast.Call) and ast.unparse(kinds.func) == "ours"


def test_no_timeout_of_a_program_is_lost_in_a_step(watched, any_python) -> None:
    code = ALARMS + (
        "n, until = 0, time.monotonic() + 2\n"
        "while time.monotonic() < until:\n"
        "    try:\n"
        "        n, awaits = n + 1, True\n"
        "        session.step(n)\n"
        "        session.counter('n', n)\n"
        "        awaits = False\n"
        "    except Alarm: caught += 1\n"
        "    awaits = False\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "print(raised > 50, raised - caught)\n"
    )
    done = watched.run(any_python, "-c", code)
    assert (done.stdout, done.stderr) == ("True 0\n", "")
    # They are no failures of the probe: it goes on to the end.
    last = [event for event in watched.events() if event.name.startswith("recording ended")]
    assert last == []


def test_no_timeout_of_a_program_is_lost_in_a_collection(watched, any_python) -> None:
    # From the first collection on after two seconds, the process is measured. (After a walk, one
    # collection calls the probe, to restore the threshold, and so does a jump of a counted loop.)
    code = ALARMS + (
        "until = time.monotonic() + 2.2\n"
        "while time.monotonic() < until: pass\n"
        "gc.collect()\n"
        "until = time.monotonic() + 2\n"
        "while time.monotonic() < until:\n"
        "    try:\n"
        "        awaits = True\n"
        "        for _ in range(200): gc.collect(0)\n"
        "        awaits = False\n"
        "    except Alarm: caught += 1\n"
        "    awaits = False\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "print(raised > 50, raised - caught)\n"
    )
    done = watched.run(
        any_python, "-c", code, env={"MEMDIAG_EXPLAIN": "never", "MEMDIAG_LOOP_STEPS": "0"}
    )
    assert (done.stdout, done.stderr) == ("True 0\n", "")


def test_work_is_begun_again_after_a_deep_stack_but_not_for_ever(monkeypatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(guard, "monotonic", lambda: now_s)
    attempts = Attempts()
    times = 0
    while attempts.may_begin() or now_s < 300:
        if attempts.may_begin():
            times += 1
            attempts.failed(RecursionError())
        now_s += 0.5
    assert (times, attempts.is_over) == (7, True)
    other = Attempts()
    assert other.failed(ValueError())
    assert not other.may_begin()


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_no_timeout_of_a_program_is_lost_at_an_iteration(watched, version: str) -> None:
    if version not in interpreters():
        pytest.skip("not on this machine")
    # Python would not find the `try` block around the loop, if it were raised at once.
    code = ALARMS.replace("signal.setitimer(signal.ITIMER_REAL, 0.01, 0.0007)", "") + (
        "tell = session.loop_step\n"
        "def loop_step(*step):\n"
        "    tell(*step)\n"
        "    signal.raise_signal(signal.SIGALRM)\n"
        "session.loop_step = loop_step\n"
        "def main():\n"
        "    global awaits, caught\n"
        "    until = time.monotonic() + 8\n"
        "    while time.monotonic() < until and caught < 5:\n"
        "        try:\n"
        "            awaits = True\n"
        "            for n in range(10000):\n"
        "                if time.monotonic() > until: break\n"
        "                time.sleep(0.01)\n"
        "        except Alarm: caught += 1\n"
        "    awaits = False\n"
        "main()\n"
        "print(raised, caught)\n"
    )
    done = watched.run(interpreters()[version], "-c", code)
    assert (done.stdout, done.stderr) == ("5 5\n", "")
