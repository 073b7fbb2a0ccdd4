"""Walks from the program's names: what grows is found under the name that holds it, and no code of
the program runs, nothing is kept alive, and nothing is changed."""

from __future__ import annotations

import collections
import contextvars
import functools
import gc
import itertools
import queue
import subprocess
import sys
import threading
import types
import weakref
from collections.abc import Callable
from itertools import pairwise
from textwrap import dedent
from typing import Any

import pytest

from memdiag.probe import graph_descent, name_walk
from memdiag.probe.graph_descent import identity
from memdiag.probe.graph_growth import nodes_since
from memdiag.probe.kept_bytes import Arrays, Kept, of_object, per_item, per_link
from memdiag.probe.name_walk import NameWalk
from memdiag.probe.places import Place, Places
from memdiag.probe.plain_access import container_name


def grown(
    change: Callable[[int], object], walks: int = 4, *, more_items: int = 0
) -> dict[str, Place]:
    """The places that grow while `change` is called ten times between two walks, by their path.

    Without those that only pytest's own frames hold.
    """
    places = Places()
    places.visit_more_items(more_items)
    for number in range(1, walks + 1):
        for i in range(10):
            change(10 * number + i)
        walked(places, number)
    return {
        ".".join(one.name for one in place.path()): place
        for place in places.growing()
        if place.path()[0].file
        and place.path()[0].name not in ("places", "walk", "change", "found", "number", "nodes")
    }


def walked(places: Places, number: int) -> NameWalk:
    """Walk number `number`, with the sizes of its places."""
    walk = NameWalk(places, Arrays())
    walk.run()
    nodes: set[int] = set()
    for place, found in walk.found.items():
        found.set_size_of(place, number, nodes)
    return walk


def visits() -> int:
    """What a walk visits here: also what other tests have left in this process."""
    walk = NameWalk(Places(), Arrays())
    walk.run()
    assert not walk.is_cut
    return walk.visits


def run_in(program: types.ModuleType, source: str) -> types.ModuleType:
    exec(compile(source, str(program.__file__), "exec"), program.__dict__)  # noqa: S102
    return program


def test_a_list_of_a_module_is_found_by_its_name(program) -> None:
    run_in(program, "history = []\nfixed = [1, 2, 3]")
    found = grown(lambda i: program.history.append([i]))
    assert list(found) == ["history"]
    assert found["history"].unit == "items"
    assert found["history"].sizes == [(n, 10.0 * n) for n in range(1, 5)]
    assert found["history"].owner == "a_training_program"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("store = {}\ndef grow(i): store[i] = [i]", "store"),
        ("class C:\n  rows = []\ndef grow(i): C.rows.append([i])", "C.rows"),
        (
            (
                "class C:\n  def __init__(self): self.rows = []\nc = C()\n"
                "def grow(i): c.rows.append([i])"
            ),
            "c.rows",
        ),
        (
            (
                "class C:\n  __slots__ = ('rows',)\nc = C()\nc.rows = []\n"
                "def grow(i): c.rows.append([i])"
            ),
            "c.rows",
        ),
        (
            "def make():\n  seen = []\n  return lambda i: seen.append([i])\ngrow = make()",
            "grow.seen",
        ),
        ("def grow(i, acc=[]): acc.append([i])", "grow.acc"),
        (
            (
                "import types\nstate = types.SimpleNamespace(scores=[])\n"
                "def grow(i): state.scores.append([i])"
            ),
            "state.scores",
        ),
        ("state = {'scores': []}\ndef grow(i): state['scores'].append([i])", "state.scores"),
        ("rows = set()\ndef grow(i): rows.add((i, 'x'))", "rows"),
        ("rows = []\ndef grow(i):\n  global rows\n  rows = rows + [[i]]", "rows"),
        ("text = ''\ndef grow(i):\n  global text\n  text += 'line of a log\\n' * 200", "text"),
        (
            (
                "class C: pass\nc = C()\n"
                "def grow(i):\n  for k in range(9): setattr(c, f'h{9 * i + k}', [i])"
            ),
            "c",
        ),
        (
            (
                "class Node:\n  def __init__(self, prev): self.prev = prev\nlast = None\n"
                "def grow(i):\n  global last\n  last = Node(last)"
            ),
            "last.prev",
        ),
        (
            (
                "import collections\nby_class = collections.defaultdict(list)\n"
                "for i in range(30): by_class[i]\n"
                "def grow(i): by_class[i % 30].append([i])"
            ),
            "by_class.",
        ),
        (
            (
                "import io\nclass Log:\n  def __init__(self): self.stream = io.BytesIO()\n"
                "log = Log()\ndef grow(i): log.stream.write(bytes(2000))"
            ),
            "log.stream",
        ),
        (
            "import array\nrows = array.array('d')\ndef grow(i): rows.extend([1.0] * 200)",
            "rows",
        ),
        (
            (
                "def produce():\n  ready = []\n  while True:\n    ready.append([1])\n    yield\n"
                "source = produce()\ndef grow(i): next(source)"
            ),
            "source.ready",
        ),
        (
            (
                "from xml.etree.ElementTree import Element, SubElement\nroot = Element('run')\n"
                "for i in range(100): SubElement(root, 'step')\n"
                "def grow(i): SubElement(root, 'step')"
            ),
            "root",
        ),
    ],
)
def test_each_way_to_hold_objects_has_its_name(program, source: str, name: str) -> None:
    run_in(program, source)
    assert list(grown(program.grow)) == [name]


def test_containers_of_the_standard_library(program) -> None:
    @functools.cache
    def encode(i: int) -> list[int]:
        return [i]

    program.encode, program.jobs = encode, queue.Queue()
    program.last = collections.deque(maxlen=20)

    def grow(i: int) -> None:
        encode(i)
        program.jobs.put([i])
        program.last.append([i])

    assert sorted(grown(grow)) == ["encode.encode", "jobs.queue"]


