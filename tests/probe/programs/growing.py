"""Programs that keep more at each step: `growing.py SHAPE CHANNEL`, until a window is over.

The line that adds to what grows has its shape as a comment. The syntax is that of Python 3.8.
"""

import asyncio
import contextlib
import functools
import heapq
import json
import os
import queue
import signal
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy  # noqa: F401  (a pretended one: a program that imports it is measured)

LONGEST_S = 30.0
AFTER = 20  # steps after the window
session = sys.modules["_memdiag_probe"].listener if "_memdiag_probe" in sys.modules else None


def window():
    """What the probe has written of its windows in this process, None before the first is over."""
    for file in Path(sys.argv[2]).glob(f"{os.getpid()}-*.holders"):
        document = json.loads(file.read_text())
        if document["window"]["steps"]:
            return document
    return None


def steps(are_tagged=True):
    """Numbers of steps, each tagged at its end, until some steps after the window."""
    n, left, until = 0, AFTER, time.monotonic() + LONGEST_S
    while left and time.monotonic() < until:
        yield n
        n += 1
        if session is not None:
            if are_tagged:
                session.step(n)
            time.sleep(0.001)
            left -= left < AFTER or (n % 20 == 0 and window() is not None)
        else:
            left -= 1


def block():
    return bytearray(3000)


class Rows:
    def __init__(self):
        self.rows = []

    def keep(self, row):
        self.rows.append(row)  # method


class Slots:
    __slots__ = ("rows",)


class Node:
    def __init__(self, before):
        self.before, self.data = before, block()


def method():
    rows = Rows()
    for _ in steps():
        rows.keep(block())


def alias():
    history = []

    def record(into, what):
        into.append(what)  # alias

    for _ in steps():
        record(history, block())


def heap():
    worst = []
    for step in steps():
        item = (step * 7919 % 1000, step, block())
        heapq.heappush(worst, item)  # heap
        item = None


def put():
    inbox = queue.Queue()
    for _ in steps():
        inbox.put(block())  # put


def stack():
    with contextlib.ExitStack() as kept:
        for _ in steps():
            kept.callback(bytearray.clear, block())  # stack


def attributes():
    kept = Rows()
    for step in steps():
        setattr(kept, f"row{step}", block())  # attributes


def slots():
    kept = Slots()
    kept.rows = {}
    for step in steps():
        value = block()
        kept.rows.setdefault(step, value)  # slots


def rebuilt():
    history = []
    for _ in steps():
        new = block()
        history = [*history, new]  # rebuilt
        new = None


def chain():
    last = None
    for _ in steps():
        made = Node(last)
        last = made  # chain
        made = None


def partials():
    transform = None
    for _ in steps():
        noise = block()
        transform = functools.partial(print, noise, transform)  # partials
        noise = None


def text():
    log = ""
    for _ in steps():
        line = "a line of a log\n" * 200
        log = log + line  # text


def closure():
    def tracker():
        seen = []

        def track(what):
            size = len(what)
            seen.append((size, what))  # closure

        return track

    track = tracker()
    for _ in steps():
        track(block())


def generator():
    def produce():
        ready = []
        while True:
            made = block()
            ready.append(made)  # generator
            yield made

    source = produce()
    for _ in steps():
        next(source)


def in_library():
    kept = {}
    for step in steps():
        rows = [[block()]]
        any(map(kept.setdefault, (step,), rows))  # in_library


def around_steps():
    """The line that runs all the time says nothing: what it is given is made in another."""
    kept = []

    def predict(step):
        return block()  # around_steps

    kept.extend(map(predict, steps()))


def coroutine():
    async def fetch():
        await asyncio.sleep(0)
        return block()

    async def serve():
        answers = []
        for _ in steps():
            answers.append(await fetch())  # coroutine

    asyncio.run(serve())


KEPT = {}


def other_thread():
    asked, done = threading.Semaphore(0), threading.Semaphore(0)

    def sample():
        while True:
            asked.acquire()
            value = block()
            KEPT[len(KEPT)] = value  # other_thread
            done.release()

    threading.Thread(target=sample, daemon=True).start()
    for _ in steps():
        asked.release()
        done.acquire()


def busy():
    count = 0
    while count < 30_000:
        count += 1


def long_steps():
    history = []
    for _ in steps():
        busy()
        history.append(block())  # long_steps


def long_function():
    history = []
    for _ in steps():
        count = 0
        while count < 30_000:
            count += 1
        history.append(block())  # long_function


