"""A damaged or hostile ring costs its own readings, and nothing else."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdiag.capture.probelink.channel import ChannelReader
from memdiag.capture.probelink.ring_reader import Event
from memdiag.probe import ring_format
from memdiag.probe.session import Session

WELL = ring_format.PHASE_BEGIN | ring_format.AUTO


def drained(directory: Path) -> list[Event]:
    reader = ChannelReader(directory)
    try:
        return reader.drain()
    finally:
        reader.close()


def put(ring: Path, number: int, **changes: object) -> None:
    """Write record `number` with these fields in the place of what a probe would write."""
    fields = {
        "at_s": time.monotonic(),
        "flags": ring_format.STEP,
        "name": 0,
        "thread": 0,
        "step": number,
        "value": 0.0,
        "readings": ring_format.NO_READINGS,
        **changes,
    }
    record = ring_format.RECORD.pack(number + 1, *fields.values(), number + 1)
    data = bytearray(ring.read_bytes())
    at = ring_format.RECORDS_AT + number % ring_format.RECORDS * ring_format.RECORD_BYTES
    data[at : at + len(record)] = record
    ring.write_bytes(data)


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """The ring of a probe that has told steps 0 and 1."""
    session = Session(str(tmp_path))
    session.step(0)
    session.step(1)
    (path,) = tmp_path.glob("*.ring")
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"flags": ring_format.PHASE_BEGIN, "value": math.nan},
        {"flags": ring_format.PHASE_BEGIN, "value": math.inf},
        {"flags": ring_format.PHASE_END, "value": -math.inf},
        {"flags": WELL, "value": 1e300},
        {"flags": ring_format.COUNTER, "value": math.nan},
        {"at_s": math.nan},
        {"at_s": math.inf},
        {"at_s": -1.0},
        {"at_s": 1e12},
    ],
)
def test_figure_that_no_probe_writes_costs_its_own_record(changes, ring: Path) -> None:
    put(ring, 2, **changes)
    put(ring, 3)
    assert [event.step for event in drained(ring.parent)] == [0, 1, 3]


def test_negative_readings_are_missing(ring: Path) -> None:
    readings = ring_format.READING.pack(-5, -(1 << 63), *[ring_format.ABSENT] * 8)
    put(ring, 2, readings=readings)
    assert drained(ring.parent)[-1].readings == {}


def test_phases_without_end_are_bounded(ring: Path) -> None:
    for number in range(2, 600):
        flags = ring_format.PHASE_BEGIN
        put(ring, number, flags=flags, thread=number * 7, name=1, value=float(number))
    started_s = time.monotonic()
    assert max(len(event.phase) for event in drained(ring.parent)) < 10_000
    assert time.monotonic() - started_s < 5


def test_ring_is_of_one_process_from_its_beginning_to_its_end(ring: Path) -> None:
    reader = ChannelReader(ring.parent)
    assert {event.process.pid for event in reader.drain()} == {os.getpid()}
    data = bytearray(ring.read_bytes())
    data[8:16] = (1).to_bytes(8, "little")
    ring.write_bytes(data)
    put(ring, 2)
    assert reader.drain() == []
    assert [facts.process.pid for facts in reader.processes()] == [os.getpid()]
    reader.close()


NUMBERS = st.one_of(
    st.floats(), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.0, 64.0, 1e308])
)
RECORDS = st.builds(
    dict,
    at_s=st.one_of(NUMBERS, st.just(1.0)),
    flags=st.integers(0, 0xFFFF),
    name=st.integers(0, 0xFFFF),
    thread=st.integers(0, 0xFFFFFFFF),
    step=st.integers(-(1 << 63), (1 << 63) - 1),
    value=NUMBERS,
    readings=st.binary(min_size=80, max_size=80),
)


@given(st.lists(RECORDS, max_size=20), st.lists(st.tuples(st.integers(0, 40_000), st.binary())))
def test_no_ring_can_make_its_reader_fail(tmp_path_factory, records, edits) -> None:
    directory = tmp_path_factory.mktemp("rings")
    session = Session(str(directory))
    session.step(0)
    (ring,) = directory.glob("*.ring")
    for number, record in enumerate(records, 1):
        put(ring, number, **record)
    data = bytearray(ring.read_bytes())
    for at, piece in edits:
        data[at : at + len(piece)] = piece
    ring.write_bytes(data)
    reader = ChannelReader(directory)
    for event in (*reader.drain(), *reader.drain()):
        assert math.isfinite(event.at_s)
        assert all(reading >= 0 for reading in event.readings.values())
    assert not reader.damaged
    reader.processes()
    reader.labels()
    reader.close()