def test_containers_have_the_name_of_pythons_own_class(program) -> None:
    run_in(program, "class Calls(list): pass\nclass Net: pass")
    named = {
        container_name(one)
        for one in (program.Calls(), collections.Counter(), functools.cache(len), program.Net())
    }
    assert named == {"list", "Counter", "_lru_cache_wrapper", "attributes of Net"}


def test_names_of_the_program_come_before_those_of_libraries(program) -> None:
    run_in(program, "class Trainer: pass\ntrainer = Trainer()\ntrainer.state = {'rows': [[]]}")
    library: dict[str, Any] = {"__name__": "a_library"}
    source = "def step(rows, look):\n  look()\n"
    exec(compile(source, "/usr/lib/site-packages/a_library.py", "exec"), library)  # noqa: S102
    places = Places()
    for number in range(1, 5):
        program.trainer.state["rows"] += [[i] for i in range(10)]

        def look() -> None:
            walk = NameWalk(places, Arrays())
            walk.run()
            for place, found in walk.found.items():
                place.measured(number, "items", found.items)  # noqa: B023 - called in the loop

        library["step"](program.trainer.state["rows"], look)
    names = [[one.name for one in place.path()] for place in places.growing()]
    assert ["trainer", "state", "rows"] in names
    assert ["rows"] not in names


def test_what_several_places_keep_counts_once(program) -> None:
    run_in(program, "first = [bytearray(5000) for _ in range(50)]\nsecond = [(x,) for x in first]")
    counted = Kept(Arrays())
    each = [
        per_item([rows], Arrays(), counted)["bytes"] for rows in (program.first, program.second)
    ]
    assert 5000 < each[0] < 5200
    assert each[1] < 200


def test_what_a_context_variable_is_set_to(program) -> None:
    run_in(program, "from contextvars import ContextVar\nscopes = ContextVar('scopes', default=())")

    def enter(number: int) -> None:
        program.scopes.set((*program.scopes.get(), [number]))

    (place,) = contextvars.copy_context().run(grown, enter).values()
    assert [(one.kind, one.name) for one in place.path()] == [
        ("global", "scopes"),
        ("wrapped", "value"),
    ]


def test_variables_of_one_name_in_several_generators_have_places_of_their_own(program) -> None:
    run_in(
        program,
        """
def inner():
    kept = []
    while True:
        kept.append([1])
        yield
def middle(source):
    while True:
        yield next(source)
def outer(source):
    while True:
        yield next(source)
source = outer(middle(inner()))
""",
    )
    assert list(grown(lambda _: next(program.source))) == ["source.source.source.kept"]


def test_what_a_call_of_one_step_refers_to_has_the_name_of_what_has_held_it(program) -> None:
    run_in(
        program,
        """
def train(look):
    rows = [[] for _ in range(3)]
    for number in range(60):
        (add, append)[number // 10 % 2](rows, number, look)
def add(rows, number, look):
    row = rows[number % 3]
    row.append([number])
    if number % 10 == 9:
        look()
def append(rows, number, look):
    row = rows[number % 3]
    row.append([number])
    if number % 10 == 9:
        look()
""",
    )
    places, walks = Places(), iter(range(1, 9))

    def look() -> None:
        walk = NameWalk(places, Arrays())
        walk.run()
        number = next(walks)
        for place, found in walk.found.items():
            found.set_size_of(place, number, set())

    program.train(look)
    paths = [[one.name for one in place.path()] for place in places.growing()]
    assert ["rows", ""] in paths
    assert not any(path[0] == "row" for path in paths)


def test_of_many_long_lists_few_items_each_are_visited(program) -> None:
    program.players = [[[n] for n in range(300)] for _ in range(100)]
    before = visits()
    del program.players[10:]
    assert before - visits() < 90 * 10
    program.players += [[[n] for n in range(300)] for _ in range(90)]
    found = grown(lambda i: [player.append([i]) for player in program.players])
    (place,) = (place for name, place in found.items() if name.startswith("players"))
    assert place.sizes[-1][1] - place.sizes[0][1] == 3 * 10 * 100


def test_a_coroutine_that_waits_has_the_names_of_one_that_runs(program) -> None:
    run_in(
        program,
        """
import asyncio
async def serve(look):
    requests = []
    async def answer():
        for number in range(40):
            requests.append([number])
            await asyncio.sleep(0)
            if number % 10 == 9:
                await (look() if number % 20 == 9 else ask(look))
    await asyncio.gather(answer())
async def ask(look):
    await asyncio.get_running_loop().run_in_executor(None, lambda: asyncio.run(look()))
""",
    )
    places = Places()
    numbers = iter(range(1, 9))

    async def look() -> None:
        number = next(numbers)
        walk = NameWalk(places, Arrays())
        walk.run()
        for place, found in walk.found.items():
            place.measured(number, *found.size())

    program.asyncio.run(program.serve(look))
    growing = [[(one.kind, one.name) for one in place.path()] for place in places.growing()]
    assert [("local", "requests")] in growing


def test_what_was_measured_is_freed_without_a_collection(program) -> None:
    run_in(program, "class Row: pass\nrows = [Row() for _ in range(50)]\nsecond = rows[:]")
    gone = [weakref.ref(row) for row in program.rows]
    gc.collect()
    gc.disable()
    try:
        counted = Kept(Arrays())
        per_item([program.rows], Arrays(), counted)
        of_object(program.second, Arrays(), counted)
        del counted
        program.rows.clear()
        program.second.clear()
        assert [one for one in gone if one() is not None] == []
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("{'step': i, 'rows': bytearray(5000)}", "native"),
        ("(i, [str(i + k) for k in range(99)])", "python_objects"),
    ],
)
def test_the_kind_is_that_of_most_bytes(program, item: str, kind: str) -> None:
    run_in(program, f"rows = [{item} for i in range(50)]")
    assert per_item([program.rows], Arrays())["kind"] == kind