def unequal():
    log = []
    for n in steps():
        log.append(float(n))
        log.append(block())  # unequal


# -- programs that must not notice ---------------------------------------------------------------


def unnoticed():
    """Prints what a program can see of a window, afterwards."""

    class Tensor:
        pass

    def consume():
        while True:
            batch = yield
            batch.seen = True

    def with_locals():
        first = 1
        config = locals()
        second = first + 1
        config["first"] = 7
        third = second + first
        return sorted(config), third

    history, seen, results, consumer = [], [], set(), consume()
    next(consumer)
    for _ in steps():
        batch = Tensor()
        seen.append(weakref.ref(batch))
        consumer.send(batch)
        history.append(block())
        results.add(str(with_locals()))
        del batch
    consumer.send(Tensor())
    alive = sum(one() is not None for one in seen)
    print(sys.gettrace(), trace_functions(), alive, results, tools())


def trace_functions():
    """Of the functions that run."""
    frame, found = sys._getframe(), set()
    while frame is not None:
        found.add(frame.f_trace)
        frame = frame.f_back
    return found


def tools():
    monitoring = getattr(sys, "monitoring", None)
    return monitoring and [monitoring.get_tool(n) for n in (0, 1, 2, 3, 5)]


def debugged():
    """Another trace function stays, and there is no window."""
    calls = []

    def trace(frame, event, argument):
        calls.append(event)

    sys.settrace(trace)
    history = []
    until = time.monotonic() + 3.0
    n = 0
    while time.monotonic() < until:
        history.append(block())
        n += 1
        session.step(n)
        time.sleep(0.001)
    print(sys.gettrace() is trace, "call" in calls)
    sys.settrace(None)


def takes_over():
    """A debugger begins within a window: it keeps its trace function."""

    def trace(frame, event, argument):
        return None

    history, is_set = [], False
    for _ in steps():
        history.append(block())
        if not is_set and is_followed(takes_over):
            sys.settrace(trace)
            is_set = True
    print(is_set, sys.gettrace() is trace)
    sys.settrace(None)


def is_followed(function):
    """Return True if the lines of a function are followed now."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        return sys.gettrace() is not None
    return any(
        monitoring.get_tool(tool) is not None
        and monitoring.get_local_events(tool, function.__code__) & monitoring.events.LINE
        for tool in (3, 4)
    )


def untagged():
    """Steps that nothing reports."""
    kept = Rows()
    for _ in steps(are_tagged=False):
        kept.rows.append(block())  # untagged


def untagged_alarms():
    """No exception of a signal handler is lost where lines are followed in the main thread."""
    alarms(are_tagged=False)


def alarms(are_tagged=True):
    """No exception of a signal handler is lost within a window."""
    raised = 0

    class Alarm(Exception):
        pass

    def ring(number, frame):
        nonlocal raised
        raised += 1
        raise Alarm

    signal.signal(signal.SIGALRM, ring)
    history, caught, lost = [], 0, 0
    for _ in steps(are_tagged):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            work(history)
            lost += 1
        except Alarm:
            caught += 1
    print(lost, caught == raised, caught > 10)


def work(history):
    history.append(block())
    count = 0
    while count < 10_000_000:
        count += 1


def forks():
    """A child that begins within a window is not traced, nor are its functions."""
    history, asked = [], False
    for _ in steps():
        history.append(block())
        if not asked and is_followed(forks):
            asked = True
            pid = os.fork()
            if pid == 0:
                print("child", sys.gettrace(), is_followed(forks), flush=True)
                os._exit(0)
            print(os.waitpid(pid, 0)[1], flush=True)
    print(asked)


def exits():
    """An error within a window ends the program as ever."""
    history = []
    for _ in steps():
        history.append(block())
        if is_followed(exits):
            raise SystemExit(history[0][0] + 3)


class Table:
    def __init__(self, data):
        self.data = data


def replaced_items():
    kept = {n: Table(block()) for n in range(3)}
    for _ in steps():
        for n in range(3):
            known = kept[n]
            longer = Table(known.data + block())
            kept[n] = longer  # replaced_items


def delegated():
    def inner():
        kept = []
        while True:
            kept.append(block())  # delegated
            yield

    def outer(source):
        while True:
            next(source)
            yield

    def whole(source):
        while True:
            next(source)
            yield

    source = whole(outer(inner()))
    for _ in steps():
        next(source)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
