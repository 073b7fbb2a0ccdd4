"""What is written to a ring is read from it: whole, in order, whatever happens to the writer."""

from __future__ import annotations

import gc
import math
import mmap
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdiag.capture.probelink.channel import ChannelReader
from memdiag.capture.probelink.ring_reader import Kind, RingReader
from memdiag.probe import ring_format
from memdiag.probe.session import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(str(tmp_path))


@pytest.fixture
def reader(tmp_path: Path) -> ChannelReader:
    return ChannelReader(tmp_path)


def ring_file(directory: Path) -> Path:
    (path,) = directory.glob(f"*{ring_format.SUFFIX}")
    return path


def test_events_carry_what_was_said(session, reader) -> None:
    session.phase_begin("train")
    session.counter("copies", 3)
    session.step(12)
    session.phase_end("train")
    begin, counter, step, end = reader.drain()
    assert (begin.kind, begin.phase, begin.step) == (Kind.PHASE_BEGIN, "train", None)
    assert (counter.name, counter.value, counter.phase) == ("copies", 3.0, "train")
    assert (step.kind, step.step, step.phase, step.auto) == (Kind.STEP, 12, "train", False)
    assert (end.kind, end.name, end.phase, end.step) == (Kind.PHASE_END, "train", "", 12)
    assert begin.at_s <= counter.at_s <= step.at_s <= end.at_s
    assert step.process.pid == os.getpid()


def test_steps_and_boundaries_carry_the_resident_size(session, reader) -> None:
    session.phase_begin("eval")
    before = reader.drain()[0].rss_bytes
    # Not by malloc: its heap may have that much to hand out, from tests before this one.
    block = mmap.mmap(-1, 64 << 20)
    for page in range(0, len(block), mmap.PAGESIZE):
        block[page] = 1
    session.phase_end("eval")
    session.step(1)
    after, step = reader.drain()
    assert before is not None
    assert after.rss_bytes is not None
    assert after.rss_bytes - before == pytest.approx(len(block), rel=0.1)
    assert step.rss_bytes == pytest.approx(after.rss_bytes, rel=0.05)


def test_step_carries_exact_meters(session, reader) -> None:
    before = step_with_meters(session, reader)
    block = bytes(32 << 20)
    objects = [object() for _ in range(100_000)]
    after = step_with_meters(session, reader)
    assert after["malloc_bytes"] - before["malloc_bytes"] == pytest.approx(len(block), rel=0.1)
    assert after["python_blocks"] - before["python_blocks"] == pytest.approx(len(objects), rel=0.2)


class Cycle:
    """Garbage when dropped, until Python's collector runs."""

    def __init__(self) -> None:
        self.me = self


def test_step_carries_what_the_collector_has_done(session, reader) -> None:
    before = step_with_meters(session, reader)  # (with a full collection)
    old = [Cycle() for _ in range(1000)]
    gc.collect()
    old.clear()
    after = step_with_meters(session, reader)
    assert after["gc_full_collections"] - before["gc_full_collections"] == 2
    assert after["gc_full_freed_objects"] - before["gc_full_freed_objects"] >= 1000
    assert after["gc_young_freed_objects"] >= before["gc_young_freed_objects"]


def step_with_meters(session: Session, reader: ChannelReader) -> dict[str, int]:
    """The readings of the next step at which the budget of every meter allows one."""
    gc.collect()
    while True:
        session.step(1)
        readings = reader.drain()[-1].readings
        if {"malloc_bytes", "python_blocks"} <= readings.keys():
            return readings


def test_readers_are_independent(session, tmp_path) -> None:
    early, late = ChannelReader(tmp_path), ChannelReader(tmp_path)
    session.step(1)
    assert [event.step for event in early.drain()] == [1]
    session.step(2)
    assert [event.step for event in early.drain()] == [2]
    assert [event.step for event in late.drain()] == [1, 2]
    assert early.drain() == late.drain() == []


def test_reader_counts_what_it_was_too_slow_for(session, reader) -> None:
    session.step(0)
    assert len(reader.drain()) == 1
    for number in range(1, ring_format.RECORDS + 1001):
        session.step(number)
    steps = [event.step for event in reader.drain()]
    assert steps == list(range(1001, ring_format.RECORDS + 1001))
    assert reader.lost == 1000


def test_phase_is_right_again_after_lost_events(session, reader) -> None:
    session.phase_begin("a")
    reader.drain()
    session.phase_end("a")
    for _ in range(ring_format.RECORDS):
        session.step(1)
    session.phase_begin("b")
    assert reader.drain()[-1].phase == "b"


