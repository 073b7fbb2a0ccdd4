"""What no name of the program leads to: registries of libraries, generators and iterators that only
a loop holds. Looks find where to begin, the walks after them measure."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from typing import Any

import pytest
from probe.test_name_walk import run_in

from memdiag.probe.kept_bytes import Arrays
from memdiag.probe.name_walk import NameWalk
from memdiag.probe.places import Places
from memdiag.probe.unnamed import Unnamed


class Looks:
    """Two looks and three walks, after each call."""

    def __init__(self) -> None:
        self.places, self.unnamed, self.number = Places(), Unnamed(), 0

    def take(self) -> None:
        self.number += 1
        walk = NameWalk(self.places, Arrays(), self.unnamed)
        walk.run()
        for place, found in walk.found.items():
            place.measured(self.number, "items", found.items or found.objects)
        if self.number <= 2:
            self.unnamed.look(walk.seen, 10.0)

    def growing(self) -> set[str]:
        return {".".join(one.name for one in place.path()) for place in self.places.growing()}


@pytest.fixture
def library(program, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("a_library")
    module.__file__ = "/usr/lib/site-packages/a_library.py"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    source = """
class Registry:
    entries = {}
class Manager:
    def __init__(self):
        self.loggers = []
manager = Manager()
"""
    exec(compile(source, module.__file__, "exec"), module.__dict__)  # noqa: S102
    return module


@pytest.mark.slow
@pytest.mark.parametrize("is_imported", [False, True])
def test_registries_of_libraries_are_found_by_their_globals(
    program, library, *, is_imported: bool
) -> None:
    looks = Looks()
    if is_imported:  # `from a_library import Registry`, which does not lead to its attributes
        program.Registry = library.Registry
    for number in range(6):
        for i in range(30):
            library.Registry.entries[100 * number + i] = [i]
            library.manager.loggers.append([i])
        looks.take()
    assert {"Registry.entries", "manager.loggers"} <= looks.growing()


@pytest.mark.slow
def test_what_only_a_loop_holds_is_found(program) -> None:
    run_in(
        program,
        """
class Batches:
    def __init__(self):
        self.kept = []
    def __iter__(self):
        return self
    def __next__(self):
        self.kept.append([1])
        return 1

def produced():
    ready = []
    while True:
        ready.append([1])
        yield 1

def train(look, make):
    for number, _ in enumerate(make()):
        if number % 30 == 29:
            look()
        if number > 200:
            return
""",
    )
    for make, name in ((program.produced, "produced.ready"), (program.Batches, "Batches.kept")):
        looks = Looks()
        program.train(looks.take, make)
        assert name in looks.growing()


def test_generators_are_found_without_a_comparison_of_lengths(program) -> None:
    run_in(program, "def produce():\n  ready = []\n  while True:\n    ready.append([1])\n    yield")
    running = program.produce()
    next(running)
    unnamed = Unnamed()
    assert unnamed.look_at_generators({})
    assert running in [one() for one in unnamed.objects]
    assert not unnamed.look_at_generators({})


def test_young_generators_are_found_unless_everything_is_young(program) -> None:
    run_in(program, "def produce():\n  while True:\n    yield")
    unnamed = Unnamed()
    running = program.produce()
    next(running)
    assert unnamed.look_at_young_generators({})
    assert running in [one() for one in unnamed.objects]
    gc.collect()
    assert not Unnamed().look_at_young_generators({})
    gc.disable()
    try:
        another = program.produce()
        next(another)
        objects = [[] for _ in range(100_000)]
        assert not unnamed.look_at_young_generators({})
        assert another not in [one() for one in unnamed.objects]
        del objects
    finally:
        gc.enable()


def test_generators_that_delegate_to_each_other_are_a_place_that_grows(program) -> None:
    run_in(
        program,
        """
def batches(epoch=0):
    shuffled = bytearray(5000)
    for batch in range(4):
        yield epoch, len(shuffled)
    yield from batches(epoch + 1)
def train(look):
    for number, batch in enumerate(batches()):
        if number % 40 == 39:
            look()
        if number > 240:
            break
""",
    )
    looks = Looks()
    program.train(looks.take)
    assert "batches" in looks.growing()
    (place,) = (one for one in looks.places.growing() if one.name == "batches")
    assert place.is_chain()
    assert (place.owner, place.line) == ("batches", 6)


def test_what_there_was_no_time_for_is_searched_in_the_next_look(program, library) -> None:
    walk = NameWalk(Places(), Arrays())
    walk.run()
    unnamed = Unnamed()
    for longest_s in (10.0, -1.0, 10.0):
        for i in range(30):
            library.manager.loggers.append([i])
        unnamed.look(walk.seen, longest_s)
    assert ("a_library", "manager") in unnamed.globals


def test_what_names_lead_to_is_not_searched(program) -> None:
    run_in(program, "rows = []\ndef produce():\n  while True: yield rows\nsource = produce()")
    next(program.source)
    looks = Looks()
    for _ in range(4):
        program.rows += [[1] for _ in range(30)]
        looks.take()
    assert ("a_training_program", "rows") not in looks.unnamed.globals
    assert program.source not in [one() for one in looks.unnamed.objects]


def test_a_look_keeps_nothing_alive(program) -> None:
    run_in(program, "class Row: pass\ndef produce(rows):\n  for row in rows: yield row")
    row = program.Row()
    running: list[Any] = [program.produce([row, row])]
    next(running[0])
    looks = Looks()
    looks.take()
    gone = weakref.ref(row)
    del row
    running.clear()
    gc.collect()
    gc.disable()
    try:
        held = program.Row()
        program.held = [[[held]] * 20]
        again = weakref.ref(held)
        looks.take()
        program.held.append(program.held.pop() * 2)
        looks.take()
        del held, program.held
        assert gone() is None
        assert again() is None
    finally:
        gc.enable()
