"""What is in containers is read without code of the program, also where a slot is empty."""

from __future__ import annotations

import mmap
import subprocess
import sys
import types
from collections import namedtuple
from pathlib import Path
from typing import Any, ClassVar

import pytest

from memdiag.probe import plain_access
from memdiag.probe.kept_bytes import Arrays, per_item
from memdiag.probe.plain_access import device_getter, newest, oldest, size_getter

Pair = namedtuple("Pair", "first second")


def test_items_of_tuples_are_in_order() -> None:
    assert oldest((1, 2, 3), tuple, 2) == [1, 2]
    assert newest((1, 2, 3), tuple, 2) == [3, 2]
    assert oldest(Pair(1, 2), Pair, 9) == [1, 2]
    assert newest(Pair(1, 2), Pair, 1) == [2]
    assert oldest((), tuple, 5) == newest((), tuple, 5) == []


def test_mapped_memory_counts_until_it_is_closed() -> None:
    mapped = mmap.mmap(-1, 40_000)
    size = size_getter(mmap.mmap)
    assert size(mapped) == 40_000
    mapped.close()
    assert size(mapped) < 1000  # (its length is an error now)


class Lent(mmap.mmap):
    """As an array of CuPy: its memory is on a device, and it says so."""

    __cuda_array_interface__: ClassVar = {"version": 3}


def test_memory_that_is_lent_as_a_devices_is_on_a_device() -> None:
    assert device_getter(mmap.mmap) is None
    assert device_getter(list) is None
    on_device = device_getter(Lent)
    assert on_device is not None
    size_of, unit = on_device
    assert (size_of(Lent(-1, 40_000)), unit) == (40_000, 512)


@pytest.mark.parametrize(("kind", "on_device"), [(Lent, 79 * 512), (mmap.mmap, 0)])
def test_what_an_item_has_on_a_device_is_apart(kind: type[mmap.mmap], on_device: int) -> None:
    each = per_item([[kind(-1, 40_000) for _ in range(60)]], Arrays())
    assert each["device_bytes"] == on_device
    assert 40_000 <= each["bytes"] < 41_500
    assert each["kind"] == ("tensors" if on_device else "native")


def test_a_tuple_with_an_empty_slot_is_read() -> None:
    """The iterators of `zip_longest`, of which one has ended: Python crashes if one reads it."""
    code = """
import gc
from itertools import zip_longest
from memdiag.probe.plain_access import newest, oldest
pairs = zip_longest(reversed([1, 2, 3]), reversed([1]))
next(pairs), next(pairs)
inside = next(one for one in gc.get_referents(pairs) if len(gc.get_referents(one)) == 1)
assert type(inside) is tuple and len(inside) == 2
print(len(oldest(inside, tuple, 5)), len(newest(inside, tuple, 5)))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "1 1\n"), ran.stderr


def test_a_list_with_empty_slots_is_read() -> None:
    """The elements that a parser of XML has open: Python crashes if one reads the other slots."""
    code = """
import gc
from xml.etree.ElementTree import XMLPullParser
from memdiag.probe.kept_bytes import Arrays
from memdiag.probe.name_walk import NameWalk
from memdiag.probe.places import Places
parser = XMLPullParser(["end"])
parser.feed("<feed><arrival><line>5</line>")
todo, lists = [parser], []
for one in todo:
    inside = [o for o in gc.get_referents(one) if type(o) is not type and gc.is_tracked(o)]
    lists += [o for o in inside if type(o) is list]
    todo += [o for o in inside if type(o).__module__ in ("xml.etree.ElementTree", "builtins")][:20]
    if len(todo) > 200:
        break
print(any(len(gc.get_referents(one)) < len(one) for one in lists))
NameWalk(Places(), Arrays()).run()
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


def test_objects_of_all_classes_are_read() -> None:
    program = Path(__file__).parent / "programs" / "objects_of_all_classes.py"
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 500


@pytest.mark.parametrize("number", [0, 1, 7, 2000])
@pytest.mark.parametrize("kind", [list, tuple])
def test_the_oldest_and_the_newest_items_are_in_their_order(kind: type, number: int) -> None:
    container = kind(range(number))
    assert oldest(container, kind, 3) == [*container][:3]
    assert newest(container, kind, 3) == [*container][-3:][::-1]


MANY = "\n".join(f"    name{n}()" for n in range(600))


@pytest.mark.parametrize(
    ("body", "uses"),
    [
        ("model.eval()", False),
        ("model.exec(locals)", True),
        ("return eval('1')", True),
        ("return vars(model)", False),
        ("return {**vars(model.of(1, b=2)), 'a': dir(model)}", False),
        ("return vars()", True),
        ("return vars(model), vars()", True),
        ("return dir()", True),
        ("return locals()", True),
        ("return eval('1', {}), exec('1', {}, {})", False),
        ("return eval('1', None)", True),
        ("exec('1')", True),
        ("return list(map(vars, model))", True),
        ("return vars(*model)", True),
        ("return vars(model if model else 1)", True),
        ("return sys._getframe()", True),
        (f"model.eval()\n{MANY}\n    return eval('1')", True),
        (f"model.eval()\n{MANY}", False),
    ],
)
def test_a_method_named_eval_gives_no_local_variables(body: str, uses: bool) -> None:
    names: dict[str, Any] = {}
    exec(f"def run(model):\n    {body}", names)  # noqa: S102
    assert bool(plain_access.uses_locals(names["run"].__code__)) is uses


def test_a_class_in_c_that_was_never_used_has_no_attributes(any_python: str) -> None:
    # Before Python 3.10 the elements of a cache with a bound are of one without a dictionary.
    code = """
import functools, gc
from memdiag.probe import plain_access
def twice(n): return 2 * n
cache = functools.lru_cache(maxsize=4)(twice)
cache(3)
kinds = {type(one) for one in gc.get_referents(cache)} | {type(one) for one in gc.get_objects()}
for kind in kinds:
    plain_access.module_name(kind), plain_access.Fields(kind), plain_access.hides_memory(kind)
print(len(kinds) > 3)
"""
    root = str(Path(__file__).parents[2])
    ran = subprocess.run(
        [any_python, "-c", code],
        env={"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stderr, ran.stdout) == ("", "True\n")


def test_objects_in_c_with_a_dictionary_of_attributes_hide_memory_and_those_of_python_do_not() -> (
    None
):
    class Plain:
        pass

    class Made:
        def __new__(cls) -> Made:
            return object.__new__(cls)

    assert not any(map(plain_access.hides_memory, (Plain, Made, staticmethod, types.ModuleType)))
    tokenizers = pytest.importorskip("tokenizers")
    assert plain_access.hides_memory(tokenizers.Encoding)


def test_objects_of_cython_hide_memory_and_errors_of_a_program_do_not() -> None:
    class Failed(Exception):
        pass

    class Row(dict[str, int]):
        pass

    assert not any(map(plain_access.hides_memory, (Failed, Row)))
    neighbors = pytest.importorskip("sklearn.neighbors")
    assert plain_access.hides_memory(neighbors.KDTree)
