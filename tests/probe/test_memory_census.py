"""A census counts what is in memory, names what holds it, and leaves no trace in the program."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from pathlib import Path
from typing import Any

import pytest

from memdiag.probe import memory_census, name_walk
from memdiag.probe.kept_bytes import Arrays
from memdiag.probe.memory_census import census
from memdiag.probe.name_walk import NameWalk
from memdiag.probe.places import Places

TESTS = str(Path(__file__).resolve().parents[1])


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module of a program. No test is part of it, and there is time and room for what pytest and
    other tests of this process hold."""
    gc.collect()
    monkeypatch.setattr(name_walk, "_MOST_VISITS", 10**6)
    monkeypatch.setattr(name_walk, "_LONGEST_S", 10.0)
    monkeypatch.setattr(memory_census, "_LONGEST_S", 10.0)
    monkeypatch.setattr(memory_census, "_MOST_GROUPS", 10**6)
    for name, other in list(sys.modules.items()):
        if (getattr(other, "__file__", "") or "").startswith(TESTS):
            monkeypatch.delitem(sys.modules, name)
    module = types.ModuleType("a_training_program")
    module.__file__ = str(tmp_path / "a_training_program.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def taken(*, with_walk: bool = True) -> dict[str, Any]:
    arrays, walk = Arrays(), None
    if with_walk:
        walk = NameWalk(Places(), arrays)
        walk.run()
    return census(arrays, walk, with_types=True)


def groups(shape: list[int], found: dict[str, Any] | None = None) -> dict[str, tuple[int, int]]:
    """Number and bytes of the groups of a shape, by the names that lead to them."""
    return {
        ".".join(name or kind for kind, name, *_ in group["path"]): (group["count"], group["bytes"])
        for group in (found or taken())["groups"]
        if group["shape"] == shape
    }


@pytest.mark.torch
def test_every_tensor_of_a_large_container_counts(program: Any) -> None:
    torch = pytest.importorskip("torch")
    program.kept = [torch.zeros(77, 90) for _ in range(500)]
    program.rows = [{"a": torch.zeros(90, 77), "b": torch.zeros(90, 77)} for _ in range(300)]
    assert groups([77, 90]) == {"kept.item": (500, 500 * 4 * 77 * 90)}
    each = 300 * 4 * 77 * 90
    assert groups([90, 77]) == {"rows.item.a": (300, each), "rows.item.b": (300, each)}


@pytest.mark.torch
def test_a_storage_counts_once_and_a_gradient_with_its_parameter(program: Any) -> None:
    torch = pytest.importorskip("torch")
    program.base = torch.zeros(333, 3001)
    program.views = [program.base[:, :3000] for _ in range(20)]
    program.net = torch.nn.Linear(301, 1009)
    program.net(torch.zeros(1, 301)).sum().backward()
    found = taken()
    assert groups([333, 3001], found) == {"base": (1, 4 * 333 * 3001)}
    assert groups([333, 3000], found).get("views.item", (20, 0)) == (20, 0)
    assert groups([1009, 301], found) == {
        "net._parameters.weight": (1, 4 * 1009 * 301),
        "net._parameters.weight.grad": (1, 4 * 1009 * 301),
    }


@pytest.mark.torch
def test_tensors_that_no_name_reaches_are_found_with_what_holds_them(program: Any) -> None:
    torch = pytest.importorskip("torch")

    class Node:
        pass

    gc.disable()
    try:
        for _ in range(50):
            node = Node()
            node.me, node.big = node, torch.zeros(711, 513)
        del node
        (group,) = [one for one in taken()["groups"] if one["shape"] == [711, 513]]
    finally:
        gc.enable()
        gc.collect()
    assert (group["count"], group["path"], group["inside"]) == (50, [], "Node")


@pytest.mark.torch
def test_tensors_of_a_suspended_generator_without_a_name(program: Any) -> None:
    torch = pytest.importorskip("torch")

    def prefetch() -> Any:
        ready = [torch.zeros(607, 311) for _ in range(30)]
        yield from ready

    class Node:
        pass

    gc.disable()
    try:
        node = Node()
        node.me, node.rows = node, prefetch()
        next(node.rows)
        del node
        (found,) = [one for one in taken()["groups"] if one["shape"] == [607, 311]]
    finally:
        gc.enable()
        gc.collect()
    assert (found["count"], found["path"]) == (30, [])
    assert found["inside"].startswith("generator test_tensors_of_a_suspended")


def test_arrays_count_by_the_memory_that_they_own(program: Any) -> None:
    numpy = pytest.importorskip("numpy")
    program.cache = {i: numpy.zeros((123, 4567)) for i in range(30)}
    program.views = [program.cache[0][:50] for _ in range(100)]
    program.heads = [numpy.zeros((51, 7001))[:1] for _ in range(40)]
    found = taken(with_walk=True)
    assert groups([123, 4567], found) == {"cache.item": (30, 30 * 8 * 123 * 4567)}
    assert groups([50, 4567], found).get("views.item", (100, 0)) == (100, 0)
    assert groups([1, 7001], found) == {"heads.item": (40, 40 * 8 * 51 * 7001)}


@pytest.mark.torch
def test_items_of_several_classes_at_one_place(program: Any) -> None:
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    rows = [[numpy.zeros((61, 803)), torch.zeros(61, 807), chr(97 + i) * 3001] for i in range(30)]
    program.mixed = [one for row in rows for one in row]
    found = taken()
    texts = [one for one in found["groups"] if one["type"] == "str"]
    (text,) = [one for one in texts if one["path"][0][1] == "mixed"]
    count, size_bytes = groups([61, 803], found)["mixed.item"]
    assert count == pytest.approx(30, rel=0.3)
    assert size_bytes == pytest.approx(30 * 8 * 61 * 803, rel=0.3)
    assert groups([61, 807], found) == {"mixed.item": (30, 30 * 4 * 61 * 807)}
    assert text["bytes"] == pytest.approx(30 * 3001, rel=0.3)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_without_a_shape_are_left_out_and_counted(program: Any) -> None:
    torch = pytest.importorskip("torch")
    rows = [torch.zeros(2, 3), torch.zeros(4, 3)]
    program.odd = [torch.nested.nested_tensor(rows) for _ in range(3)]
    program.plain = [torch.zeros(61, 809) for _ in range(20)]
    found = taken()
    assert groups([61, 809], found) == {"plain.item": (20, 20 * 4 * 61 * 809)}
    assert "3 tensors or arrays could not be read: RuntimeError" in found["notes"]


@pytest.mark.torch
def test_a_tensor_in_a_tuple_has_the_name_of_what_holds_the_tuple(program: Any) -> None:
    torch = pytest.importorskip("torch")

    class Node:
        pass

    gc.disable()
    try:
        for _ in range(20):
            node = Node()
            node.me, node.pair = node, (torch.zeros(709, 521), 1)
        del node
        (group,) = [one for one in taken()["groups"] if one["shape"] == [709, 521]]
    finally:
        gc.enable()
        gc.collect()
    assert (group["count"], group["path"], group["inside"]) == (20, [], "Node")


def test_objects_by_type(program: Any) -> None:
    class Record:
        def __init__(self) -> None:
            self.me = self

    # (More than any class of what other tests have left in this process.)
    program.records = [Record() for _ in range(100_000)]
    program.table = [list(range(100)) for _ in range(1000)]
    program.pairs = [([],) * 100 for _ in range(5000)]
    known = {name.rpartition(".")[2]: numbers for name, *numbers in taken()["types"]}
    count, size_bytes = known["Record"]
    assert count == 100_000
    assert size_bytes >= 100_000 * 32
    assert known["list"][1] >= 1000 * 100 * 8
    assert known["tuple"][0] >= 5000
    assert known["tuple"][1] >= 5000 * 100 * 8


def test_nothing_is_kept_and_no_code_of_the_program_runs(program: Any) -> None:
    ran = []

    class Odd:
        def __getattribute__(self, name: str) -> Any:
            ran.append(name)
            raise RuntimeError(name)

        def __eq__(self, other: object) -> bool:
            ran.append("__eq__")
            raise RuntimeError

        def __hash__(self) -> int:
            ran.append("__hash__")
            raise RuntimeError

        def __sizeof__(self) -> int:
            ran.append("__sizeof__")
            raise RuntimeError

    class Meta(type):
        def __hash__(cls) -> int:
            ran.append("hash of a class")
            raise RuntimeError

        def __eq__(cls, other: object) -> bool:
            ran.append("class equals")
            raise RuntimeError

    class Plain:
        pass

    program.odd = [Odd() for _ in range(2000)]
    program.classes = [Meta("Made", (), {}) for _ in range(3)]
    program.made = [kind() for kind in program.classes]
    numpy = pytest.importorskip("numpy")
    kind = Meta("Array", (numpy.ndarray,), {})
    program.arrays = [numpy.zeros((9, 999)).view(kind) for _ in range(3)]
    program.plain = [Plain() for _ in range(200)]
    watched = weakref.ref(program.plain[0])
    taken()
    assert ran == []
    del program.plain
    assert watched() is None


def test_without_a_walk_there_are_no_names(program: Any) -> None:
    program.kept = [[] for _ in range(10)]
    found = taken(with_walk=False)
    assert all(group["path"] == [] for group in found["groups"])
    assert found["types"]


@pytest.mark.torch
def test_a_census_without_time_has_the_largest_tensors_and_says_what_is_missing(
    program: Any,
) -> None:
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    program.small = [torch.zeros(3) for _ in range(1000)]
    program.large = [torch.zeros(77, 901) for _ in range(5)]
    program.array = numpy.zeros((3001, 901))
    arrays, walk = Arrays(), NameWalk(Places(), Arrays())
    walk.run()
    found = census(arrays, walk, with_types=False, until_s=0.0)
    assert groups([77, 901], found) == {"large.item": (5, 5 * 4 * 77 * 901)}
    assert groups([3001, 901], found) == {}
    (note,) = found["notes"]
    assert "small tensors" in note
    assert "arrays" in note
