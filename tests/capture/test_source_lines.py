"""The line that adds to a place is found by the names that lead to it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from memdiag.analysis.cause.holder_words import words
from memdiag.capture.probelink.source_lines import SourceFiles
from memdiag.values.holders import Holder, Name, SourceLine


def holder(*path: Name, unit: str = "items", **more: object) -> Holder:
    return Holder(path=path, unit=unit, sizes=(), bytes_per_unit=1.0, **more)  # type: ignore[arg-type]


def line(tmp_path: Path, source: str, held: Holder, **options: bool) -> SourceLine:
    """The first line that is found; `<FILE>` in the paths of the names stands for the program."""
    file = tmp_path / "train.py"
    file.write_text(dedent(source), encoding="utf-8")
    return SourceFiles([str(file)], **options).located(held).lines[0]


@pytest.mark.parametrize(
    "statement",
    [
        "rows.append(x)",
        "rows[x] = 1",
        "rows[x].append(1)",
        "rows += [x]",
        "rows = rows + [x]",
        "rows, other = f(rows), 1",
        "heapq.heappush(rows, x)",
        "rows.put_nowait(x)",
        "rows.feed(x)",
        "setattr(rows, f'x{x}', x)",
        "pool.apply_async(f, (x,), callback=rows.append)",
        "future.add_done_callback(rows.append)",
    ],
)
def test_forms_of_adding_to_a_local_variable(tmp_path: Path, statement: str) -> None:
    source = f"""
    import heapq
    rows = []
    def main():
        rows = []
        for x in range(9):
            print(len(rows))
            {statement}
            rows.sort()
    def other():
        rows = []
        rows.append(1)
    """
    file = str(tmp_path / "train.py")
    found = line(tmp_path, source, holder(Name(kind="local", name="rows", owner="main", file=file)))
    assert (found.line, found.function, found.code) == (8, "main", statement)


def test_calls_that_have_not_returned_are_at_a_line(tmp_path: Path) -> None:
    source = """
    def fill(queue, batches):
        for batch in batches:
            queue.put(batch)
    """
    file = str(tmp_path / "train.py")
    running = Name(kind="running", name="fill", owner="fill", file=file, line=4)
    found = line(tmp_path, source, holder(running))
    assert (found.line, found.function, found.code) == (4, "fill", "queue.put(batch)")


def test_closure_variable_that_another_function_beside_adds_to(tmp_path: Path) -> None:
    source = """
    def tracking(every):
        trace = []
        def record(x):
            trace.append(x)
        def report():
            print(trace)
        return record, report
    def other():
        trace = []
        trace.append(1)
    def main():
        callbacks = [tracking(1)]
        for x in range(9):
            callbacks[0][0](x)
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="local", name="callbacks", owner="main", file=file),
        Name(kind="item", name=""),
        Name(kind="closure", name="trace", owner="tracking.<locals>.report", file=file),
    )
    found = line(tmp_path, source, held)
    assert (found.line, found.function) == (5, "tracking.record")


def test_a_cached_property_keeps_what_it_returns(tmp_path: Path) -> None:
    source = """
    class Document:
        @functools.cached_property
        def words(self):
            return read(self)
    class Corpus:
        def __init__(self):
            self.documents = [Document() for _ in range(9)]
        def sample(self):
            return self.documents[3].words
    """
    held = holder(
        Name(kind="attribute", name="documents", owner="Corpus", file=str(tmp_path / "train.py")),
        Name(kind="item", name=""),
        Name(kind="inside", name="dict"),
        Name(kind="key", name="words"),
        unit="bytes",
    )
    assert line(tmp_path, source, held).line == 5