def test_record_half_written_is_left_until_it_is_whole(session, reader, tmp_path) -> None:
    session.step(1)
    session.step(2)
    path = ring_file(tmp_path)
    data = path.read_bytes()
    with path.open("r+b") as file:  # the second record's last field is still to come
        file.seek(ring_format.RECORDS_AT + 2 * ring_format.RECORD_BYTES - 8)
        file.write(bytes(8))
    assert [event.step for event in reader.drain()] == [1]
    path.write_bytes(data)
    assert [event.step for event in reader.drain()] == [2]


def test_record_overtaken_by_a_later_one_is_delivered_when_it_comes(
    session, reader, tmp_path
) -> None:
    for number in (1, 2, 3):
        session.step(number)
    path = ring_file(tmp_path)
    data = path.read_bytes()
    with path.open("r+b") as file:  # a thread that was interrupted before it wrote the second
        file.seek(ring_format.RECORDS_AT + ring_format.RECORD_BYTES)
        file.write(bytes(ring_format.RECORD_BYTES))
    assert [event.step for event in reader.drain()] == [1, 3]
    path.write_bytes(data)
    assert [event.step for event in reader.drain()] == [2]
    assert reader.lost == 0


def test_threads_do_not_mix_their_records_or_phases(session, reader) -> None:
    def tag(name: str) -> None:
        for _ in range(200):
            session.phase_begin(name)
            session.counter(name, float(ord(name)))
            session.phase_end(name)

    threads = [threading.Thread(target=tag, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = reader.drain()
    assert len(events) == 4 * 200 * 3
    counters = [event for event in events if event.kind is Kind.COUNTER]
    assert all(event.value == ord(event.name) for event in counters)
    assert events[-1].phase == ""


@given(st.text(max_size=300))
def test_names_survive_or_are_cut_between_characters(text: str) -> None:
    stored = ring_format.text_at(ring_format.text_bytes(text, ring_format.NAME_BYTES), 0)
    assert len(stored.encode()) < ring_format.NAME_BYTES
    whole = text.encode("utf-8", "backslashreplace").decode()
    assert whole.startswith(stored)
    assert stored == whole or len(stored.encode()) > ring_format.NAME_BYTES - 6


@pytest.mark.parametrize("name", ["\x1b[2J", "[red]", "a\nb", "ä" * 400, "", "\ud800", 7, None, ()])
def test_no_name_is_too_strange(session, reader, name) -> None:
    session.phase_begin(name)
    session.phase_end(name)
    assert [event.kind for event in reader.drain()] == [Kind.PHASE_BEGIN, Kind.PHASE_END]


def test_any_number_of_names_fits(session, reader) -> None:
    for number in range(1000):
        session.counter(f"loss of sample {number}", number)
    events = reader.drain()
    assert [event.value for event in events] == list(range(1000))
    assert events[0].name == "loss of sample 0"
    assert events[-1].name == ring_format.OTHER_TEXT


@pytest.mark.parametrize("bad", ["abc", None, 1.5, math.nan, math.inf, 1 << 70, object(), [1]])
def test_step_that_is_not_an_integer_is_ignored_and_noted_once(session, reader, bad) -> None:
    session.step(bad)
    session.step(bad)
    session.step(5)
    note, step = reader.drain()
    assert note.kind is Kind.NOTE
    assert "not an integer" in note.name
    assert step.step == 5


@pytest.mark.parametrize("bad", ["abc", None, object()])
def test_counter_that_is_no_number_is_ignored_and_noted(session, reader, bad) -> None:
    session.counter("copies", bad)
    assert [event.kind for event in reader.drain()] == [Kind.NOTE]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_counter_without_a_finite_value_is_no_reading(session, reader, value) -> None:
    session.counter("copies", value)
    assert reader.drain() == []


def test_phase_that_was_never_begun_ends_nothing(session, reader) -> None:
    session.phase_begin("train")
    session.phase_end("eval")
    session.step(1)
    assert [event.phase for event in reader.drain()] == ["train", "train"]


def test_end_of_an_outer_phase_ends_those_inside_it(session, reader) -> None:
    session.phase_begin("train")
    session.phase_begin("forward")
    session.phase_end("train")
    assert [event.phase for event in reader.drain()] == ["train", "train/forward", ""]


def test_reader_takes_no_other_file_for_a_ring(tmp_path) -> None:
    for name, content in (("1-1.ring", b""), ("2-2.ring", b"x" * 10), ("3-3.ring", bytes(9999))):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "4-4.ring").symlink_to("/etc/passwd")
    (tmp_path / "5-5.ring").mkdir()
    reader = ChannelReader(tmp_path)
    assert reader.drain() == []
    assert reader.processes() == ()


def test_garbage_in_a_ring_is_no_event(session, tmp_path) -> None:
    session.step(1)
    path = ring_file(tmp_path)
    with path.open("r+b") as file:
        file.seek(ring_format.RECORDS_AT)
        file.write(os.urandom(ring_format.RECORDS * ring_format.RECORD_BYTES))
    reader = RingReader(path)
    assert reader.facts() is not None
    assert reader.read() == []