@pytest.mark.parametrize(
    ("item", "through"),
    [
        ("numpy.ones(5000)[:5]", "view"),
        ("numpy.ones(5000)[:4000]", ""),
        ("numpy.ones((50, 100)).T", ""),
        ("failed()", "traceback"),
        ("ValueError('x' * 5000)", ""),
    ],
)
def test_what_leads_to_bytes_that_nobody_needs(program, item: str, through: str) -> None:
    source = """
    import numpy
    def failed():
        rows = numpy.ones(5000)
        try:
            raise ValueError(len(rows))
        except ValueError as error:
            return error
    """
    run_in(program, dedent(source) + f"rows = [{item} for i in range(50)]")
    assert per_item([program.rows], Arrays())["through"] == through


def test_a_part_of_a_tensor_keeps_all_of_it(program) -> None:
    pytest.importorskip("torch")
    run_in(program, "import torch\nrows = [torch.ones(5000)[:5] for i in range(50)]")
    assert per_item([program.rows], Arrays())["through"] == "view"
    run_in(program, "rows = [torch.ones(5000) for i in range(50)]")
    assert per_item([program.rows], Arrays())["through"] == ""


def test_locals_of_running_functions_and_of_other_threads(program) -> None:
    run_in(
        program,
        """
def train(between):
    losses = []
    def grow(i):
        losses.append([i])
    return between(grow)

def serve(step, done):
    requests = []
    while not done.is_set():
        step.acquire()
        requests.append([1])
""",
    )
    assert "losses" in {path.rpartition(".")[2] for path in program.train(grown)}
    step, done = threading.Semaphore(0), threading.Event()
    thread = threading.Thread(target=program.serve, args=(step, done))
    thread.start()
    frame = sys._current_frames

    def grow(_: int) -> None:
        step.release()
        while step._value:  # until the thread has taken it
            pass

    try:
        assert "requests" in grown(grow)
    finally:
        done.set()
        step.release()
        thread.join()
    assert frame is sys._current_frames


def test_variables_of_several_functions_that_have_one_name(program) -> None:
    run_in(
        program,
        """
def collect(between):
    states = []
    def grow(i):
        states.append([i])
        if i % 10 == 9:
            fit(i)
    return between(grow)

def fit(states):
    return states
""",
    )
    found = program.collect(grown)
    assert [found[path].owner for path in found if path.endswith("states")] == ["collect"]
    places = Places()
    for number, name in enumerate(("collect", "fit", "collect"), 1):
        places.child(places.root, ("local", "states", name)).measured(number, "items", number)
    sizes = [place.sizes for place in (places.root.children or {}).values()]
    assert sizes == [[(1, 1), (3, 3)], [(2, 2)]]


def test_calls_that_do_not_return_are_a_place(program) -> None:
    run_in(
        program,
        """
import queue
import threading
def fill(ahead, batch):
    for _ in range(3):
        ahead.put(batch)  # line 6
""",
    )
    queues: list[queue.Queue[Any]] = []

    def start(i: int) -> None:
        queues.append(program.queue.Queue(maxsize=1))
        thread = program.threading.Thread(target=program.fill, args=(queues[-1], [i]), daemon=True)
        thread.start()
        while not queues[-1].full():  # until it waits
            pass

    try:
        place = grown(start)["fill"]
    finally:
        for one in queues:
            one.get(), one.get(), one.get()
    assert (place.kind, place.unit) == (name_walk.RUNNING, "items")
    assert place.line == 6
    assert [size for _, size in place.sizes] == [10.0, 20.0, 30.0, 40.0]


def test_what_is_bounded_or_comes_and_goes_does_not_grow(program) -> None:
    program.outputs, program.window = [], collections.deque(maxlen=15)

    def change(i: int) -> None:
        program.outputs.append([i])
        program.window.append([i])
        if i % 7 == 0:
            program.outputs.clear()

    assert grown(change, walks=8) == {}


def test_walk_keeps_no_object_alive(program) -> None:
    class Thing:
        pass

    def train(look: Callable[[], None]) -> weakref.ref[Thing]:
        thing = Thing()
        seen = weakref.ref(thing)
        look()
        del thing
        return seen

    run_in(program, "")
    places = Places()

    def look() -> None:
        walk = NameWalk(places, Arrays())
        walk.run()
        assert walk.visits > 0

    assert train(look)() is None


def test_locals_that_the_program_has_taken_stay_as_they_are(program) -> None:
    run_in(
        program,
        """
def train(look):
    rate = 0.1
    config = locals()
    steps = 3
    look()
    return config
""",
    )

    def look() -> None:
        NameWalk(Places(), Arrays()).run()

    alone, seen = program.train(lambda: None), program.train(look)
    assert list(alone) == list(seen)