def test_the_class_of_an_attribute_comes_first(tmp_path: Path) -> None:
    source = """
    class Other:
        def add(self, x):
            self.rows.append(x)
    class Log:
        def __init__(self):
            self.rows = []
            self.rows.append("begin")
        def add(self, x):
            self.rows.append(x)
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="global", name="log", owner="__main__", file=file),
        Name(kind="attribute", name="rows", owner="Log", file=file),
    )
    assert line(tmp_path, source, held).line == 10


def test_attributes_of_libraries_are_found_by_the_calls_named_after_them(tmp_path: Path) -> None:
    source = """
    def main(net):
        for epoch in range(3):
            net(epoch)
            net += [Linear(2, 2)]
            for layer in net.modules():
                layer.register_forward_hook(print)
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="local", name="net", owner="main", file=file),
        Name(kind="attribute", name="_modules", owner="Module"),
        Name(kind="key", name="0"),
        Name(kind="attribute", name="_forward_hooks", owner="Linear"),
    )
    assert line(tmp_path, source, held).line == 7


def test_only_the_attribute_that_grows_counts(tmp_path: Path) -> None:
    source = """
    def setup(log):
        log.addHandler(memory)
    def train(log):
        for step in range(9):
            log.debug("step %d", step)
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="global", name="log", owner="__main__", file=file),
        Name(kind="attribute", name="handlers", owner="Logger"),
        Name(kind="item", name=""),
        Name(kind="attribute", name="buffer", owner="MemoryHandler"),
    )
    assert line(tmp_path, source, held).line == 6


def test_attributes_set_on_an_instance_are_found_in_its_class(tmp_path: Path) -> None:
    source = """
    class Inspected:
        def forward(self, x):
            setattr(self, f"activation_{x}", x)
    def main():
        net = Inspected()
        optimizer = Adam(net.parameters())
        for x in range(9):
            net(x)
    """
    file = str(tmp_path / "train.py")
    name = Name(kind="local", name="net", owner="main", file=file)
    assert line(tmp_path, source, holder(name, container="attributes of Inspected")).line == 4


def test_a_call_through_the_name_adds_to_what_a_library_keeps_in_it(tmp_path: Path) -> None:
    source = """
    import queue
    jobs = queue.Queue()
    def serve(x):
        jobs.put(x)
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="global", name="jobs", owner="__main__", file=file),
        Name(kind="attribute", name="queue", owner="Queue"),
    )
    assert line(tmp_path, source, held).line == 5


