"""Reads one process's ring: what its probe and its tags wrote (format: `memdiag.probe.layout`).

A reader is passive: it looks at the file, never maps or changes it, and the target never learns
of it. Several may follow the same ring.

A ring may be damaged, or written by somebody who means harm: records with figures that no probe
writes are passed over, and what a ring can make its reader remember is bounded.
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
from memdiag.probe import layout

_AT_A_TIME = 32  # records: one page, so that looking at a quiet ring is one small read
# Phases open in one thread, and threads with open phases: no program has more. Heuristic.
_DEEPEST, _MOST_THREADS = 64, 1024
# By so much a record may be later than now: clocks of processors differ by less. Heuristic.
_AHEAD_S = 1.0


class Kind(enum.Enum):
    """What an event says."""

    STEP = layout.STEP
    PHASE_BEGIN = layout.PHASE_BEGIN
    PHASE_END = layout.PHASE_END
    COUNTER = layout.COUNTER
    METERS = layout.METERS
    NOTE = layout.NOTE
    ALLOCATOR = layout.ALLOCATOR
    OUT_OF_MEMORY = layout.OUT_OF_MEMORY
    CENSUS = layout.CENSUS


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One record of a ring.

    at_s: on the clock of `time.monotonic()`, which all processes of a machine share.
    step: the process's step after this event, None before the first.
    phase: the process's phase after this event, nested ones joined by "/", "" outside.
    name: of the phase, counter or allocator; for a NOTE its text, for OUT_OF_MEMORY what the last
        exception said. Chosen by the target: untrusted.
    value: the counter's value; for OUT_OF_MEMORY 1 if it is about a device's memory, 2 about the
        host's; else None.
    readings: canonical metric -> value, taken by the process itself at this very moment.
    auto: told by the probe (a hook in torch), not by a tag in the program.
    loop: of such a step: an iteration of a loop, which no framework has told.
    thread: 0 for the process's main thread, else a number that tells threads apart.
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
        """Resident set size at this moment, None where it could not be read."""
        return self.readings.get("rss_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """Who a ring belongs to, as the process itself says.

    parent_pid: at the time the ring was made. rank, local_rank, world_size: None where the
    process is not part of a distributed job. role: what it does there ("DataLoader worker 3",
    "Process-2"), "" where that cannot be told. program: untrusted. python: (major, minor).
    """

    process: ProcessId
    parent_pid: int
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
_NOTHING = _Fields(0.0, 0, 0, 0, 0, 0.0, layout.NO_READINGS)


class RingReader:
    """Follows one ring from its oldest record on."""

    def __init__(
        self,
        path: safe_open.Name,
        *,
        dir_fd: int | None = None,
        owners: Collection[int] | None = None,
    ) -> None:
        """dir_fd: of the directory that `path` is in, which outlives the reader; None where the
        path is whole. owners: the uids that the file may belong to; None for any.
        """
        self._path = path
        self._dir_fd = dir_fd
        self._owners = owners
        self._is_refused = False
        self._fd: int | None = None
        self._next = 0
        self._holes: set[int] = set()
        self._names: dict[int, str] = {layout.NO_NAME: "", layout.OTHER_NAME: layout.OTHER_TEXT}
        self._phases = _Phases()
        self._automatic = layout.NO_NAME
        self._process = _NOBODY
        self.lost = 0

    def facts(self) -> Probed | None:
        """Who wrote the ring; None while it is not ready or where it is no ring of ours."""
        data = self._read(0, layout.NAMES_AT)
        if len(data) < layout.NAMES_AT or not data.startswith(layout.MAGIC):
            return None
        pid, parent, started, created_s, _, rank, local_rank, world, python = (
            layout.HEADER.unpack_from(data, layout.HEADER_AT)
        )
        process = ProcessId(pid, started)
        if not math.isfinite(created_s) or self._process not in (_NOBODY, process):
            return None  # a ring is one process's, from its beginning to its end
        self._process = process
        return Probed(
            process=self._process,
            parent_pid=parent,
            created_s=created_s,
            rank=_known(rank),
            local_rank=_known(local_rank),
            world_size=_known(world),
            role=layout.text_at(data, layout.ROLE_AT),
            program=layout.text_at(data, layout.PROGRAM_AT),
            python=(python >> 24 & 0xFF, python >> 16 & 0xFF),
        )

    def read(self) -> list[Event]:
        """The events written since the last call. Call `facts` before the first."""
        late = [event for fields in self._filled_holes() for event in self._events(fields)]
        return late + [event for fields in self._new_records() for event in self._events(fields)]

    def close(self) -> None:
        """Release the descriptor; the position stays, and a later `read` opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _filled_holes(self) -> Iterator[_Fields]:
        """Records that a thread had reserved and not yet written when we passed by."""
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
        # Bounded, so that a target that writes faster than we read cannot keep us here.
        for _ in range(4 * layout.RECORDS):
            index = self._next - first
            if not 0 <= index < len(data) // layout.RECORD_BYTES:
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
        """This slot was used again already: go on with the oldest record that may be there."""
        oldest = max(written - layout.RECORDS, self._next + 1)
        self.lost += oldest - self._next
        self._next = oldest

    def _events(self, fields: _Fields) -> Iterator[Event]:
        """What a record says: one event, or two where one phase of the probe follows another, or
        none where no probe can have written it.
        """
        if not _is_plausible(fields):
            return
        if fields.flags == layout.PHASE_BEGIN | layout.AUTO:
            if self._automatic != layout.NO_NAME:
                flags = layout.PHASE_END | layout.AUTO
                yield self._event(fields._replace(flags=flags, name=self._automatic, value=0.0))
            self._automatic = fields.name
        elif fields.flags == layout.PHASE_END | layout.AUTO:
            self._automatic = layout.NO_NAME
        yield self._event(fields)

    def _event(self, fields: _Fields) -> Event:
        at_s, flags, name, thread, step, value, packed = fields
        kind = Kind(flags & layout.KIND_MASK)
        auto = bool(flags & layout.AUTO)
        text = self._name(name)
        known = _known_readings(kind, text, packed)
        phase = self._phases.after(kind, text, thread=thread, depth=value, auto=auto)
        return Event(
            process=self._process,
            at_s=at_s,
            kind=kind,
            step=None if step == layout.NO_STEP else step,
            phase=phase,
            name=text,
            value=value if kind in (Kind.COUNTER, Kind.OUT_OF_MEMORY) else None,
            readings=known,
            auto=auto,
            thread=thread,
            loop=bool(flags & layout.LOOP),
        )

    def _name(self, index: int) -> str:
        if index not in self._names:
            at = layout.NAMES_AT + (index % layout.NAMES) * layout.NAME_BYTES
            self._names[index] = layout.text_at(self._read(at, layout.NAME_BYTES), 0)
        return self._names[index]

    def _slots(self, number: int, count: int) -> bytes:
        """The slots of records `number` to `number + count - 1`, around the end of the file."""
        slot = number % layout.RECORDS
        until_end = min(count, layout.RECORDS - slot)
        at = layout.RECORDS_AT + slot * layout.RECORD_BYTES
        data = self._read(at, until_end * layout.RECORD_BYTES)
        if until_end < count:
            data += self._read(layout.RECORDS_AT, (count - until_end) * layout.RECORD_BYTES)
        return data

    def _read(self, at: int, count: int) -> bytes:
        """`count` bytes at offset `at`; fewer, or none, when the file is not (or no more) there."""
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
    """The open phases of one process: its tags by thread, and the one that the probe tells."""

    def __init__(self) -> None:
        self._tagged: dict[int, list[str]] = {}
        self._automatic = ""

    def after(self, kind: Kind, name: str, *, thread: int, depth: float, auto: bool) -> str:
        """The process's phase after an event.

        A boundary tells the depth it leads to, so that lost records cannot shift the rest.
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
        """The main thread's phase, else that of the thread which opened one last."""
        if not self._tagged:
            return ""
        return "/".join(self._tagged.get(0) or next(reversed(self._tagged.values())))