def test_no_code_of_the_program_runs(program) -> None:
    run_in(
        program,
        """
ran = []

class Meta(type):
    def __getattribute__(cls, name):
        ran.append(("class", name))
        return super().__getattribute__(name)
    def __instancecheck__(cls, one): ran.append("instancecheck"); return False
    def __hash__(cls): ran.append("hash"); return 1
    def __eq__(cls, other): ran.append("eq"); return False

class Hostile(metaclass=Meta):
    __slots__ = ("inner",)
    def __getattr__(self, name): ran.append(name); raise RuntimeError
    def __getattribute__(self, name): ran.append(name); raise RuntimeError
    def __len__(self): ran.append("len"); return -1
    def __repr__(self): ran.append("repr"); raise RuntimeError
    def __sizeof__(self): ran.append("sizeof"); return -1
    def __hash__(self): ran.append("hash"); return 1
    def __eq__(self, other): ran.append("eq"); raise RuntimeError
    def __bool__(self): ran.append("bool"); raise RuntimeError
    def __iter__(self): ran.append("iter"); raise RuntimeError

class Liar(list):
    def __len__(self): ran.append("len"); return 10**9
    def __iter__(self): ran.append("iter"); raise RuntimeError
    def __getitem__(self, at): ran.append("getitem"); raise RuntimeError
    def __sizeof__(self): ran.append("sizeof"); return -1
    @property
    def __dict__(self): ran.append("dict"); return {}
    @property
    def __class__(self): ran.append("class"); return int

class Keyed(dict):
    def items(self): ran.append("items"); raise RuntimeError
    def __missing__(self, key): ran.append("missing"); raise RuntimeError

things = [Hostile(), Liar([1, 2]), Keyed(a=1)]
table = {Hostile(): Hostile()}
lie, keyed = Liar(), Keyed()
ran.clear()
""",
    )
    before = list(program.ran)

    def grow(i: int) -> None:
        list.append(program.lie, [i])
        dict.__setitem__(program.keyed, i, [i])

    found = grown(grow)
    assert {"lie", "keyed"} <= set(found)
    for thing in (program.things, program.table, program.lie, program.keyed):
        per_item([thing], Arrays())
        of_object(thing, Arrays())
    assert program.ran == before


def test_a_list_of_a_million_items_is_looked_at_in_part(program) -> None:
    program.many = []
    without, walk = NameWalk(Places(), Arrays()), NameWalk(Places(), Arrays())
    without.run()
    program.many = [[i] for i in range(1_000_000)]
    walk.run()
    # (Pytest may hold the module, too, and others may have a name like this.)
    assert 1_000_000 in [one.items for place, one in walk.found.items() if place.name == "many"]
    assert walk.visits - without.visits < 10_000
    assert per_item([program.many], Arrays())["bytes"] == pytest.approx(64 + 56 + 28 - 28, abs=40)


@pytest.mark.parametrize(("items", "is_kept"), [(90, True), (200, False)])
def test_sizes_of_all_items_are_kept_where_more_are_visited(
    program, items: int, is_kept: bool
) -> None:
    run_in(
        program,
        "class Subject:\n  def __init__(self): self.applied = []\n"
        f"subjects = [Subject() for _ in range({items})]\n"
        "def grow(i): [one.applied.append([i]) for one in subjects]",
    )
    places = Places()
    for number in range(1, 5):
        program.grow(number)
        if number == 4:
            places.visit_more_items(5000)
        walk = walked(places, number)
    (lists,) = (one for one in walk.found if one.name == "applied" and one.path()[0].file)
    assert len(lists.sizes) == (4 if is_kept else 1)


def test_links_behind_the_items_of_a_full_container_are_counted(program) -> None:
    run_in(
        program,
        "import collections\nclass Transition:\n"
        "  def __init__(self, before): self.before = before\n"
        "recent = collections.deque(maxlen=500)\n"
        "def grow(i):\n  for _ in range(20):\n"
        "    recent.append(Transition(recent[-1] if recent else None))",
    )
    found = grown(program.grow, walks=9)
    links = [place for place in found.values() if place.is_chain()]
    assert {place.path()[0].name for place in links} == {"recent"}
    newest = max(links, key=lambda place: place.sizes[-1][0])
    assert newest.sizes[-1][1] - newest.sizes[-2][1] == 200


def test_links_are_one_place_soon_after_the_container_is_full(program) -> None:
    run_in(
        program,
        "import collections\nclass Transition:\n"
        "  def __init__(self, before): self.before = before\n"
        "recent = collections.deque(maxlen=2000)\n"
        "def grow(i):\n  for at in range(60):\n"
        "    recent.append(Transition(recent[-1] if recent else None))\n"
        "    if at % 2: vars(recent[-1])",  # some have a dictionary, which Python 3.11 makes late
    )
    found = grown(program.grow, walks=7)
    (links,) = (place for place in found.values() if place.unit == "objects")
    assert links.is_chain()
    assert links.sizes[-1][1] - links.sizes[-2][1] == pytest.approx(600, abs=50)


def test_what_is_set_on_arrays_and_tensors(program) -> None:
    np, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")

    class Quantity(np.ndarray):  # type: ignore[misc,name-defined]
        pass

    program.heat = np.zeros(900).view(Quantity)
    program.weight = torch.nn.Parameter(torch.zeros(3))
    program.weight.history = []

    def grow(i: int) -> None:
        newer = np.zeros(900).view(Quantity)
        newer.source, program.heat = program.heat, newer
        program.weight.history.append([i])

    found = grown(grow)
    assert set(found) == {"heat.source", "weight.history"}
    assert found["heat.source"].sizes[-1][1] == pytest.approx(40 * 900 * 8, rel=0.1)
    kept = Kept(Arrays())
    kept.add(program.weight)
    kept.add(program.heat)
    assert kept.total()[0] > 41 * 900 * 8 + 40 * sys.getsizeof([0])


def test_what_is_at_a_place_of_a_tuple_is_not_estimated(program) -> None:
    run_in(program, "state = (0, [])\ndef grow(i): state[1].append([i])")
    places = Places()
    for number in range(1, 5):
        program.grow(number)
        if number == 4:
            places.visit_more_items(5000)
        walk = walked(places, number)
    (rows,) = (one for one in walk.found if [p.name for p in one.path()] == ["state", "1"])
    assert rows.sizes == [(number, number) for number in range(1, 5)]


