"""Objects that become ever more although no name leads to them."""

from __future__ import annotations

import atexit
import ctypes
import gc
import itertools
import weakref
from math import inf
from typing import Any

import numpy as np
import pytest
from probe.test_name_walk import run_in

from memdiag.probe import kept_bytes, name_walk
from memdiag.probe.kept_bytes import Arrays, Kept, of_object
from memdiag.probe.name_walk import NameWalk
from memdiag.probe.places import Places
from memdiag.probe.unreached import Unreached


class Looks:
    def __init__(self, longest_s: float = inf) -> None:
        self.places, self.number, self.longest_s = Places(), 0, longest_s
        self.unreached = Unreached(self.places)

    def take(self, least_bytes: float = 0.0) -> None:
        self.number += 1
        arrays = Arrays()
        walk = NameWalk(self.places, arrays)
        walk.run()
        for place, found in walk.found.items():
            found.set_size_of(place, self.number, set())
        self.unreached.look(self.number, walk, arrays, least_bytes, self.longest_s)

    def growing(self) -> set[str]:
        return {".".join(one.name for one in place.path()) for place in self.places.growing()}

    def found(self) -> dict[str, float]:
        return {
            ".".join(one.name for one in place.path()): about["bytes"]
            for place, about in self.unreached.found.items()
        }


@pytest.fixture
def collector_off() -> Any:
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def test_cycle_is_named_by_its_class_and_attribute(program, collector_off) -> None:
    run_in(
        program,
        """
class Node:
    def __init__(self, parent):
        self.data = bytearray(10_000)
        self.parent = parent
        self.children = []
        if parent is not None:
            parent.children.append(self)
def tree():
    root = Node(None)
    for _ in range(3):
        Node(root)
""",
    )
    looks = Looks(longest_s=-1.0)  # without a search for what refers to it
    for _ in range(5):
        for _ in range(30):
            program.tree()
        looks.take()
    (name,) = looks.found()
    assert name in {"Node.parent", "Node.children"}
    assert looks.found()[name] == pytest.approx(10_000, rel=0.1)
    (place,) = looks.unreached.found
    assert place.grows()


def test_what_a_container_of_a_name_leads_to_grows_with_that(program, collector_off) -> None:
    run_in(program, "class One: pass\nkept = []")
    looks = Looks()
    for _ in range(4):
        for _ in range(500):  # of which the walk visits some
            one = program.One()
            one.itself = one
            program.kept.append([one])
        looks.take()
    assert {place.path()[-1].kind for place in looks.unreached.found} <= {"objects"}
    assert looks.growing() == {"kept"}


def test_objects_of_a_tree_are_named_by_their_class_and_its_root(program, collector_off) -> None:
    run_in(
        program,
        """
import random
class Node:
    __slots__ = ("children", "data")
    def __init__(self):
        self.children = {}
        self.data = bytearray(500)
class Tree:
    def __init__(self):
        self.root = Node()
    def read(self, keys):
        node = self.root
        for key in keys:
            if key not in node.children:
                node.children[key] = Node()
            node = node.children[key]
tree = Tree()
for first in range(400):
    tree.read([first])
""",
    )
    looks, number = Looks(), 0
    for _ in range(5):
        for _ in range(500):
            number += 1
            program.tree.read([number % 400, number % 7, number])
        looks.take()
    ((name, size),) = looks.found().items()
    assert name.startswith("tree.root")
    assert name.endswith(".Node")
    assert size == pytest.approx(700, rel=0.3)
    (place,) = looks.unreached.found
    assert place.path()[-1].file
    assert name in looks.growing()


def test_objects_that_a_walk_did_not_come_to_are_named_by_what_leads_to_others_of_them(
    program, collector_off, monkeypatch
) -> None:
    monkeypatch.setattr(name_walk, "_MOST_VISITS", 20_000)
    run_in(
        program,
        """
class Value:
    def __init__(self, parents=()):
        self.parents = parents
        self.data = bytearray(500)
    def __add__(self, other):
        return Value(((self, 1.0), (other, 1.0)))
class Curve:
    def __init__(self):
        self.running = Value()
curve = Curve()
""",
    )
    looks = Looks(longest_s=0.2)
    for _ in range(4):
        for _ in range(800):
            loss = program.Value()
            for _ in range(8):
                loss += program.Value()
            program.curve.running = program.curve.running + loss
        looks.take()
    (name,) = looks.found()
    assert name.startswith("curve.running")
    assert name.endswith(".Value")


@pytest.mark.skipif(not hasattr(atexit, "_ncallbacks"), reason="has no number of callbacks")
def test_callbacks_at_exit_are_named(program) -> None:
    run_in(
        program,
        """
class Writer:
    def __init__(self):
        self.rows = bytearray(5000)
    def close(self):
        pass
""",
    )
    looks, writers = Looks(), []
    for _ in range(4):
        for _ in range(100):
            writer = program.Writer()
            atexit.register(writer.close)
            writers.append(weakref.ref(writer))
        del writer
        looks.take()
    for one in writers:
        atexit.unregister(one().close)
    assert looks.found() == {"atexit": pytest.approx(5000, rel=0.15)}
    (place,) = looks.unreached.found
    assert [(one.kind, one.owner, one.file) for one in place.path()] == [
        ("registered", "atexit", "")
    ]