def test_a_field_is_rebound_by_the_argument_of_its_name(tmp_path: Path) -> None:
    source = """
    def update(state, x):
        return replace(
            state,
            step=state.step + 1,
            trace=(*state.trace, x),
        )
    def main():
        state = State(trace=())
        for x in range(9):
            state = update(state, x)
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="local", name="state", owner="main", file=file),
        Name(kind="attribute", name="trace", owner="State", file=file),
    )
    assert line(tmp_path, source, held).line == 6


@pytest.mark.parametrize("whole", ["(*state.pairs, pair)", "state.pairs + (pair,)"])
def test_a_named_tuple_grows_where_a_new_one_has_all_of_the_old(tmp_path: Path, whole: str) -> None:
    source = f"""
    class State(NamedTuple):
        weights: object
        pairs: tuple
    def advance(state, x):
        moved = state.weights - direction(x, state.pairs[-6:])
        pair = (moved, x)
        return State(moved, {whole})
    def main():
        state = State(zeros(9), ())
        for x in range(9):
            state = advance(state, x)
    """
    file = str(tmp_path / "train.py")
    state = Name(kind="local", name="state", owner="main", file=file)
    pairs = Name(kind="attribute", name="pairs", owner="State", file=file)
    arrival = SourceLine(file=file, line=12, code="", function="main", hits=9)
    for lines in ((), (arrival,)):
        found = line(tmp_path, source, holder(state, pairs, container="tuple", lines=lines))
        assert (found.line, found.function) == (8, "advance")


def test_lines_that_run_once_come_last_also_where_functions_are_called_once(tmp_path: Path) -> None:
    source = """
    def configure(path):
        log.add(path)
        note()
    def note():
        log.add("configured")
    def main():
        configure("x")
        step = Step(1)
        for i in range(9):
            step.run(i)
    class Step:
        def __init__(self, x):
            log.add(x)
        def run(self, x):
            log.add(x)
    main()
    """
    file = str(tmp_path / "train.py")
    held = holder(Name(kind="global", name="log", owner="__main__", file=file))
    assert line(tmp_path, source, held).line == 16


@pytest.mark.parametrize("as_callback", ["register(on_end)", "Thread(target=on_end)", ""])
def test_functions_that_others_may_call_count_as_repeated(tmp_path: Path, as_callback: str) -> None:
    source = f"""
    def main():
        rows.append(0)
        {as_callback or "pass"}
    def on_end():
        rows.append(1)
    main()
    """
    file = str(tmp_path / "train.py")
    held = holder(Name(kind="global", name="rows", owner="__main__", file=file))
    assert line(tmp_path, source, held).line == 6


@pytest.mark.parametrize(
    "statements",
    [
        ["rows = self.by_wall.setdefault(wall, [])", "rows.append(x)"],
        ["rows = self.by_wall[wall]", "rows.append(x)"],
        ["self.by_wall.setdefault(wall, []).append(x)"],
        ["print(len(self.by_wall))", "[rows.append(x) for rows in self.by_wall.values()]"],
    ],
)
def test_a_variable_stands_for_the_item_that_it_is_bound_to(
    tmp_path: Path, statements: list[str]
) -> None:
    source = """
    class Gallery:
        def hang(self, wall, x):
            if wall not in self.by_wall:
                self.by_wall[wall] = []
    """ + "\n".join(" " * 12 + one for one in statements)
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="local", name="gallery", owner="main", file=file),
        Name(kind="attribute", name="by_wall", owner="Gallery", file=file),
        Name(kind="key", name="north"),
    )
    assert line(tmp_path, source, held).code == statements[-1]


def test_what_a_library_holds_grows_where_the_program_calls_it(tmp_path: Path) -> None:
    source = """
    import json, weakref
    import matplotlib.pyplot as plt
    from threading import Thread
    def draw(x):
        json.dumps(x)
        fig, ax = plt.subplots()
        ax.plot(x)
        weakref.ref(x)
        weakref.finalize(x, print)
        Thread(target=x).start()
    """
    lines = {}
    for owner, *names in (
        ("matplotlib._pylab_helpers", "Gcf", "figs"),
        ("weakref", "finalize", "_registry"),
        ("threading", "_active"),
    ):
        first = Name(kind="global", name=names[0], owner=owner)
        rest = (Name(kind="attribute", name=one, owner=names[0]) for one in names[1:])
        lines[owner] = line(tmp_path, source, holder(first, *rest)).line
    assert lines == {"matplotlib._pylab_helpers": 7, "weakref": 10, "threading": 11}


@pytest.mark.parametrize(
    "statement",
    ["linecache.cache[self.file] = (1, None, lines, self.file)", "cache[self.file] = lines"],
)
def test_a_variable_of_a_library_grows_where_the_program_adds_to_it(
    tmp_path: Path, statement: str
) -> None:
    source = f"""
    import linecache
    from linecache import cache
    class Program:
        def text(self):
            return linecache.getlines(self.file)
        def function(self, lines):
            {statement}
    """
    held = holder(Name(kind="global", name="cache", owner="linecache"), unit="items")
    assert line(tmp_path, source, held).code == statement


def test_going_on_to_a_child_adds_nothing(tmp_path: Path) -> None:
    source = """
    class Tree:
        def read(self, keys):
            node = self.root
            for key in keys:
                if key not in node.children:
                    node.children[key] = Node()
                node = node.children[key]
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="local", name="tree", owner="main", file=file),
        Name(kind="attribute", name="root", owner="Tree", file=file),
        Name(kind="attribute", name="children", owner="Node", file=file),
        Name(kind="item", name=""),
        unit="objects",
    )
    assert line(tmp_path, source, held).code == "node.children[key] = Node()"


