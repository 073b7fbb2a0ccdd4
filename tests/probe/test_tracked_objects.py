"""What the collector knows is read without holding a tuple that Python may be making."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from typing import Any

import pytest

from memdiag.probe.kept_bytes import Arrays
from memdiag.probe.memory_census import census
from memdiag.probe.tracked_objects import (
    class_of_each,
    lengths_of,
    objects_at,
    objects_of,
    referrers,
    sizes_of,
    tasks_with,
)


class One:
    pass


def test_objects_of_some_classes() -> None:
    ones = [One() for _ in range(3)]
    assert [one for one in objects_of({id(One)}) if one in ones] == ones
    assert objects_at({id(ones[1])}, {id(One)}) == [ones[1]]
    assert objects_at({id(ones[1])}, {id(list)}) == []


def test_numbers_of_objects() -> None:
    rows, pairs = [[1] * 777 for _ in range(5)], [([],) * 777 for _ in range(5)]
    assert class_of_each().count(One) == len(objects_of({id(One)}))
    assert dict(lengths_of({id(list)}))[id(rows[0])] == 777
    sizes = list(sizes_of({id(tuple)}))
    assert sizes.count((id(tuple), sys.getsizeof(pairs[0]))) >= 5


def test_referrers_of_a_tuple_stand_for_it() -> None:
    one = One()
    holder = [(one, 1)]
    found = referrers([one])
    assert any(thing is holder for thing in found)
    assert not any(type(thing) is tuple for thing in found)


def test_a_task_refers_to_its_result() -> None:
    async def made() -> One:
        return One()

    async def kept() -> asyncio.Task[One]:
        task = asyncio.create_task(made())
        await task
        return task

    task = asyncio.run(kept())
    assert tasks_with([task.result()]) == [task]


SHARED = One()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("look", "times"),
    [
        (lambda: objects_of({id(One)}), 12),
        (lambda: list(lengths_of({id(list)})), 12),
        (class_of_each, 12),
        (lambda: list(sizes_of({id(tuple)})), 12),
        (lambda: referrers([SHARED]), 12),
        (lambda: census(Arrays(), None, with_types=True), 3),
    ],
)
def test_tuples_that_other_threads_are_making_can_be_enlarged(look: Any, times: int) -> None:
    failures, ends = [], threading.Event()

    def make() -> None:
        try:
            while not ends.is_set():
                tuple(SHARED for _ in range(3000))
        except SystemError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(times):
        kept = look()
        for _ in range(1000):  # in which other threads run
            len(kept)
        del kept
    ends.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_no_code_of_the_program_runs() -> None:
    """A metaclass may define how its classes are compared and hashed."""
    ran = []

    class Compared:
        def __eq__(self, other: object) -> bool:
            ran.append(self)
            return self is other

        def __hash__(self) -> int:
            ran.append(self)
            return 1

    class Meta(Compared, type):
        pass

    made = Meta("Made", (), {})
    kept = [made() for _ in range(3)]
    assert referrers([kept]) == []
    assert len(objects_of({id(made)})) == 3
    assert class_of_each()
    assert ran == []
    del kept, made, Meta
    gc.collect()
    assert referrers([ran])
