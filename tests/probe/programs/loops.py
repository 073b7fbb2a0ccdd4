"""Programs with a loop: `loops.py NAME`, each until the probe has counted some steps.

Each iteration records the program's own count beside the step that the probe has reached. The
comment `step:NAME` marks the loop that the probe must find.
"""

import sys

if sys.argv[1] == "tools_are_taken":  # before the imports, which take a busy machine seconds
    for tool in (3, 4):
        sys.monitoring.use_tool_id(tool, "another")

import asyncio
import os
import threading
import time
from pathlib import Path

import numpy  # noqa: F401 (the probe counts loops of programs that compute)
from counting import first, more, own, probe, work


def for_in_function():
    for _ in iter(more, False):  # step:for_in_function
        work()


def while_test():
    while more():  # step:while_test
        work()
        if own[0] % 3 == 0:
            continue
        time.sleep(0.001)


def while_true():
    while True:  # step:while_true
        work()
        if own[0] % 3 == 0:
            continue
        if not more():
            break
        time.sleep(0.001)


def with_handlers():
    while more():  # step:with_handlers
        try:
            work()
            for i in range(3):
                try:
                    if own[0] % 4:
                        raise KeyError(i)
                except KeyError:
                    continue
            if own[0] % 5 == 0:
                raise ValueError
        except ValueError:
            continue
        time.sleep(0.0005)


def one_epoch():
    for _ in range(150):  # step:epochs
        work()


def epochs():
    while more():
        one_epoch()
        time.sleep(0.05)


def doubled(numbers):
    for number in numbers:
        yield 2 * number


def prepared(numbers):
    for number in numbers:
        time.sleep(0.001)
        yield number + 1


def pipeline():
    for _ in prepared(doubled(iter(more, False))):  # step:pipeline
        work()


async def batches():
    while more():  # step:batches
        await asyncio.sleep(0.005)
        yield own[0]


async def consume():
    async for _ in batches():  # step:coroutine
        own[0] += 1
        probe.counter("own", own[0])


def coroutine():
    asyncio.run(consume())


def thread():
    def train():
        while more():  # step:thread
            work()

    training = threading.Thread(target=train)
    training.start()
    training.join()


def comprehension():
    return [work() for _ in iter(more, False)]  # step:comprehension


def go_down(depth):
    for _ in range(2):
        if depth:
            go_down(depth - 1)
    time.sleep(0.006)


def recursion():
    while more():  # step:recursion
        work(0)
        go_down(1)


def resumed():
    for batch in range(10**9):  # step:resumed
        if batch < 200_000:
            continue
        work()
        if not more():
            return


def hot_inside():
    while more():  # step:hot_inside
        work()
        total = 0
        for i in range(2000):
            total += i


def preparation():
    while more():
        work()
    prepared = probe.step_state.reached
    first.clear()
    while True:  # step:preparation
        work()
        if probe.step_state.reached >= prepared:
            first.clear()
        elif not more():
            break


def library_takes_over():
    while more():  # step:library_takes_over
        work()
    import keras

    fit = keras.callbacks.CallbackList()
    fit.on_train_begin()
    fit.on_epoch_begin(0)
    for batch in range(5):
        fit.on_train_batch_end(batch)


def evaluates():
    """A training, then a loop that takes longer."""
    import keras

    fit = keras.callbacks.CallbackList()
    fit.on_train_begin()
    fit.on_epoch_begin(0)
    for batch in range(12):
        fit.on_train_batch_end(batch)
        time.sleep(0.1)
    fit.on_train_end()
    while True:  # step:evaluates
        work()
        if not probe.step_state.by_loop:
            first.clear()
        elif not more():
            break


def tags_take_over():
    while more():  # step:tags_take_over
        work()
    probe.step(1000)
    while sys.monitoring.get_tool(4) is not None:
        time.sleep(0.01)
    probe.step(1001)


def tool_in_use():
    """Another tool has disabled the lines of the loop, and enables them again from time to time."""
    events, lines = sys.monitoring, [0]

    def line(code, number):
        lines[0] += 1
        return events.DISABLE

    events.use_tool_id(events.COVERAGE_ID, "coverage")
    events.register_callback(events.COVERAGE_ID, events.events.LINE, line)
    events.set_events(events.COVERAGE_ID, events.events.LINE)
    while more():  # step:tool_in_use
        work()
        if own[0] % 20 == 0:
            events.restart_events()
    assert lines[0] > 3 * own[0] // 20
    assert events.get_events(events.COVERAGE_ID) == events.events.LINE


def forks():
    """A forked child has no events, and counts no iterations."""
    has_forked = False
    while more():  # step:forks
        work()
        if first and not has_forked:
            has_forked = True
            assert sys.monitoring.get_tool(4) == "memdiag"
            pid = os.fork()
            if pid == 0:
                child()
            assert os.waitpid(pid, 0)[1] == 0


def child():
    is_watched = sys.monitoring.get_tool(4) is not None
    sys.monitoring.use_tool_id(4, "another")
    is_watched = is_watched or sys.monitoring.get_local_events(4, forks.__code__) != 0
    for _ in range(100):
        work(0)
    os._exit(is_watched or probe.step_state.reached > 0)


def detaches():
    """No events are left after the probe has detached."""
    while more():  # step:detaches
        work()
    events, jumps = sys.monitoring, sys.monitoring.events.JUMP
    assert events.get_tool(4) == "memdiag"
    assert events.get_local_events(4, detaches.__code__) == jumps
    (Path(os.environ["MEMDIAG_CHANNEL"]) / "watcher").unlink()
    while events.get_tool(4) is not None:
        work()
    events.use_tool_id(4, "another")
    for function in (detaches, work, more):
        assert events.get_local_events(4, function.__code__) == 0
    assert events.get_events(4) == 0
    assert events.register_callback(4, jumps, None) is None


def tools_are_taken():
    for _ in range(600):
        work()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print(own[0] > 0, flush=True)
