"""Reads one process's ring: what its probe and tags wrote (`memdiag.probe.ring_format`).

A reader is passive: it reads the file, never maps or changes it, and is unknown to the target.
Several readers may follow the same ring.

A ring may be damaged, or written by a hostile user: records with values that no probe writes are
skipped, and the memory that a ring can take in its reader is limited.
"""

from __future__ import annotations

import enum
import math
import os
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from memdiag import safe_open
from memdiag.capture.process.tree import ProcessId
from memdiag.probe import ring_format

_AT_A_TIME = 32  # records: one page, so that an idle ring costs one small read
# Limits of open phases per thread, and of threads with open phases. Heuristic.
_DEEPEST, _MOST_THREADS = 64, 1024
# A record may be this much later than now: clocks of processors differ by less. Heuristic.
_AHEAD_S = 1.0


class Kind(enum.Enum):
    """The kinds of events."""

    STEP = ring_format.STEP
    PHASE_BEGIN = ring_format.PHASE_BEGIN
    PHASE_END = ring_format.PHASE_END
    COUNTER = ring_format.COUNTER
    SAMPLE = ring_format.SAMPLE
    NOTE = ring_format.NOTE
    ALLOCATOR = ring_format.ALLOCATOR
    OUT_OF_MEMORY = ring_format.OUT_OF_MEMORY
    TENSOR_COUNTS = ring_format.TENSOR_COUNTS
    WORK = ring_format.WORK


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One record of a ring.

    at_s: on the clock of `time.monotonic()`, which all processes of a machine share.
    step: the process's step after this event, None before the first.
    phase: the process's phase after this event, nested ones joined by "/", "" outside.
    name: of the phase, counter or allocator; for a NOTE its text, for OUT_OF_MEMORY the text of the
        last exception. It comes from the target: untrusted.
    value: the counter's value; for OUT_OF_MEMORY 1 if it is about a device's memory, 2 about the
        host's; for WORK 1 where it begins, 0 where it ends; else None.
    readings: canonical metric -> value, read by the process itself at this moment.
    auto: recorded by the probe (a hook in torch), not by a tag in the program.
    loop: the step is an iteration of a loop of the program; no framework has reported it.
    thread: 0 for the process's main thread, else a number that identifies the thread.
    """

    process: ProcessId
    at_s: float
    kind: Kind
    step: int | None
    phase: str
    name: str
    value: float | None
    readings: dict[str, int]
    auto: bool
    thread: int
    loop: bool = False

    @property
    def rss_bytes(self) -> int | None:
        """Resident set size at this moment, None if it could not be read."""
        return self.readings.get("rss_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """The process of a ring, by its own account.

    rank, local_rank, world_size: None if the process is not
    part of a distributed job. role: "DataLoader worker 3", "Process-2", "" if unknown. program:
    untrusted. python: (major, minor).
    """

    process: ProcessId
    created_s: float
    rank: int | None
    local_rank: int | None
    world_size: int | None
    role: str
    program: str
    python: tuple[int, int]

    @property
    def label(self) -> str:
        """ "rank0", "DataLoader worker 3", "rank1 worker 3", or "": short enough for a table."""
        if self.rank is None:
            return self.role
        return f"rank{self.rank} {self.role.removeprefix('DataLoader ')}".rstrip()


class _Fields(NamedTuple):
    """A record as it is stored."""

    at_s: float
    flags: int
    name: int
    thread: int
    step: int
    value: float
    readings: bytes


_NOBODY = ProcessId(0, 0)
_NOTHING = _Fields(0.0, 0, 0, 0, 0, 0.0, ring_format.NO_READINGS)


class RingReader:
    """Follows one ring from its oldest record on."""

    def __init__(
        self,
        path: safe_open.Name,
        *,
        dir_fd: int | None = None,
        owners: Collection[int] | None = None,
    ) -> None:
        """dir_fd: the directory of `path`, open for longer than the reader; None for a full path.
        owners: the uids that the file may belong to; None for any.
        """
        self._path = path
        self._dir_fd = dir_fd
        self._owners = owners
        self._is_refused = False
        self._fd: int | None = None
        self._next = 0
        self._holes: set[int] = set()
        self._names: dict[int, str] = {
            ring_format.NO_NAME: "",
            ring_format.OTHER_NAME: ring_format.OTHER_TEXT,
        }
        self._phases = _Phases()
        self._automatic = ring_format.NO_NAME
        self._process = _NOBODY
        self.lost = 0

    def facts(self) -> Probed | None:
        """The process of the ring; None if it is not ready, or not a valid ring."""
        data = self._read(0, ring_format.NAMES_AT)
        if len(data) < ring_format.NAMES_AT or not data.startswith(ring_format.MAGIC):
            return None
        pid, _, started, created_s, _, rank, local_rank, world, python = (
            ring_format.HEADER.unpack_from(data, ring_format.HEADER_AT)
        )
        process = ProcessId(pid, started)
        if not math.isfinite(created_s) or self._process not in (_NOBODY, process):
            return None  # a ring belongs to one process only
        self._process = process
        return Probed(
            process=self._process,
            created_s=created_s,
            rank=_known(rank),
            local_rank=_known(local_rank),
            world_size=_known(world),
            role=ring_format.text_at(data, ring_format.ROLE_AT),
            program=ring_format.text_at(data, ring_format.PROGRAM_AT),
            python=(python >> 24 & 0xFF, python >> 16 & 0xFF),
        )

    def read(self) -> list[Event]:
        """The events written since the last call. Call `facts` before the first."""
        late = [event for fields in self._filled_holes() for event in self._events(fields)]
        return late + [event for fields in self._new_records() for event in self._events(fields)]

    def close(self) -> None:
        """Close the file; the position stays, and a later `read` opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _filled_holes(self) -> Iterator[_Fields]:
        """Records that a thread had reserved, but not written, when they were read first."""
        for number in sorted(self._holes):
            written, fields = _record(self._slots(number, 1), 0)
            if written < number + 1:
                continue
            self._holes.discard(number)
            if written == number + 1:
                yield fields
            else:
                self.lost += 1

    def _new_records(self) -> Iterator[_Fields]:
        data, first = b"", self._next
        # Limited, in case the target writes faster than this reads.
        for _ in range(4 * ring_format.RECORDS):
            index = self._next - first
            if not 0 <= index < len(data) // ring_format.RECORD_BYTES:
                first, index = self._next, 0
                data = self._slots(first, _AT_A_TIME)
            written, fields = _record(data, index)
            if written == self._next + 1:
                self._next += 1
                yield fields
            elif written > self._next + 1:
                self._jump(written)
            elif _later_is_written(data, index, self._next):
                self._holes.add(self._next)
                self._next += 1
            else:
                return

    def _jump(self, written: int) -> None:
        """The slot was overwritten: continue with the oldest record that may exist."""
        oldest = max(written - ring_format.RECORDS, self._next + 1)
        self.lost += oldest - self._next
        self._next = oldest

    def _events(self, fields: _Fields) -> Iterator[Event]:
        """The events of a record: one, two if a phase of the probe follows another one, or none if
        no probe can have written it.
        """
        if not _is_plausible(fields):
            return
        if fields.flags == ring_format.PHASE_BEGIN | ring_format.AUTO:
            if self._automatic != ring_format.NO_NAME:
                flags = ring_format.PHASE_END | ring_format.AUTO
                yield self._event(fields._replace(flags=flags, name=self._automatic, value=0.0))
            self._automatic = fields.name
        elif fields.flags == ring_format.PHASE_END | ring_format.AUTO:
            self._automatic = ring_format.NO_NAME
        yield self._event(fields)

    def _event(self, fields: _Fields) -> Event:
        at_s, flags, name, thread, step, value, packed = fields
        kind = Kind(flags & ring_format.KIND_MASK)
        auto = bool(flags & ring_format.AUTO)
        text = self._name(name)
        known = _known_readings(kind, text, packed)
        phase = self._phases.after(kind, text, thread=thread, depth=value, auto=auto)
        return Event(
            process=self._process,
            at_s=at_s,
            kind=kind,
            step=None if step == ring_format.NO_STEP else step,
            phase=phase,
            name=text,
            value=value if kind in (Kind.COUNTER, Kind.OUT_OF_MEMORY, Kind.WORK) else None,
            readings=known,
            auto=auto,
            thread=thread,
            loop=bool(flags & ring_format.LOOP),
        )

    def _name(self, index: int) -> str:
        if index not in self._names:
            at = ring_format.NAMES_AT + (index % ring_format.NAMES) * ring_format.NAME_BYTES
            self._names[index] = ring_format.text_at(self._read(at, ring_format.NAME_BYTES), 0)
        return self._names[index]

    def _slots(self, number: int, count: int) -> bytes:
        """The slots of records `number` to `number + count - 1`, continued at the file's start."""
        slot = number % ring_format.RECORDS
        until_end = min(count, ring_format.RECORDS - slot)
        at = ring_format.RECORDS_AT + slot * ring_format.RECORD_BYTES
        data = self._read(at, until_end * ring_format.RECORD_BYTES)
        if until_end < count:
            data += self._read(
                ring_format.RECORDS_AT, (count - until_end) * ring_format.RECORD_BYTES
            )
        return data

    def _read(self, at: int, count: int) -> bytes:
        """`count` bytes at offset `at`; fewer or none if the file is missing."""
        if self._is_refused:
            return b""
        try:
            if self._fd is None:
                self._fd = safe_open.open_regular(
                    self._path, dir_fd=self._dir_fd, follow=False, owners=self._owners
                )
            return os.pread(self._fd, count, at)
        except (safe_open.NotRegular, PermissionError):
            self._is_refused = True
            return b""
        except OSError:
            return b""


