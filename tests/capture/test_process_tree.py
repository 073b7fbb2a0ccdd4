import pytest
from process_tables import FakeClock, FakeTable

from memdiag.capture.process.memory_details import DetailSource
from memdiag.capture.process.tree import ProcessId, ProcessTree
from memdiag.values.measurements import Unavailable


@pytest.fixture(params=[False, True], ids=["searched", "greeted"], autouse=True)
def _newborn(request, monkeypatch):
    """The same must be found in both ways."""
    monkeypatch.setattr(FakeTable, "tells_newborn", request.param)


def tree_of(table: FakeTable, **more: object) -> ProcessTree:
    return ProcessTree(table, root=10, clock=FakeClock(), **more)


def seen(tree: ProcessTree) -> set[ProcessId]:
    return {process.id for process, _ in tree.read()}


def test_children_and_grandchildren_belong_to_the_tree():
    table = FakeTable()
    family = {table.spawn(10), table.spawn(11, parent=10), table.spawn(12, parent=11)}
    table.spawn(13)
    assert seen(tree_of(table)) == family


def test_a_reused_pid_is_another_process_and_a_stranger_on_it_is_not_taken_in():
    table = FakeTable()
    root, child = table.spawn(10), table.spawn(11, parent=10)
    tree = tree_of(table)
    assert seen(tree) == {root, child}
    table.kill(11)
    table.spawn(11, parent=1)
    assert seen(tree) == {root}
    assert child in table.forgotten


def test_a_reused_pid_inside_the_tree_is_a_new_process():
    table = FakeTable()
    root, child = table.spawn(10), table.spawn(11, parent=10)
    tree = tree_of(table)
    assert seen(tree) == {root, child}
    table.kill(11)
    heir = table.spawn(11, parent=10)
    tree.read()
    assert seen(tree) == {root, heir}


def test_an_orphan_once_seen_stays_in_the_tree_with_its_own_children():
    table = FakeTable()
    root, parent = table.spawn(10), table.spawn(11, parent=10)
    daemon = table.spawn(12, parent=11)
    tree = tree_of(table)
    assert seen(tree) == {root, parent, daemon}
    table.kill(11, heir=1)
    worker = table.spawn(13, parent=12)
    assert seen(tree) == {root, daemon, worker}


def test_an_orphan_never_seen_before_is_found_among_the_adopters_children():
    table = FakeTable()
    table.spawn(5)
    root = table.spawn(10, parent=5)
    table.spawn(6, parent=5, name="memdiag-witness")
    tree = tree_of(table, adopter=5, strangers=frozenset({6}))
    assert seen(tree) == {root}
    daemon = table.spawn(12, parent=5)
    assert seen(tree) == {root, daemon}


def test_the_tree_outlives_its_root():
    table = FakeTable()
    table.spawn(10)
    child = table.spawn(11, parent=10)
    tree = tree_of(table)
    tree.read()
    table.kill(10)
    assert seen(tree) == {child}
    table.kill(11)
    assert seen(tree) == set()


def test_nothing_is_searched_while_no_process_is_born():
    table = FakeTable()
    table.spawn(10)
    tree = tree_of(table)
    tree.read()
    before = table.searches
    table.grow(10, 5000)
    assert [resident for _, resident in tree.read()] == [5000]
    assert table.searches == before


def test_the_newborn_are_taken_in_without_a_search_and_a_search_follows_in_time(monkeypatch):
    monkeypatch.setattr(FakeTable, "tells_newborn", True)
    table, clock = FakeTable(), FakeClock()
    root = table.spawn(10)
    tree = ProcessTree(table, root=10, clock=clock)
    assert seen(tree) == {root}
    searched = table.searches
    child = table.spawn(11, parent=10)
    assert seen(tree) == {root, child}
    assert table.searches == searched
    clock.s += tree.SEARCH_EVERY_S
    table.spawn(99)
    assert seen(tree) == {root, child}
    assert table.searches > searched


def test_a_child_whose_pid_is_seen_before_itself_is_found_at_the_next_look(monkeypatch):
    monkeypatch.setattr(FakeTable, "tells_newborn", True)
    table = FakeTable()
    root = table.spawn(10)
    tree = tree_of(table)
    tree.read()
    searched = table.searches
    table.spawn(2)
    child = table.spawn(3, parent=10)  # the third birth, as its pid says
    table.unseen = [3]
    assert seen(tree) == {root}
    table.unseen = []
    assert seen(tree) == {root, child}
    assert table.searches == searched


def test_an_unreadable_process_stays_in_the_tree_with_the_reason():
    table = FakeTable()
    hidden = Unavailable(reason="hidden")
    table.spawn(10, rss=hidden)
    assert [resident for _, resident in tree_of(table).read()] == [hidden]


def test_details_leave_out_processes_that_vanished_meanwhile():
    table = FakeTable()
    table.spawn(10)
    gone = table.spawn(11, parent=10)
    processes = [process for process, _ in tree_of(table).read()]
    table.kill(11)
    assert gone not in DetailSource(table).read(processes)


def test_a_process_that_calls_exec_goes_by_its_new_name_soon_or_late():
    table = FakeTable()
    table.spawn(10, name="bash")
    tree = tree_of(table)
    tree.read()
    table.execute(10, "python3")
    assert [process.name for process, _ in tree.read()] == ["python3"]
    for _ in range(ProcessTree.YOUNG_READS):
        tree.read()
    table.execute(10, "sleep")
    names = {tree.read()[0][0].name for _ in range(ProcessTree.NAME_EVERY + 1)}
    assert names == {"python3", "sleep"}