def test_objects_of_a_class_are_made_where_it_is_called(tmp_path: Path) -> None:
    source = """
    def read(node, keys):
        for key in keys:
            node = node.children.setdefault(key, Node())
            node.count += 1
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="local", name="tree", owner="main", file=file),
        Name(kind="attribute", name="root", owner="Tree", file=file),
        Name(kind="objects", name="Node", owner="__main__", file=file),
        unit="objects",
    )
    assert line(tmp_path, source, held).line == 4


def test_generators_that_delegate_are_at_a_line(tmp_path: Path) -> None:
    source = """
    def batches(epoch):
        yield epoch
        yield from batches(epoch + 1)
    """
    file = str(tmp_path / "train.py")
    name = Name(kind="inside", name="batches", owner="batches", file=file, line=4)
    held = holder(name, unit="objects", is_chain=True, item_type="generator")
    assert line(tmp_path, source, held).code == "yield from batches(epoch + 1)"
    assert words(held) == "generators of `batches()` that delegate to each other"


def test_what_no_known_library_holds_has_no_line(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("for step in range(9):\n    print(step)\n", encoding="utf-8")
    held = holder(Name(kind="unreached", name="Capsule", owner=""))
    assert SourceFiles([str(file)]).located(held).lines == ()


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        ("@functools.cache", [2, 7]),
        ("@lru_cache(maxsize=None)", [2, 7]),
        ("@kept", [7]),
    ],
)
def test_cached_functions_keep_by_their_decorator_where_they_are_called(
    tmp_path: Path, decorator: str, expected: list[int]
) -> None:
    source = f"""
    {decorator}
    def encode(text):
        return text
    def main():
        for text in source:
            encode(text)
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="global", name="encode", owner="__main__", file=file),
        Name(kind="cache", name="encode"),
    )
    (tmp_path / "train.py").write_text(dedent(source), encoding="utf-8")
    assert [one.line for one in SourceFiles([file]).located(held).lines] == expected


def test_a_chain_grows_where_its_head_is_bound(tmp_path: Path) -> None:
    source = """
    class Node:
        def __init__(self, prev):
            self.prev = prev
    def main():
        last = None
        while True:
            last = Node(last)
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="local", name="last", owner="main", file=file),
        Name(kind="attribute", name="prev", owner="Node", file=file),
        unit="objects",
        is_chain=True,
    )
    assert line(tmp_path, source, held).line == 8


def test_threads_are_added_where_they_are_started(tmp_path: Path) -> None:
    source = """
    import threading
    class Watchdog:
        def feed(self, batch):
            self.timer = threading.Timer(900, self.report, (batch,))
            self.timer.start()
    def main():
        watchdog = Watchdog()
        for batch in range(9):
            watchdog.feed(batch)
    """
    started = holder(
        Name(kind="local", name="self", owner="Thread._bootstrap", file=""), unit="objects"
    )
    assert started.is_thread
    assert line(tmp_path, source, started).line == 6


def test_links_are_added_where_they_get_the_one_before(tmp_path: Path) -> None:
    source = """
    class Tile:
        def __init__(self, key, before):
            self.key = key
            self.before = before
    def main():
        while True:
            tile = world.tile(7)
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="local", name="tile", owner="main", file=file),
        Name(kind="attribute", name="before", owner="Tile", file=file),
        unit="objects",
        is_chain=True,
    )
    assert line(tmp_path, source, held).line == 5


def test_an_argument_is_followed_into_the_function_that_adds_to_it(tmp_path: Path) -> None:
    source = """
    def log(sink, x):
        sink.append(x)
    def main():
        losses = []
        for x in range(9):
            log(losses, x)
    """
    file = str(tmp_path / "train.py")
    main = Name(kind="local", name="losses", owner="main", file=file)
    assert line(tmp_path, source, holder(main)).line == 3