@pytest.mark.slow
def test_what_items_grow_by_is_estimated_from_many_of_them(program) -> None:
    run_in(
        program,
        "import functools\nclass Document:\n  @functools.cached_property\n"
        "  def words(self): return bytearray(3000)\n"
        "documents = [Document() for _ in range(20_000)]\n"
        "def grow(i): documents[500 + i].words",
    )
    assert not grown(program.grow)
    found = grown(lambda i: program.grow(i + 500), more_items=5000)
    (place,) = (one for one in found.values() if one.path()[0].name == "documents")
    assert place.name == "words"
    # (Of ten at each walk, those among the 5,000 stand for the others.)
    assert place.sizes[-1][1] - place.sizes[0][1] == pytest.approx(30 * 3000, rel=0.5)


def test_items_of_an_array_grow_also_within_what_says_its_bytes(program) -> None:
    pandas = pytest.importorskip("pandas")
    program.pages = pandas.Index([], dtype="str")

    def grow(i: int) -> None:
        program.pages = program.pages.append(pandas.Index([f"{i} {k}" * 99 for k in range(200)]))

    found = grown(grow, walks=6).values()
    (place,) = (one for one in found if one.path()[0].name == "pages" and one.name != "_isnan")
    assert place.unit == "items"


@pytest.mark.slow
def test_objects_in_an_array_are_items(program) -> None:
    np = pytest.importorskip("numpy")
    program.ring = np.empty(20_000, dtype=object)

    def grow(i: int) -> None:
        program.ring[20 * i : 20 * i + 20] = [(i, bytes(2000)) for _ in range(20)]

    found = grown(grow, more_items=5000)
    assert [place.name for place in found["ring."].path()] == ["ring", ""]
    assert found["ring."].sizes[-1][1] == pytest.approx(800, rel=0.2)
    assert (
        per_item([[program.ring[:1].copy(), program.ring[400:420].copy()]], Arrays())["bytes"]
        > 2000
    )


def test_an_array_of_objects_that_grows_keeps_them(program) -> None:
    np = pytest.importorskip("numpy")
    program.rows = np.empty(0, dtype=object)

    def grow(_: int) -> None:
        row = np.empty(1, dtype=object)
        row[0] = np.ones(500)
        program.rows = np.append(program.rows, row)

    place = grown(grow)["rows"]
    assert (place.unit, place.sizes[0][1], place.sizes[-1][1]) == ("items", 10, 40)
    assert per_item([program.rows], Arrays())["bytes"] == pytest.approx(4000, rel=0.05)


def test_large_programs_are_cut_off_and_their_last_level_is_left_out(program, monkeypatch) -> None:
    monkeypatch.setattr(name_walk, "_MOST_VISITS", 1000)
    program.wide = {i: {k: [k] for k in range(60)} for i in range(99)}
    program.deep = [program.wide, *({k: [[k]] for k in range(90)} for _ in range(95))]
    places = Places()
    for number in range(1, 4):
        walk = NameWalk(places, Arrays())
        walk.run()
        assert walk.is_cut
        for place, found in walk.found.items():
            place.measured(number, "objects", found.objects)
    assert not [place for place in places.growing() if place.path()[0].name in ("wide", "deep")]


LINKED = "class Link:\n  def __init__(self, before): self.before = before\nlast = None\nstate = ()"


def test_a_chain_that_is_too_long_to_visit_grows_by_its_new_links(program, monkeypatch) -> None:
    run_in(program, LINKED)
    monkeypatch.setattr(name_walk, "_MOST_VISITS", visits() + 3000)
    for _ in range(20_000):
        program.last = program.Link(program.last)
    found = grown(lambda _: setattr(program, "last", program.Link(program.last)))
    (place,) = (place for path, place in found.items() if path.startswith("last"))
    assert place.name == "before"
    assert [after[1] - before[1] for before, after in pairwise(place.sizes)] == [10.0] * 3


def test_a_chain_that_goes_on_at_its_other_end_is_not_known_beyond_the_limit(
    program, monkeypatch
) -> None:
    monkeypatch.setattr(name_walk, "_MOST_VISITS", 3000)
    run_in(program, LINKED)
    program.last = end = program.Link(None)
    for _ in range(20_000):
        end.before = end = program.Link(None)

    def go_on(_: int) -> None:
        nonlocal end
        end.before = end = program.Link(None)

    assert not [path for path in grown(go_on) if path.startswith("last")]


def test_tuples_in_tuples_are_a_chain(program) -> None:
    run_in(program, LINKED)
    found = grown(lambda i: setattr(program, "state", ([i], program.state)))
    (place,) = found.values()
    assert [one.name for one in place.path()] == ["state", "1"]
    assert place.is_chain()
    assert place.unit == "objects"


def test_links_that_know_their_neighbors_on_both_sides_keep_their_own_bytes(program) -> None:
    class Link:
        before = after = None

        def __init__(self) -> None:
            self.data = bytes(3000)

    links = [Link() for _ in range(50)]
    for one, other in pairwise(links):
        one.before, other.after = other, one
    about = per_link(links[:8], Arrays())
    assert about["bytes"] == pytest.approx(3000, rel=0.2)


def test_objects_of_another_class_under_the_same_name_are_no_chain(program) -> None:
    program.log = types.SimpleNamespace(queue=queue.Queue())
    found = grown(program.log.queue.put)
    assert list(found) == ["log.queue.queue"]
    assert not found["log.queue.queue"].is_chain()


@pytest.mark.slow
def test_names_that_come_and_go_do_not_accumulate(program) -> None:
    program.requests = {}
    places = Places()
    for number in range(1, 25):
        program.requests = {f"request-{number}-{i}": [i] for i in range(20)}
        walk = NameWalk(places, Arrays())
        walk.run()
        for place in walk.found:
            at = place
            while at is not None:
                at.seen = number
                at = at.parent
        places.forget(number)
    requests = next(c for c in places.root.children.values() if c.name == "requests")
    assert len(requests.children) <= 20 * 9


