"""Which of what the processes said explains an end."""

from __future__ import annotations

from memdiag.capture.diagnosis.oom_reports import OomReports
from memdiag.capture.probelink.ring_reader import Event, Kind
from memdiag.capture.process.tree import ProcessId


def event(kind: Kind, at_s: float, pid: int = 7, **more: object) -> Event:
    known = {"name": "", "value": None, "readings": {}, **more}
    return Event(
        process=ProcessId(pid, 1),
        at_s=at_s,
        kind=kind,
        step=None,
        phase="",
        auto=True,
        thread=0,
        **known,  # type: ignore[arg-type]
    )


def counted(at_s: float, ooms: int, pid: int = 7) -> Event:
    return event(Kind.ALLOCATOR, at_s, pid, name="vram", readings={"vram_ooms": ooms})


def test_nothing_said_explains_nothing() -> None:
    listener = OomReports()
    listener.add(counted(1.0, 0), "main")
    assert listener.latest(1.0) is None


def test_an_allocation_that_failed_lately_may_explain_it() -> None:
    listener = OomReports()
    listener.add(counted(1.0, 0), "rank0")
    listener.add(counted(2.0, 1), "rank0")
    words = listener.latest(5.0)
    assert words is not None
    assert (words.process, words.on_device, words.text) == ("rank0", True, "")


def test_one_that_was_survived_does_not() -> None:
    listener = OomReports()
    for at_s in range(2, 60):
        listener.add(counted(at_s, 1), "rank0")  # the count stays
    assert listener.latest(60.0) is None


def test_counts_are_each_processs_own() -> None:
    listener = OomReports()
    listener.add(counted(1.0, 3, pid=7), "rank0")
    listener.add(counted(50.0, 1, pid=8), "rank1")
    words = listener.latest(51.0)
    assert words is not None
    assert words.process == "rank1"


def test_an_exception_goes_before_a_count_and_tells_what_was_held() -> None:
    listener = OomReports()
    listener.add(event(Kind.SAMPLE, 1.0, readings={"vram_reserved_bytes": 900}), "rank0")
    listener.add(counted(2.0, 1), "rank0")
    listener.add(event(Kind.OUT_OF_MEMORY, 2.0, name="CUDA out of memory", value=1.0), "rank0")
    listener.add(counted(3.0, 1, pid=8), "rank1")
    words = listener.latest(99.0)
    assert words is not None
    assert (words.text, words.held_bytes) == ("CUDA out of memory", 900)
