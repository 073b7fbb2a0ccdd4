import gc
import sys
import tracemalloc

from process_tables import FakeClock, FakeTable

from memdiag.capture.probelink.ring_reader import Event, Kind, Probed
from memdiag.capture.process.tree import ProcessId, ProcessTree
from memdiag.capture.session import Session, counter_column
from memdiag.values.measurements import YOUNG_S, Sample, Unavailable


class FakeChannel:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.told: dict[ProcessId, str] = {}

    def drain(self) -> list[Event]:
        events, self.events = self.events, []
        return events

    def labels(self) -> dict[ProcessId, str]:
        return self.told

    def processes(self) -> tuple[Probed, ...]:
        return ()

    def tell(self, process: ProcessId, at_s: float, kind: Kind, **more: object) -> None:
        facts = {"step": None, "phase": "", "name": "", "value": None, "readings": {}}
        facts |= {"auto": False, "thread": 0, **more}
        self.events.append(Event(process=process, at_s=at_s, kind=kind, **facts))


def session(table: FakeTable, channel: FakeChannel | None = None, **more: object) -> Session:
    tree = ProcessTree(table, root=10, clock=FakeClock())
    return Session(tree=tree, root=10, began_at_s=1000.0, channel=channel, **more)


def of(samples: list[Sample], process: str) -> Sample:
    return next(s for s in reversed(samples) if s.process == process)


def test_each_tick_gives_a_row_per_process_and_one_for_the_tree():
    table = FakeTable()
    table.spawn(10, rss=100)
    table.spawn(11, parent=10, rss=30)
    watched = session(table)
    watched.tick(1000.0)
    samples = watched.tick(1000.0 + YOUNG_S)
    assert {s.process: s.readings["rss_bytes"] for s in samples} == {
        "main": 100,
        "python 11": 30,
        "tree": 130,
    }
    assert of(samples, "tree").readings["processes"] == 2
    assert all(s.at_s == YOUNG_S for s in samples)


def test_a_child_has_rows_from_its_first_sample_and_is_young_for_a_second():
    table = FakeTable()
    table.spawn(10, rss=100)
    watched = session(table)
    watched.tick(1000.0)
    table.spawn(11, parent=10, rss=30)
    samples = watched.tick(1000.1)
    assert {s.process: s.young for s in samples} == {
        "main": False,
        "python 11": True,
        "tree": False,
    }
    assert of(samples, "python 11").readings["rss_bytes"] == 30
    assert of(samples, "tree").readings["rss_bytes"] == 130
    assert not of(watched.tick(1000.1 + YOUNG_S), "python 11").young


def test_a_helper_before_the_training_is_not_main():
    table = FakeTable()
    table.spawn(10, name="bash")
    table.spawn(11, parent=10)
    watched = session(table)
    assert of(watched.tick(1000.0), "python 11").young
    table.kill(11)
    watched.tick(1000.2)
    table.spawn(12, parent=10)
    watched.tick(1000.4)
    assert of(watched.tick(1000.4 + YOUNG_S), "main").pid == 12