def test_a_library_object_is_followed_into_the_function_that_calls_it(tmp_path: Path) -> None:
    source = """
    class Net:
        def add_task(self, sgd):
            sgd.add_param_group({"params": self.new()})
    def main():
        optimizer = SGD()
        net = Net()
        for x in range(9):
            net.add_task(optimizer)
            optimizer.zero_grad()
            optimizer.step()
    """
    file = str(tmp_path / "train.py")
    held = holder(
        Name(kind="local", name="optimizer", owner="main", file=file),
        Name(kind="attribute", name="param_groups", owner="SGD"),
    )
    assert line(tmp_path, source, held).line == 4


def test_files_that_cannot_be_parsed_have_no_lines(tmp_path: Path) -> None:
    broken, binary = tmp_path / "broken.py", tmp_path / "binary.py"
    broken.write_text("def (", encoding="utf-8")
    binary.write_bytes(b"\0\xff" * 99)
    secret = tmp_path / "secret.txt"
    secret.write_text("rows.append(1)", encoding="utf-8")
    fifo = tmp_path / "fifo.py"
    import os

    os.mkfifo(fifo)
    names = [str(one) for one in (broken, binary, secret, fifo, tmp_path)]
    held = holder(Name(kind="global", name="rows", owner="__main__", file=names[0]))
    assert SourceFiles([*names, "/dev/zero", "relative.py"]).located(held).lines == ()


def test_lines_of_objects_that_no_name_leads_to(tmp_path: Path) -> None:
    source = """
    class Node:
        def __init__(self, parent):
            self.parent = parent
    class Scale(Function):
        def forward(ctx, x):
            result = 2 * x
            ctx.result = result
    def main():
        for x in range(9):
            Node(Node(None))
            loss.backward(retain_graph=True)
            fabric.backward(loss, create_graph=True)
    """
    file = str(tmp_path / "train.py")

    def found(name: str, attribute: str, file: str) -> int:
        path = [Name(kind="unreached", name=name, owner="__main__", file=file)]
        if attribute:
            path.append(Name(kind="attribute", name=attribute, owner=name, file=file))
        return line(tmp_path, source, holder(*path, unit="objects")).line

    assert found("Node", "parent", file) == 4
    assert found("Scale", "result", file) == 8
    assert found("Node", "", file) == 11
    assert found("Parameter", "grad", "") == 13


def test_a_call_that_runs_once_after_the_steps_is_not_named(tmp_path: Path) -> None:
    source = """
    def main():
        exporter = Exporter()
        for step in range(1000):
            train(step)
        exporter.shutdown()
    if __name__ == "__main__":
        main()
    """
    file = tmp_path / "train.py"
    file.write_text(dedent(source), encoding="utf-8")
    held = holder(
        Name(kind="local", name="exporter", owner="main", file=str(file)),
        Name(kind="attribute", name="_finished", owner="Exporter"),
    )
    assert SourceFiles([str(file)]).located(held).lines == ()


def test_callbacks_of_a_library_are_registered_where_it_is_called(tmp_path: Path) -> None:
    source = """
    import atexit
    class Writer:
        def __init__(self):
            self.rows = []
            atexit.register(self.close)
    """
    held = holder(Name(kind="registered", name="atexit", owner="atexit"), unit="objects")
    assert line(tmp_path, source, held).line == 6


def test_what_a_manager_keeps_grows_where_its_proxy_is_used(tmp_path: Path) -> None:
    source = """
    from multiprocessing import Manager
    def main():
        with Manager() as manager:
            seen, rows = manager.dict(), []
            rows = manager.list()
            for x in range(9):
                seen["last"] = x
                rows.append(x)
    """
    path = (
        Name(kind="local", name="id_to_obj", owner="Server.serve_client"),
        Name(kind="key", name="7f3b037b3400"),
    )
    found = line(tmp_path, source, holder(*path, container="list"))
    assert (found.line, found.code) == (9, "rows.append(x)")