class _Phases:
    """The open phases of one process: its tags by thread, and the probe's phase."""

    def __init__(self) -> None:
        self._tagged: dict[int, list[str]] = {}
        self._automatic = ""

    def after(self, kind: Kind, name: str, *, thread: int, depth: float, auto: bool) -> str:
        """The process's phase after an event.

        Each boundary contains the depth after it, so that lost records do not shift the rest.
        """
        if kind in (Kind.PHASE_BEGIN, Kind.PHASE_END):
            begins = kind is Kind.PHASE_BEGIN
            if auto:
                self._automatic = name if begins else ""
            else:
                self._nest(name if begins else "", thread, int(depth))
        return self._tagged_phase() or self._automatic

    def _nest(self, name: str, thread: int, depth: int) -> None:
        if thread not in self._tagged and len(self._tagged) >= _MOST_THREADS:
            del self._tagged[next(iter(self._tagged))]
        stack = self._tagged.setdefault(thread, [])
        del stack[max(0, depth - bool(name)) :]
        if name:
            stack.append(name)
        if not stack:
            del self._tagged[thread]

    def _tagged_phase(self) -> str:
        """The main thread's phase, else that of the thread that has opened one last."""
        if not self._tagged:
            return ""
        return "/".join(self._tagged.get(0) or next(reversed(self._tagged.values())))