def test_what_explains_little_of_the_growth_is_no_place(program, collector_off) -> None:
    run_in(program, "class One:\n    def __init__(self): self.itself = self")
    looks = Looks()
    for least_bytes in (1e9, 1e9, 1e9, 100.0):
        assert looks.found() == {}
        for _ in range(300):
            program.One()
        looks.take(least_bytes)
    assert set(looks.found()) == {"One.itself"}


@pytest.mark.parametrize(
    ("made", "found"), [("One()", True), ("Reference(one, print)", False), ("one.method", False)]
)
def test_weak_references_and_other_parts_of_objects_are_not_named(program, made, found) -> None:
    run_in(
        program,
        f"""
import ctypes, weakref
class Reference(weakref.ref):
    pass
class One:
    def method(self):
        pass
one = One()
def hidden():
    new = {made}
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(new))
    return id(new)
def free(identity):
    ctypes.pythonapi.Py_DecRef(ctypes.cast(identity, ctypes.py_object))
""",
    )
    looks, identities = Looks(), []
    for _ in range(4):
        identities += [program.hidden() for _ in range(200)]
        looks.take()
    for one in identities:
        program.free(one)
    assert set(looks.found()) == ({"One"} if found else set())


def test_what_does_not_rise_at_each_look_is_not_counted(program) -> None:
    run_in(program, "class One:\n    def __init__(self): self.itself = self")
    looks = Looks()
    for number in range(4):
        for _ in range(300):
            program.One()
        if number == 1:
            gc.collect()
        looks.take()
    assert looks.found() == {}


@pytest.mark.filterwarnings("ignore:Using backward")
def test_graph_of_autograd_that_leads_back_to_its_leaf(program) -> None:
    torch = pytest.importorskip("torch")
    looks = Looks()
    for _ in range(4):
        for _ in range(80):
            leaf = torch.nn.Parameter(torch.ones(32, 32))
            leaf.square().sum().backward(create_graph=True)
        del leaf
        looks.take()
    (name,) = looks.found()
    assert name == "Parameter.grad"
    (about,) = looks.unreached.found.values()
    assert about["kind"] == "graph"
    assert about["bytes"] > 2 * 4 * 32 * 32


def test_objects_of_c_libraries_say_what_they_hold_outside_of_python() -> None:
    pool = (ctypes.c_double * 1000)()
    view = np.frombuffer(pool)
    kept = Kept(Arrays())
    kept.add(type(pool))  # made by the first line
    before = kept.total()[0]
    kept.add([pool, view, memoryview(pool)])
    assert kept.total()[0] - before == pytest.approx(8000, abs=700)


def test_frame_of_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": np.arange(10_000)})
    kept = Kept(Arrays())
    kept.add(frame)
    assert kept.total()[0] == pytest.approx(80_000, rel=0.05)
    assert kept.kind() == "native"


def test_what_a_link_of_a_long_chain_keeps(program) -> None:
    run_in(
        program,
        """
class State:
    def __init__(self, before):
        self.data = bytearray(5000)
        self.before = before
latest = None
for _ in range(20_000):
    latest = State(latest)
""",
    )
    about = of_object(program.latest, Arrays())
    while program.latest is not None:  # else Python frees it by as many nested calls
        program.latest = program.latest.before
    assert about["bytes"] == pytest.approx(5000, rel=0.15)


def test_graph_counts_of_a_view_whose_memory_was_changed_in_place() -> None:
    torch = pytest.importorskip("torch")
    out = torch.nn.Linear(8, 1)(torch.randn(2, 5, 8)).sin()
    with torch.no_grad():
        first, *_ = out.unbind(0)
        out.add_(1)
    kept = Kept(Arrays())
    kept.add(out.squeeze(-1)[:, -1])
    assert kept.has_graph
    assert kept.nodes > 2
    kept.add(first)  # asking it where it comes from would raise
    assert first.requires_grad


@pytest.mark.parametrize("looks", [3, 9])
def test_of_a_graph_as_many_tensors_count_as_nodes(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recurrent cell has 17 nodes and 75.5 KB a step; its parameters stay, whoever keeps the
    graph. The part that is counted is like the rest. looks: at the clock, until the time is over.
    """
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(kept_bytes, "thread_time", itertools.count().__next__)
    cell, hidden = torch.nn.GRUCell(24, 128), torch.zeros(16, 128)
    for _ in range(100):
        hidden = cell(torch.randn(16, 24), hidden)
    kept = Kept(Arrays(), longest_s=looks)
    kept.add(hidden)
    assert 0 < kept.nodes <= 32 * (looks + 1)
    before = kept.total()[0]
    kept.add(list(cell.parameters()))  # kept themselves
    weights = sum(one.numel() * one.element_size() for one in cell.parameters())
    assert kept.total()[0] - before == pytest.approx(weights, rel=0.02)
    kept = Kept(Arrays(), longest_s=looks)
    kept.add(hidden)
    assert kept.total()[0] / kept.nodes == pytest.approx(75_500 / 17, rel=0.15)