def test_thousands_of_helpers_leave_nothing_behind():
    table = FakeTable()
    table.spawn(10)
    watched = session(table)
    held_bytes = []
    tracemalloc.start()
    for number in range(3000):
        pid = 11 + number % 5
        table.spawn(pid, parent=10)
        assert of(watched.tick(1001.0 + number), f"python {pid}" + _turn(number // 5)).young
        table.kill(pid)
        if number % 1000 == 999:
            table.forgotten.clear()
            gc.collect()
            held_bytes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held_bytes[2] - held_bytes[1] < 20_000


def _turn(earlier: int) -> str:
    return f" ({earlier + 1})" if earlier else ""


def test_a_total_that_lacks_a_process_is_missing_with_the_reason():
    table = FakeTable()
    table.spawn(10, rss=100)
    table.spawn(11, parent=10, rss=Unavailable(reason="not ours"))
    watched = session(table)
    watched.tick(1000.0)
    samples = watched.tick(1001.0)
    assert "rss_bytes" not in of(samples, "tree").readings
    assert "rss_bytes" not in of(samples, "python 11").readings
    assert {(m.process, m.why.reason) for m in watched.missing()} == {
        ("python 11", "not ours"),
        ("tree", "not ours"),
    }


class Details:
    def __init__(self) -> None:
        self.round: dict = {}

    def read(self, processes):
        return self.round


def test_the_trees_uss_needs_every_grown_up_process_of_the_round():
    table = FakeTable()
    root, child = table.spawn(10), table.spawn(11, parent=10)
    slow = Details()
    watched = session(table, sources=[slow])
    watched.tick(1000.0)
    slow.round = {root: {"uss_bytes": 5}, child: {"uss_bytes": 6}}
    assert of(watched.tick(1002.0), "tree").readings["uss_bytes"] == 11
    slow.round = {root: {"uss_bytes": 5}}
    assert "uss_bytes" not in of(watched.tick(1003.0), "tree").readings


def test_a_step_becomes_a_sample_at_its_own_time():
    table, channel = FakeTable(), FakeChannel()
    root = table.spawn(10)
    watched = session(table, channel)
    channel.tell(root, 1000.03, Kind.STEP, step=4, readings={"rss_bytes": 77})
    samples = watched.tick(1000.1)
    assert (samples[0].at_s, samples[0].step, samples[0].readings) == (
        1000.03 - 1000.0,
        4,
        {"rss_bytes": 77},
    )
    assert of(samples, "tree").step == 4


def test_what_is_read_at_the_end_of_a_phase_belongs_to_it():
    table, channel = FakeTable(), FakeChannel()
    root = table.spawn(10)
    watched = session(table, channel)
    reading = {"rss_bytes": 5}
    channel.tell(root, 1000.01, Kind.PHASE_BEGIN, name="eval", phase="eval", readings=reading)
    channel.tell(root, 1000.02, Kind.PHASE_END, name="eval", phase="", readings=reading)
    begin, end, now, _ = watched.tick(1000.1)
    assert (begin.phase, end.phase, now.phase) == ("eval", "eval", "")


def test_a_process_without_steps_goes_by_those_of_the_busiest():
    table, channel = FakeTable(), FakeChannel()
    root, worker = table.spawn(10), table.spawn(11, parent=10)
    other = table.spawn(12, parent=10)
    watched = session(table, channel)
    watched.tick(1000.0)
    channel.tell(other, 1000.5, Kind.STEP, step=900)
    for step in (1, 2, 3):
        channel.tell(root, 1000.5 + step / 10, Kind.STEP, step=step)
    samples = watched.tick(1002.0)
    assert of(samples, "python 11").step == 3
    assert of(samples, "python 12").step == 900
    assert worker.pid == 11


def test_the_last_words_of_a_process_are_kept():
    table, channel = FakeTable(), FakeChannel()
    root = table.spawn(10)
    watched = session(table, channel)
    watched.tick(1000.0)
    channel.tell(root, 1000.05, Kind.STEP, step=1, readings={"rss_bytes": 9})
    table.kill(10)
    (sample,) = watched.tick(1000.1)
    assert (sample.process, sample.step) == ("main", 1)


def test_a_counter_in_a_tight_loop_leaves_its_last_value_of_each_step():
    table, channel = FakeTable(), FakeChannel()
    root = table.spawn(10)
    watched = session(table, channel)
    for value in range(100):
        step = value // 50
        channel.tell(root, 1000 + value / 1e4, Kind.COUNTER, step=step, name="n", value=value)
    counted = [s.readings["n"] for s in watched.tick(1000.1) if "n" in s.readings]
    assert counted == [49, 99]


def test_events_of_strangers_are_left_out_where_the_channel_is_shared():
    table, channel = FakeTable(), FakeChannel()
    table.spawn(10)
    watched = session(table, channel, whole_channel=False)
    channel.tell(ProcessId(99, 1), 1000.05, Kind.STEP, step=1, readings={"rss_bytes": 9})
    assert {s.process for s in watched.tick(1000.1)} == {"main", "tree"}


def test_events_from_before_the_recording_set_the_step_and_are_no_samples():
    table, channel = FakeTable(), FakeChannel()
    root = table.spawn(10)
    watched = session(table, channel)
    channel.tell(root, 990.0, Kind.STEP, step=41, readings={"rss_bytes": 9})
    samples = watched.tick(1000.0)
    assert [(s.process, s.step) for s in samples] == [("main", 41), ("tree", 41)]


def test_a_counter_cannot_take_a_column_of_ours():
    assert counter_column("model_copies") == "model_copies"
    assert counter_column("rss_bytes") == "counter_rss_bytes"
    assert counter_column("Step") == "counter_Step"
    assert counter_column("\x1b[1mx,\n") == "__1mx__"


def test_a_note_about_a_metric_is_the_reason_why_it_is_missing():
    table, channel = FakeTable(), FakeChannel()
    root, worker = table.spawn(10), table.spawn(11, parent=10)
    watched = session(table, channel)
    watched.tick(1000.0)
    for process in (root, worker, root):
        channel.tell(process, 1000.5, Kind.NOTE, name="malloc_bytes: \x1b[31mit uses jemalloc")
    watched.tick(1002.0)
    (missing,) = watched.missing()
    assert (missing.metric, missing.process) == ("malloc_bytes", "main")
    assert missing.why.reason == "\\x1b[31mit uses jemalloc (and so for one more process)"
    assert watched.notes() == ()


def test_a_note_about_something_else_is_a_note():
    table, channel = FakeTable(), FakeChannel()
    root = table.spawn(10)
    watched = session(table, channel)
    channel.tell(root, 1000.0, Kind.NOTE, name="step('a: b') was ignored")
    channel.tell(root, 1000.0, Kind.NOTE, name="nonsense: that is no metric")
    watched.tick(1000.1)
    assert watched.missing() == ()
    assert watched.notes() == (
        "main: step('a: b') was ignored",
        "main: nonsense: that is no metric",
    )


def test_a_program_that_notes_for_ever_fills_no_memory():
    table, channel = FakeTable(), FakeChannel()
    root = table.spawn(10)
    watched = session(table, channel)
    for number in range(1000):
        channel.tell(root, 1000.0, Kind.NOTE, name=f"note {number}")
    watched.tick(1000.1)
    assert len(watched.notes()) < 100


def test_a_shim_at_the_root_is_young_until_it_becomes_the_program():
    table = FakeTable()
    table.spawn(10, name="bash")
    watched = session(table)
    assert of(watched.tick(1000.0), "bash 10").young
    table.execute(10, "python3.11")
    samples = watched.tick(1000.1)
    assert {s.process for s in samples} == {"main", "tree"}
    assert not of(samples, "main").young


def test_a_tick_of_ten_processes_that_do_not_change_takes_few_calls():
    # Its cost is bound by how much code is touched ten times a second. Calls are counted, because
    # their number is the same on every machine; with 256 the sampler took 1.2 % of a core.
    table = FakeTable()
    table.spawn(10)
    for pid in range(11, 20):
        table.spawn(pid, parent=10)
    watched = session(table)
    for tenth in range(100):
        watched.tick(1000.0 + tenth / 10)
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(event))
    try:
        samples = watched.tick(1010.1)
    finally:
        sys.setprofile(None)
    assert len(samples) == 11
    assert calls.count("call") < 100


def test_the_processes_and_their_parents_are_known_after_they_have_ended():
    table = FakeTable()
    table.spawn(10, name="bash")
    table.spawn(11, parent=10)
    table.spawn(12, parent=11)
    watched = session(table)
    watched.tick(1000.0)
    watched.tick(1000.0 + YOUNG_S)
    table.kill(11, heir=1)
    watched.tick(1001.0 + YOUNG_S)
    assert [(p.id.pid, p.parent, label) for p, label in watched.processes()] == [
        (10, 1, "bash 10"),
        (11, 10, "main"),
        (12, 11, "python 12"),
    ]