def _known_readings(kind: Kind, name: str, packed: bytes) -> dict[str, int]:
    """A record's readings by metric; none for an unknown allocator."""
    metrics: tuple[str, ...] = ring_format.READINGS
    if kind is Kind.TENSOR_COUNTS:
        metrics = ring_format.TENSOR_COUNT_READINGS
    elif kind is Kind.ALLOCATOR:
        known_name = name in ring_format.ALLOCATORS
        metrics = tuple(f"{name}_{r}" for r in ring_format.ALLOCATOR_READINGS) if known_name else ()
    readings = ring_format.READING.unpack(packed)
    return {
        metric: reading for metric, reading in zip(metrics, readings, strict=False) if reading >= 0
    }


def _record(data: bytes, index: int) -> tuple[int, _Fields]:
    """The number + 1 of the complete record in slot `index` (0 for none), and its fields."""
    at = index * ring_format.RECORD_BYTES
    if at + ring_format.RECORD_BYTES > len(data):
        return 0, _NOTHING
    written, *fields, check = ring_format.RECORD.unpack_from(data, at)
    known = fields[1] & ring_format.KIND_MASK in _KINDS
    return (written, _Fields(*fields)) if written == check and known else (0, _NOTHING)


_KINDS = frozenset(kind.value for kind in Kind)


def _is_plausible(fields: _Fields) -> bool:
    """Return True if a probe can have written this: a time in the past, a possible depth."""
    if not 0 <= fields.at_s <= time.monotonic() + _AHEAD_S:
        return False
    kind = Kind(fields.flags & ring_format.KIND_MASK)
    if kind in (Kind.PHASE_BEGIN, Kind.PHASE_END):
        return 0 <= fields.value <= _DEEPEST
    return kind is not Kind.COUNTER or math.isfinite(fields.value)


def _later_is_written(data: bytes, index: int, number: int) -> bool:
    """Return True if a record after `number`, which is in slot `index`, is complete."""
    later = range(index + 1, len(data) // ring_format.RECORD_BYTES)
    return any(_record(data, i)[0] == number + 1 + i - index for i in later)


def _known(rank: int) -> int | None:
    return None if rank < 0 else rank