def _known_readings(kind: Kind, name: str, packed: bytes) -> dict[str, int]:
    """A record's readings by metric; none of an allocator that nobody knows."""
    metrics: tuple[str, ...] = layout.READINGS
    if kind is Kind.CENSUS:
        metrics = layout.CENSUS_READINGS
    elif kind is Kind.ALLOCATOR:
        known_name = name in layout.ALLOCATORS
        metrics = tuple(f"{name}_{r}" for r in layout.ALLOCATOR_READINGS) if known_name else ()
    readings = layout.READING.unpack(packed)
    return {
        metric: reading for metric, reading in zip(metrics, readings, strict=False) if reading >= 0
    }


def _record(data: bytes, index: int) -> tuple[int, _Fields]:
    """Which record (number + 1) is whole in slot `index`, 0 for none, and its fields."""
    at = index * layout.RECORD_BYTES
    if at + layout.RECORD_BYTES > len(data):
        return 0, _NOTHING
    written, *fields, check = layout.RECORD.unpack_from(data, at)
    known = fields[1] & layout.KIND_MASK in _KINDS
    return (written, _Fields(*fields)) if written == check and known else (0, _NOTHING)


_KINDS = frozenset(kind.value for kind in Kind)


def _is_plausible(fields: _Fields) -> bool:
    """Return True if a probe can have written this: a moment that has been, a depth that can be."""
    if not 0 <= fields.at_s <= time.monotonic() + _AHEAD_S:
        return False
    kind = Kind(fields.flags & layout.KIND_MASK)
    if kind in (Kind.PHASE_BEGIN, Kind.PHASE_END):
        return 0 <= fields.value <= _DEEPEST
    return kind is not Kind.COUNTER or math.isfinite(fields.value)


def _later_is_written(data: bytes, index: int, number: int) -> bool:
    """Whether a record after `number`, which lies in slot `index`, is there already."""
    later = range(index + 1, len(data) // layout.RECORD_BYTES)
    return any(_record(data, i)[0] == number + 1 + i - index for i in later)


def _known(rank: int) -> int | None:
    return None if rank < 0 else rank
