"""What nothing refers to is found as the collector would find it, and left as it is."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from memdiag.probe import young_garbage
from memdiag.probe.young_garbage import buffer_bytes, unreachable


class Node:
    """An object that may refer to another."""

    def __init__(self, other: object = None) -> None:
        self.other = other


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """An empty youngest generation, and room in it."""
    threshold = gc.get_threshold()
    gc.set_threshold(100_000, *threshold[1:])
    gc.collect()
    yield
    gc.enable()
    gc.set_threshold(*threshold)


def nodes() -> int:
    found = unreachable()
    assert found is not None
    objects, times = found
    return round(times * sum(type(one) is Node for one in objects))


def ring(length: int) -> Node:
    first = last = Node()
    for _ in range(length - 1):
        last = Node(last)
    first.other = last
    return first


def test_cycles_are_found_once_nothing_refers_to_them() -> None:
    kept = ring(7)
    assert nodes() == 0
    del kept
    assert nodes() == 7


def test_what_something_in_use_refers_to_is_in_use() -> None:
    """By any way: a list, a local variable, or an object that was not collected lately."""
    old = Node()
    gc.collect()
    old.other = ring(5)
    listed = [ring(3)]
    assert nodes() == 0
    listed.clear()
    assert nodes() == 3


def test_what_hangs_on_a_cycle_is_garbage_as_well() -> None:
    knot = Node()
    knot.other = [knot, Node(Node())]
    del knot
    assert nodes() == 3


def test_a_look_collects_nothing_and_leaves_the_collector_as_it_was() -> None:
    freed: list[int] = []

    class Final(Node):
        def __del__(self) -> None:
            freed.append(1)

    knot = Final()
    knot.other = knot
    del knot
    runs = [generation["collections"] for generation in gc.get_stats()]
    assert unreachable() is not None
    assert gc.isenabled()
    assert [generation["collections"] for generation in gc.get_stats()] == runs
    assert not freed
    gc.collect()
    assert freed == [1]


def test_there_is_no_look_shortly_before_the_collector_runs() -> None:
    """It would keep what it looks at from being freed."""
    gc.set_threshold(gc.get_count()[0] + 20)
    assert unreachable() is None


def test_of_very_many_the_youngest_stand_for_all() -> None:
    gc.disable()
    for _ in range(2 * young_garbage.LOOKED_AT):
        ring(2)
    assert nodes() == pytest.approx(4 * young_garbage.LOOKED_AT, rel=0.02)
    assert not young_garbage.is_collected()


def test_what_was_there_before_the_work_began_is_not_multiplied() -> None:
    gc.disable()
    kept = [Node() for _ in range(20 * young_garbage.LOOKED_AT)]
    before = young_garbage.young()
    for _ in range(young_garbage.LOOKED_AT):
        ring(2)
    found = unreachable(before)
    assert found is not None
    assert len(found[0]) * found[1] == pytest.approx(2 * young_garbage.LOOKED_AT, rel=0.02)
    assert len(kept) == 20 * young_garbage.LOOKED_AT


def test_buffers_that_garbage_alone_holds_are_counted() -> None:
    numpy = pytest.importorskip("numpy")
    shared = bytes(50_000)
    knot = Node()
    knot.other = [knot, shared, bytes(20_000), numpy.ones(1000)]
    del knot
    found = unreachable()
    assert found is not None
    assert buffer_bytes(found[0]) == pytest.approx(28_000, abs=500)
    assert len(shared) == 50_000


def test_there_is_no_look_while_another_thread_runs_a_generator() -> None:
    """It may be making a tuple, which fails if anything else refers to it."""
    inside, done = threading.Event(), threading.Event()

    def numbers() -> Iterator[int]:
        yield 1
        inside.set()
        done.wait(60)
        yield 2

    found: list[tuple[int, ...]] = []
    thread = threading.Thread(target=lambda: found.append(tuple(numbers())))
    thread.start()
    assert inside.wait(60)
    assert unreachable() is None
    done.set()
    thread.join(60)
    assert found == [(1, 2)]
    assert unreachable() is not None
