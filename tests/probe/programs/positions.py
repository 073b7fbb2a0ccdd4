"""Loops whose positions are read: `positions.py PROBE_DIRECTORY` prints what was counted, as JSON.

Each loop runs in a thread and waits in every iteration, so it is known how far it is.
"""

import itertools
import json
import sys
import threading
import types
from pathlib import Path

package = types.ModuleType("probe")
package.__path__ = [sys.argv[1]]
sys.modules["probe"] = package
from probe.loop_positions import open_positions  # noqa: E402

may_go, has_gone = threading.Semaphore(0), threading.Semaphore(0)
over = threading.Event()
LONG = 10_000
rounds = 0


def wait():
    """One iteration: True once the loop shall end."""
    has_gone.release()
    may_go.acquire()
    return over.is_set()


def over_range():
    for _ in range(LONG):
        if wait():
            return


def over_list():
    for _ in [0] * LONG:
        if wait():
            return


def over_items():
    for _, _ in dict.fromkeys(range(LONG)).items():
        if wait():
            return


def over_zip():
    for _ in zip(enumerate([0] * LONG), map(str, itertools.count())):  # noqa: B905 (Python 3.8)
        if wait():
            return


def over_slice():
    for _ in itertools.islice(iter([0] * LONG), 5, None):
        if wait():
            return


def with_a_file_and_a_handler():
    with Path(sys.argv[0]).open():
        try:
            for _ in range(LONG):
                try:
                    if wait():
                        return
                finally:
                    len("")
        except ValueError:
            return


def variable_of_while():
    step = 0
    while step < LONG:
        step += 1
        if step % 3 == 0 and wait():
            return
        if step % 3 == 0:
            continue
        if wait():
            return


def variable_of_for():
    seen = 0
    for _ in iter(int, 1):
        seen += 32
        if wait():
            return


def large_variable():
    step = 1 << 40
    while True:
        step += 1
        if wait():
            return


def with_cells():
    total, other = 0, 0

    def inner():
        return total + other

    for _ in range(LONG):
        total += inner()
        if wait():
            return


def passes():
    for _ in range(LONG):
        for _ in range(10):
            if wait():
                return


def in_a_generator():
    for _ in (wait() for _ in range(LONG)):
        if over.is_set():
            return


def with_a_long_body():
    for n in range(LONG):
        if wait():
            return
        a = b = c = d = n
        a, b, c, d = a + b, b * c, c - d, d + a
        a, b, c, d = len([a, b]), len([b, c]), len([c, d]), len([d, a])
        a, b, c, d = min(a, b), min(b, c), min(c, d), min(d, a)
        a, b, c, d = max(a, b), max(b, c), max(c, d), max(d, a)
        a, b, c, d = abs(a + b), abs(b * c), abs(c - d), abs(d + a)
        str(a), str(b), str(c), str(d), str(a + b), str(b + c), str(c + d), str(d + a)


SHAPES = (
    over_range,
    with_a_long_body,
    over_list,
    over_items,
    over_zip,
    over_slice,
    with_a_file_and_a_handler,
    variable_of_while,
    variable_of_for,
    large_variable,
    with_cells,
    passes,
    in_a_generator,
)


def counted(shape, by):
    """Iterations of the innermost loop of a function, as counted in three times `by`."""
    over.clear()
    positions = open_positions()
    thread = threading.Thread(target=shape)
    thread.start()
    has_gone.acquire()
    positions.sample()
    for _ in range(3):
        for _ in range(by):
            may_go.release()
            has_gone.acquire()
        positions.sample()
    over.set()
    may_go.release()
    thread.join()
    loops = [loop for loop in positions.loops.values() if loop.code.co_filename == __file__]
    return [loop.n for loop in sorted(loops, key=lambda loop: (loop.depth, loop.head))][-1:]


found = {shape.__name__: counted(shape, 7)[0] for shape in SHAPES}
# A loop of the module's own, whose variable is a global.
done, watched = threading.Event(), open_positions()


def watch():
    watched.sample()
    for _ in range(3):
        for _ in range(7):
            may_go.release()
            has_gone.acquire()
        watched.sample()
    done.set()
    may_go.release()


watcher = threading.Thread(target=watch)
has_gone = threading.Semaphore(0)
while not done.is_set():
    rounds += 1
    if rounds == 1:
        watcher.start()
    else:
        has_gone.release()
    may_go.acquire()
watcher.join()
found["global_variable"] = max(loop.n for loop in watched.loops.values())
print(json.dumps(found))
