"""Who is believed of where the job is: the program, the user's patterns, the probe, guesses."""

from __future__ import annotations

from process_tables import FakeClock, FakeTable

from memdiag.capture.logtags.patterns import TagKind
from memdiag.capture.logtags.tagger import LogEvent
from memdiag.capture.probelink.ring_reader import Event, Kind
from memdiag.capture.process.step_and_phase import Origin, Timeline
from memdiag.capture.process.tree import TREE, ProcessId, ProcessTree
from memdiag.capture.session import Session


class FakeChannel:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def drain(self) -> list[Event]:
        events, self.events = self.events, []
        return events

    def labels(self) -> dict[ProcessId, str]:
        return {}


class FakeLog:
    def __init__(self, origin: Origin, *, promises_steps: bool = False) -> None:
        self.origin = origin
        self.promises_steps = promises_steps
        self.events: list[LogEvent] = []

    def waiting(self) -> bool:
        return bool(self.events)

    def drain(self) -> list[LogEvent]:
        events, self.events = self.events, []
        return events


class Job:
    """A session of one process with a probe and a log."""

    def __init__(self, origin: Origin, *, promises_steps: bool = False) -> None:
        table = FakeTable()
        self.root = table.spawn(10)
        self.channel = FakeChannel()
        self.log = FakeLog(origin, promises_steps=promises_steps)
        tree = ProcessTree(table, root=10, clock=FakeClock())
        self.session = Session(
            tree=tree, root=10, began_at_s=1000.0, channel=self.channel, log=self.log
        )
        self.now_s = 1000.0

    def probe(
        self,
        kind: Kind,
        *,
        auto: bool,
        step: int | None = None,
        phase: str = "",
        loop: bool = False,
    ) -> None:
        facts = {"name": phase, "value": None, "readings": {}, "thread": 0}
        event = Event(
            process=self.root,
            at_s=self.now_s,
            kind=kind,
            step=step,
            phase=phase,
            auto=auto,
            loop=loop,
            **facts,
        )
        self.channel.events.append(event)

    def says(self, kind: TagKind, name: str = "", value: float = 0.0) -> None:
        self.log.events.append(LogEvent(at_s=self.now_s, kind=kind, name=name, value=value))

    def where(self) -> tuple[int | None, str]:
        self.now_s += 0.1
        samples = self.session.tick(self.now_s)
        assert {(s.step, s.phase) for s in samples[-2:]} == {(samples[-1].step, samples[-1].phase)}
        return samples[-1].step, samples[-1].phase


def test_a_users_pattern_is_believed_before_the_probe_and_the_programs_tags_before_both():
    job = Job(Origin.LOG)
    job.probe(Kind.STEP, auto=True, step=40)
    job.probe(Kind.PHASE_BEGIN, auto=True, step=40, phase="train")
    assert job.where() == (40, "train")
    job.says(TagKind.STEP, value=4)
    job.says(TagKind.PHASE, "Predict")
    assert job.where() == (4, "Predict")
    job.probe(Kind.STEP, auto=True, step=41, phase="train")
    assert job.where() == (4, "Predict")
    job.probe(Kind.STEP, auto=False, step=7, phase="train")
    assert job.where() == (7, "Predict")
    job.probe(Kind.PHASE_BEGIN, auto=False, step=7, phase="mine")
    assert job.where() == (7, "mine")


def test_the_probe_is_believed_before_guesses_at_a_log():
    job = Job(Origin.LOGGER)
    job.says(TagKind.STEP, value=4)
    job.says(TagKind.PHASE, "eval")
    assert job.where() == (4, "eval")
    job.probe(Kind.STEP, auto=True, step=41, phase="train")
    assert job.where() == (41, "train")


def test_the_probes_count_waits_for_a_log_that_is_to_tell_the_steps():
    job = Job(Origin.LOG, promises_steps=True)
    for n in range(1, 201):
        job.probe(Kind.STEP, auto=True, step=n)
        assert job.where()[0] is None
    job.probe(Kind.STEP, auto=True, step=201)
    assert job.where()[0] == 201
    job.says(TagKind.STEP, value=50)
    assert job.where()[0] == 50


def test_memory_at_the_boundary_of_a_phase_belongs_to_both_sides():
    job = Job(Origin.LOG)
    job.says(TagKind.PHASE, "Full")
    job.where()
    job.now_s += 0.09
    job.says(TagKind.PHASE, "Predict")
    samples = job.session.tick(job.now_s + 0.001)
    assert [(s.process, s.phase) for s in samples if "rss_bytes" in s.readings] == [
        ("main", "Full"),
        ("tree", "Full"),
        ("main", "Predict"),
        ("tree", "Predict"),
    ]


def test_a_counter_of_a_log_is_the_whole_trees_and_cannot_pose_as_a_reading():
    job = Job(Origin.LOG)
    job.says(TagKind.STEP, value=3)
    job.says(TagKind.COUNTER, "rss_bytes", 7.0)
    job.now_s += 0.1
    sample = job.session.tick(job.now_s)[0]
    assert (sample.process, sample.step, sample.readings) == ("tree", 3, {"counter_rss_bytes": 7})


def test_loggers_patterns_win_over_a_loop_that_is_counted() -> None:
    job = Job(Origin.LOGGER)
    job.probe(Kind.STEP, auto=True, step=412, loop=True)
    assert job.where()[0] == 412
    job.says(TagKind.STEP, value=40)
    assert job.where()[0] == 40


def test_framework_that_follows_a_loop_wins_over_loggers_patterns() -> None:
    job = Job(Origin.LOGGER)
    job.probe(Kind.STEP, auto=True, step=412, loop=True)
    job.says(TagKind.STEP, value=40)
    job.where()
    job.probe(Kind.STEP, auto=True, step=1)
    assert job.where()[0] == 1


def test_steps_of_a_framework_are_the_jobs_beside_more_iterations_of_a_loop() -> None:
    timeline = Timeline()
    launcher, trainer = ProcessId(10, 1), ProcessId(11, 1)
    for step in range(1, 100):
        timeline.move(launcher, step=step, phase="", step_by=Origin.LOOP)
    assert timeline.where(TREE)[0] == 99
    timeline.move(trainer, step=1, phase="", step_by=Origin.PROBE)
    assert timeline.where(TREE)[0] == 1
    timeline.move(launcher, step=100, phase="", step_by=Origin.LOOP)
    assert timeline.where(TREE)[0] == 1
    timeline.forget(trainer)
    timeline.move(launcher, step=101, phase="", step_by=Origin.LOOP)
    assert timeline.where(TREE)[0] == 101