def test_what_is_forgotten_does_not_wait_for_a_collection() -> None:
    """It would be counted as objects of the program, which grow then."""
    places = Places()
    for number in range(50):
        link = places.child(places.root, ("global", f"request{number}"))
        for label in ("first", "parent", "parent", "parent"):  # a chain leads back to itself
            link = places.child(link, ("attribute", label))
        assert link.is_chain()
        link.seen = link.parent.seen = link.parent.parent.seen = 1
    del link
    gc.collect()
    gc.disable()
    try:
        places.forget(99)
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert not places.root.children


def test_bytes_per_item_leave_out_what_the_items_share() -> None:
    np = pytest.importorskip("numpy")
    shared = np.zeros(100_000)
    rows = [{"batch": shared, "own": np.zeros(500)} for _ in range(100)]
    each = per_item([rows], Arrays())["bytes"]
    assert each == pytest.approx(4000 + 112 + 200, rel=0.15)


@pytest.mark.parametrize("kind", [dict, collections.Counter])
def test_texts_that_are_keys_count_unless_the_items_share_them(kind: type) -> None:
    def row(number: int) -> dict[str, int]:
        return kind({f"a word of row {number}, {n}": n for n in range(20)})

    words = row(0)
    (own, shared) = [row(n) for n in range(80)], [kind(words) for _ in range(80)]
    size = sys.getsizeof(own[-1])
    texts = sum(map(sys.getsizeof, own[-1]))
    assert per_item([own], Arrays())["bytes"] == pytest.approx(size + texts, rel=0.2)
    assert per_item([shared], Arrays())["bytes"] == pytest.approx(size, rel=0.05)


def test_what_is_in_use_elsewhere_counts_for_the_items() -> None:
    latest: dict[int, bytearray] = {}
    rows = []
    for number in range(200):
        latest[number % 10] = answer = bytearray(5000)
        rows.append((latest, answer))
    assert per_item([rows], Arrays())["bytes"] == pytest.approx(5000, rel=0.05)


def test_pairs_of_a_dictionary_are_not_objects_of_it() -> None:
    counts = dict.fromkeys(range(1000, 11_000), 0.0)
    slot, key = sys.getsizeof(counts) / len(counts), 32  # of 28 bytes, in units of 16
    assert per_item([counts], Arrays())["bytes"] == pytest.approx(slot + key, abs=2)


def test_classes_that_are_made_for_each_item_count() -> None:
    names = [[str(k) for k in range(at, at + 50)] for at in range(99)]
    kinds = {type("Batch", (), {"names": one}): 1 for one in names}
    assert 3000 < per_item([kinds], Arrays())["bytes"] < 6000
    shared = type("Batch", (), {"names": list(range(50))})
    assert per_item([[shared() for _ in range(99)]], Arrays())["bytes"] < 100


def test_items_that_refer_to_their_container_keep_their_own_bytes(program) -> None:
    run_in(program, "class Registry:\n  def __init__(self): self.entries = {}\n")
    registry = program.Registry()
    for number in range(100):
        registry.entries[number] = [registry, bytearray(5000)]
    assert 5000 < per_item([registry.entries], Arrays())["bytes"] < 5300


def test_modules_that_are_named_as_frameworks_do_no_harm(program, monkeypatch) -> None:
    for name in ("numpy", "torch"):
        fake = types.ModuleType(name)
        fake.ndarray = fake.Tensor = int  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, fake)
    program.history = []
    assert list(grown(lambda i: program.history.append([i]))) == ["history"]


def test_text_in_memory_grows_by_its_characters(program) -> None:
    run_in(program, "import io\ntable = io.StringIO()\n")
    sizes = grown(lambda i: program.table.write("x" * 2000))["table"].sizes
    assert sizes[-1][1] - sizes[0][1] == 30 * 2000


def test_attributes_of_large_objects_have_their_names(program) -> None:
    run_in(program, "class Axes: pass\naxes = Axes()\n")
    vars(program.axes).update({f"_setting_{n}": [n] for n in range(80)}, _children=[])
    assert list(grown(lambda i: program.axes._children.append([i]))) == ["axes._children"]


def test_a_view_keeps_the_array_that_owns_its_memory() -> None:
    np = pytest.importorskip("numpy")
    views = [np.zeros(1000)[:2] for _ in range(50)]
    assert per_item([views], Arrays())["bytes"] == pytest.approx(8000, rel=0.05)


def test_python_objects_take_what_the_allocator_gives(program) -> None:
    rows = [{"loss": float(i), "name": f"epoch {i}"} for i in range(200)]
    gc.collect()
    before = sys.getallocatedblocks()
    more = [{"loss": float(i), "name": f"epoch {i}"} for i in range(200, 400)]
    blocks = (sys.getallocatedblocks() - before) / 200
    assert blocks == pytest.approx(4, abs=0.3)
    about = per_item([rows + more], Arrays())
    assert about["type"] == "dict"
    assert about["bytes"] == pytest.approx(232 + 24 + 58 + 8, rel=0.25)