@pytest.mark.parametrize(
    ("statement", "receiver"),
    [
        ("self.socket.send([head, x.tobytes()])", "self.socket"),
        ("self.table.rows[x:] = head", "self.table.rows"),
        ("self.table['x'] = head", "self.table"),
        ("numpy.save(head, x)", ""),
        ("draw(head)", ""),
        ("found = self.table.find(head)", ""),
        ("return self.table.find(head)", ""),
        ("if self.table.get(x) is None: pass", ""),
        ("for row in self.table.rows(): pass", ""),
        ("self.n += self.table.find(x)", ""),
    ],
)
def test_object_that_a_line_calls_or_changes(tmp_path: Path, statement: str, receiver: str) -> None:
    file = tmp_path / "train.py"
    file.write_text(f"import numpy\ndef send(self, head, x):\n    {statement}\n", "utf-8")
    at = SourceLine(file=str(file), line=3, code="", function="send")
    sources = SourceFiles([str(file)])
    found = sources.with_receiver(at)
    assert (found.code, found.receiver) == (statement, receiver)
    assert sources.with_code(at).receiver == ""


def test_lines_that_run_with_the_steps_come_before_loops_that_run_once(tmp_path: Path) -> None:
    source = """
    class Fit:
        def __init__(self):
            self.history = []
            self.fill()
        def fill(self):
            for number in range(4):
                self.history.append(None)
        def step(self, i):
            self.note(i * 2000)
        def note(self, row):
            self.history = self.history + [row]
    def main():
        fit = Fit()
        for i in range(250):
            fit.step(i)
    main()
    """
    path = (
        Name(kind="local", name="fit", owner="main", file=str(tmp_path / "train.py")),
        Name(kind="attribute", name="history", owner="Fit", file=str(tmp_path / "train.py")),
    )
    assert line(tmp_path, source, holder(*path, container="list")).line == 12


def test_of_two_loops_that_run_once_the_one_with_more_code_is_that_of_the_steps(
    tmp_path: Path,
) -> None:
    source = """
    def main(net, rows):
        kept = []
        for row in rows[:3]:
            kept.append(row)
        for row in rows:
            loss = net(row).sum()
            loss.backward()
            kept.append(loss)
    main(1, [])
    """
    kept = Name(kind="local", name="kept", owner="main", file=str(tmp_path / "train.py"))
    assert line(tmp_path, source, holder(kept)).line == 9


def test_a_lambda_that_is_made_once_may_be_called_at_each_step(tmp_path: Path) -> None:
    source = """
    outputs = []
    for layer in layers:
        layer.register_forward_hook(lambda module, given, made: outputs.append(made))
    outputs.append(None)
    for step in range(100):
        train(step, step + 1, step + 2)
    """
    kept = Name(kind="global", name="outputs", file=str(tmp_path / "train.py"))
    assert line(tmp_path, source, holder(kept)).line == 4


def test_lines_that_make_what_a_place_holds(tmp_path: Path) -> None:
    source = """
    def decode(path):
        return library.read(path)
    def opened(path):
        image = Image.open(path)
        return image.convert("RGB")
    def keep(images, image):
        images.append(image)
    def main(paths):
        images = []
        for path in paths:
            pixels = decode(path)
            image = opened(path)
            small = image.resize((8, 8))
            keep(images, small)
    main([])
    """
    file = tmp_path / "train.py"
    file.write_text(dedent(source), encoding="utf-8")
    lines = [
        SourceLine(file=str(file), line=number, code="", function="") for number in range(1, 17)
    ]
    held = holder(
        Name(kind="local", name="images", owner="main", file=str(file)), lines=(lines[7],)
    )
    found = SourceFiles([str(file)]).with_makers(held, lines)
    assert [one.line for one in found.makers] == [5, 6, 8, 10, 11, 13, 14, 15, 16]
