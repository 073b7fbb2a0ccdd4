"""Sizes of growing places between walks: read through their names, the same as in a walk."""

from __future__ import annotations

import contextvars
import sys
import types
import weakref

import pytest

from memdiag.probe.kept_bytes import Arrays
from memdiag.probe.known_places import KnownPlacesWalk
from memdiag.probe.name_walk import NameWalk
from memdiag.probe.places import Place, Places
from memdiag.probe.size_log import SizeLog
from memdiag.probe.unnamed import Unnamed
from memdiag.probe.watched_place import WatchedPlace


def run_in(program: types.ModuleType, source: str) -> None:
    exec(compile(source, str(program.__file__), "exec"), program.__dict__)  # noqa: S102


def walked(places: Places, number: int, name: str) -> list[Place]:
    """The places of a walk below the global `name` that have a size, by the longest path."""
    walk = NameWalk(places, Arrays())
    walk.run()
    found = []
    for place, one in walk.found.items():
        if place.path()[0].name == name:
            place.measured(number, *one.size())
            found.append(place)
    return found


@pytest.mark.parametrize(
    ("source", "last"),
    [
        ("top = []\ndef grow(): top.append([1])", "top"),
        (
            "class C: pass\ntop = C()\ntop.rows = {}\ndef grow(): top.rows[len(top.rows)] = 1",
            "rows",
        ),
        (
            (
                "class C:\n  __slots__ = ('rows',)\ntop = [C(), C()]\n"
                "for c in top: c.rows = []\ndel c\n"
                "def grow():\n  for c in top: c.rows.append(1)"
            ),
            "rows",
        ),
        ("class top:\n  rows = set()\ndef grow(): top.rows.add(len(top.rows))", "rows"),
        ("top = {'scores': []}\ndef grow(): top['scores'].append(1)", "scores"),
        (
            (
                "def make():\n  seen = []\n  def add(): seen.append(1)\n  return add\n"
                "top = make()\ngrow = top"
            ),
            "seen",
        ),
        ("def top(acc=[]): acc.append(1)\ngrow = top", "acc"),
        (
            (
                "def produce():\n  ready = []\n  while True:\n    ready.append([1])\n    yield\n"
                "top = produce()\ndef grow(): next(top)"
            ),
            "ready",
        ),
        (
            (
                "import functools\n@functools.lru_cache(None)\ndef top(i): return [i]\n"
                "def grow(): top(top.cache_info().currsize)"
            ),
            "top",
        ),
        ("top = ''\ndef grow():\n  global top\n  top += 'line of a log\\n' * 200", "top"),
    ],
)
def test_sizes_are_those_of_a_walk(program, source: str, last: str) -> None:
    run_in(program, source)
    places = Places()
    for _ in range(3):
        program.grow()
    known = [place for place in walked(places, 1, "top") if place.name == last]
    place = max(known, key=lambda one: one.sizes[-1][1])
    log = SizeLog(places, Unnamed())
    log.follow([place])
    for step in (1, 2):
        program.grow()
        log.read(step)
    walked(places, 2, "top")
    assert [step for step, _, _ in log.of(place)] == [1, 2]
    sizes = [size for _, _, size in log.of(place)]
    assert place.sizes[0][1] < sizes[0] < sizes[1] == place.sizes[-1][1]


def test_what_the_program_drops_is_not_kept_and_has_no_size(program) -> None:
    run_in(program, "class Rows(list): pass\ntop = Rows([1, 2, 3])")
    places = Places()
    (place,) = [place for place in walked(places, 1, "top") if place.unit == "items"]
    log = SizeLog(places, Unnamed())
    log.follow([place])
    log.read(1)
    seen = weakref.ref(program.top)
    del program.top
    assert seen() is None
    log.read(2)
    assert [step for step, _, _ in log.of(place)] == [1]


def test_a_place_of_another_size_through_its_name_is_not_followed(program) -> None:
    program.top = [1, 2, 3]
    places = Places()
    (place,) = walked(places, 1, "top")
    place.measured(2, "items", 100.0)
    log = SizeLog(places, Unnamed())
    for step in (1, 2):
        log.follow([place])
        log.read(step)
    assert log.of(place) == []


@pytest.mark.torch
def test_a_container_that_grows_beneath_what_is_changed_in_place(program) -> None:
    torch = pytest.importorskip("torch")
    program.net = torch.nn.Linear(2, 2)
    places = Places()
    walk = NameWalk(places, Arrays())

    def grow() -> None:
        for _ in range(20):
            program.net.bias.register_hook(lambda gradient: gradient)

    grow()
    walk.run()
    (place,) = (
        one
        for one in walk.found
        if one.name == "_backward_hooks" and "bias" in [above.name for above in one.path()]
    )
    place.measured(1, "items", 1.0)
    watched = WatchedPlace(place, Arrays(), is_important=True)
    seen = []
    for _ in range(3):
        known = KnownPlacesWalk(places, Arrays(), Unnamed(), [place])
        known.run()
        watched.look_up(known)
        del known
        for change in (lambda: None, grow, lambda: program.net.bias.detach().add_(1.0)):
            change()
            seen.append(watched.read(sys._getframe(), is_traced=False))
    assert seen == [False, True, False] * 3


def test_what_a_context_variable_is_set_to_is_watched(program) -> None:
    run_in(program, "from contextvars import ContextVar\ntop = ContextVar('top', default=())")
    seen = []

    def steps() -> None:
        program.top.set(([1],))
        places = Places()
        (place,) = (one for one in walked(places, 1, "top") if one.kind == "wrapped")
        watched = WatchedPlace(place, Arrays(), is_important=True)
        for _ in range(3):
            known = KnownPlacesWalk(places, Arrays(), Unnamed(), [place])
            known.run()
            watched.look_up(known)
            seen.extend(watched.read(sys._getframe(), is_traced=False) for _ in range(2))
            program.top.set((*program.top.get(), [1]))
            seen.append(watched.read(sys._getframe(), is_traced=False))

    contextvars.copy_context().run(steps)
    assert seen == [False, False, True] * 3