@pytest.mark.torch
class TestTensors:
    @pytest.fixture
    def torch(self, monkeypatch) -> Any:
        # The graphs of other tests in this process are gone.
        monkeypatch.setattr(graph_descent.DEEP, "deepest", None)
        monkeypatch.setattr(graph_descent.DEEP, "spent", 0)
        return pytest.importorskip("torch")

    def test_kept_losses_hold_their_graph(self, program, torch) -> None:
        model = torch.nn.Linear(8, 1)
        program.losses = []

        def grow(_: int) -> None:
            loss = model(torch.ones(4, 8)).pow(2).mean()
            loss.backward()
            program.losses.append(loss)

        assert "losses" in grown(grow)
        about = per_item([program.losses], Arrays())
        assert about["kind"] == "graph"
        assert about["bytes"] > 3 * 700

    def test_what_one_more_link_of_a_chain_keeps(self, torch) -> None:
        model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(30)))
        links: list[Any] = [()]
        for _ in range(40):
            outputs = tuple(model(torch.ones(4, 8)) for _ in range(2))
            outputs[0].sum().backward(retain_graph=True)
            links.insert(0, (outputs, links[0]))
        del outputs
        # Each has two outputs, each of these a graph of 60 nodes (of which 30 have two tensors).
        about = per_link(links[:8], Arrays())
        assert about["kind"] == "graph"
        per_graph = 30 * 2 * 780
        assert 2 * per_graph < about["bytes"] < 4 * per_graph
        assert per_link([*links[:1]], Arrays())["bytes"] > 0

    def test_a_graph_that_a_newer_tensor_leads_to_is_that_of_the_older_one(self, program) -> None:
        import torch

        program.total, program.error = torch.ones(3, requires_grad=True), None
        places = Places()
        for number in range(1, 7):
            for _ in range(20):
                program.total = program.total * 1.01
            # (Names of a module are visited in their order: `error` then comes first.)
            if number == 4:
                program.error = program.total - 1
                program.total = vars(program).pop("total")
            else:
                program.error = None
            walk = NameWalk(places, Arrays())
            walk.run()
            for place, found in walk.found.items():
                found.set_size_of(place, number, set())
        (total,) = (one for one in places.growing() if one.name == "total" and one.path()[0].file)
        assert [walk for walk, _ in total.sizes] == [1, 2, 3, 4, 5, 6]

    def test_a_running_total_grows_by_its_nodes(self, program, torch) -> None:
        weight = torch.ones(4, requires_grad=True)
        program.total = torch.zeros(())

        def grow(_: int) -> None:
            program.total = program.total + (weight * 2).sum()

        found = grown(grow)
        assert found["total"].unit == "bytes"

    def test_a_graph_that_is_too_large_from_the_start_grows_by_its_new_nodes(
        self, program, torch
    ) -> None:
        weight = torch.ones(1, requires_grad=True)
        program.total = torch.zeros(())

        def grow(number: int) -> None:
            for _ in range(6000 if number == 10 else 50):
                program.total = program.total + weight.sum()

        sizes = [size for _, size in grown(grow, walks=6)["total"].sizes]
        steps = [after - before for before, after in itertools.pairwise(sizes)]
        assert steps == pytest.approx([10 * 50 * 2 * 780] * 5, rel=0.05)

    def test_averages_with_their_graphs_grow_by_what_they_share_once(self, program, torch) -> None:
        weights = [torch.ones(1, requires_grad=True) for _ in range(40)]
        program.shadow = {f"layer.{n}": torch.zeros(1) for n in range(40)}

        def grow(number: int) -> None:
            for _ in range(100 if number == 10 else 10):
                for name, weight in zip(program.shadow, weights, strict=True):
                    program.shadow[name] = 0.9 * program.shadow[name] + 0.1 * weight

        place = grown(grow, walks=5)["shadow."]
        steps = [b[1] - a[1] for a, b in itertools.pairwise(place.sizes)]
        assert steps == pytest.approx([10 * 10 * 40 * 3 * 780] * 4, rel=0.1)

    def test_a_graph_that_is_another_one_each_time_does_not_grow(self, program, torch) -> None:
        weight = torch.ones(1, requires_grad=True)

        def grow(number: int) -> None:
            loss = torch.zeros(())
            for _ in range(6000 + 10 * number if number % 10 == 9 else 1):
                loss = loss + weight.sum()
            program.loss = loss

        assert "loss" not in grown(grow, walks=5)

    def test_nodes_of_a_graph_count_for_one_of_its_tensors(self, torch) -> None:
        weight = torch.ones(1, requires_grad=True)
        state = cell = torch.zeros(1)
        place = Place(None, "attribute", "cell")
        for _ in range(600):
            state, cell = (state + cell * weight).tanh(), cell + state
            if _ == 200:
                place.first_root = identity(cell.grad_fn)
        counted: set[int] = set()
        assert nodes_since([state.grad_fn], place, counted) == pytest.approx(1600, rel=0.01)
        assert nodes_since([cell.grad_fn], place, counted) == pytest.approx(0, abs=20)
        assert nodes_since([(weight * 2).grad_fn], place, set()) is None

    def test_a_buffer_grows_by_the_graph_behind_it(self, torch) -> None:
        keys = torch.zeros(8, 1000)
        weight = torch.ones(1000, requires_grad=True)
        for _ in range(50):
            keys = torch.cat([keys, (weight * torch.rand(1000)).exp()[None]])[-8:]
        about = of_object(keys, Arrays(), first_bytes=36_000.0)
        # For each cat, the mask of `exp` and the random factor are saved.
        assert about["bytes"] * 5 * 780 == pytest.approx(5 * 780 + 2 * 4000, rel=0.2)

    def test_arrays_that_share_the_memory_of_a_tensor_are_counted_once(self, torch) -> None:
        pytest.importorskip("numpy")
        arrays = [torch.zeros(5000).detach().numpy() for _ in range(50)]
        assert per_item([arrays], Arrays())["bytes"] == pytest.approx(20_000, rel=0.05)

    @pytest.mark.filterwarnings("ignore:Sparse CS")
    @pytest.mark.parametrize("form", ["to_sparse_coo", "to_sparse_csr", "to_sparse_csc"])
    def test_a_sparse_tensor_keeps_its_indices_and_values(self, torch, form: str) -> None:
        kept = [getattr(torch.ones(20, 50), form)() for _ in range(50)]
        about = per_item([kept], Arrays())
        assert about["kind"] == "tensors"
        assert about["bytes"] == pytest.approx(4000 + 2 * 8000, rel=0.05)  # of all layouts

    @pytest.mark.filterwarnings("ignore:Sparse CSR")
    def test_a_tensor_without_parts_raises_nothing_within(self, torch) -> None:
        arrays = Arrays()
        kept = [torch.ones(2, 5).to_sparse_coo(), torch.ones(2, 5).to_sparse_csr()]
        if torch.backends.mkldnn.is_available():
            kept.append(torch.ones(2, 5).to_mkldnn())
        raised: list[str] = []
        sys.setprofile(lambda _, event, called: raised.append(event == "c_exception" and called))
        try:
            sizes = [arrays.storage(one)[1] for one in kept]
        finally:
            sys.setprofile(None)
        assert not any(raised)
        assert sizes[2:] in ([], [0])

    def test_a_tensor_that_is_concatenated_grows_by_its_bytes(self, program, torch) -> None:
        program.predictions = torch.zeros(0, 4)

        def grow(_: int) -> None:
            program.predictions = torch.cat([program.predictions, torch.zeros(8, 4)])

        sizes = grown(grow)["predictions"].sizes
        assert sizes[-1][1] - sizes[0][1] == 30 * 8 * 4 * 4

    def test_hooks_of_modules_and_parameters(self, program, torch) -> None:
        program.net = torch.nn.Sequential(torch.nn.Linear(2, 2))

        def grow(_: int) -> None:
            program.net[0].register_forward_hook(lambda *_: None)
            program.net[0].weight.register_hook(lambda grad: grad)

        assert {path.rpartition(".")[2] for path in grown(grow)} == {
            "_forward_hooks",
            "_backward_hooks",
        }

    def test_hooks_that_unpack_saved_tensors_do_not_run(self, program, torch) -> None:
        unpacked = []

        def unpack(packed: Any) -> Any:
            unpacked.append(1)
            return packed

        program.outputs = []
        weight = torch.ones(64, requires_grad=True)

        def grow(_: int) -> None:
            with torch.autograd.graph.saved_tensors_hooks(lambda one: one, unpack):
                program.outputs.append((weight * weight).sum())

        grown(grow)
        per_item([program.outputs], Arrays())
        assert not unpacked

    def test_subclasses_run_no_code(self, program, torch) -> None:
        class Mine(torch.Tensor):
            @classmethod
            def __torch_function__(cls, *_args: object, **_kwargs: object) -> None:
                raise AssertionError("the walk ran code of the program's")

        program.mine = []

        def grow(_: int) -> None:
            program.mine.append(torch.Tensor._make_subclass(Mine, torch.zeros(2)))

        assert "mine" in grown(grow)
        per_item([program.mine], Arrays())


def test_an_object_that_cannot_be_read_is_left_out(program, monkeypatch) -> None:
    run_in(program, "class Odd: pass\nodd = Odd()\nodd.rows = []\nrows = []")
    visitor = NameWalk._visitor

    def fails(walk: NameWalk, kind: type) -> Any:
        if kind is program.Odd:
            raise ValueError
        return visitor(walk, kind)

    monkeypatch.setattr(NameWalk, "_visitor", fails)
    places = Places()
    walk = NameWalk(places, Arrays())
    walk.run()
    names = [[one.name for one in place.path()] for place in walk.found]
    assert ["rows"] in names
    assert ["odd", "rows"] not in names


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="reads them without effects")
def test_functions_whose_variables_are_not_read_are_named(program) -> None:
    source = "def run(look):\n  locals()\n  look()\ndef plain(look):\n  vars(look)\n  look()\n"
    run_in(program, source)
    walk = NameWalk(Places(), Arrays())
    program.run(lambda: program.plain(walk.run))
    assert walk.unread == {"run": "locals"}


def test_items_of_a_named_tuple_have_its_names(program) -> None:
    source = "import typing\nclass State(typing.NamedTuple):\n  step: int\n  pairs: tuple"
    run_in(program, source)
    program.state = program.State(0, ())

    def grow(i: int) -> None:
        program.state = program.State(i, (*program.state.pairs, [i]))

    place = grown(grow)["state.pairs"]
    assert (place.kind, place.unit, place.sizes[-1][1]) == ("attribute", "items", 40)
    assert place.owner == "State"


def test_what_an_interactive_shell_has_of_its_own_is_not_visited(program) -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    program.results = []
    before = visits()
    program.get_ipython = shell.instance().get_ipython
    assert visits() < before + 100
    found = grown(lambda i: program.results.append([i]))
    assert found["results"].sizes[-1][1] == 40
    shell.clear_instance()


COMPILED = """
from memdiag.probe.kept_bytes import Arrays
from memdiag.probe.name_walk import NameWalk
from memdiag.probe.places import Places
from memdiag.probe.plain_access import container_name

class PjitFunction:
    def __init__(self):
        self.shapes = set()
    def __call__(self, shape):
        self.shapes.add(shape)
    def _cache_size(self):
        return len(self.shapes)

PjitFunction.__module__ = "jaxlib._jax"
fit, places = PjitFunction(), Places()
for number in range(1, 5):
    fit(number)
    walk = NameWalk(places, Arrays())
    walk.run()
    for place, found in walk.found.items():
        found.set_size_of(place, number, set())
print([(one.kind, one.name, one.sizes[-1][1]) for one in places.growing() if one.name == "fit"])
print(container_name(fit))
"""


def test_programs_that_a_function_was_compiled_to_are_counted() -> None:
    """A stand-in for JAX's function that is compiled for each shape, in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "[('cache', 'fit', 4.0)]\nPjitFunction\n"), (
        ran.stderr
    )
