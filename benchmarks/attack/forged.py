"""Rings that no probe has written: forged ones, and those of a hostile program."""

from __future__ import annotations

import math
import os
import random
import struct
from pathlib import Path
from typing import Any

from memdiag.probe import ring_format

# What is in a forged ring, and in no other: if it comes up anywhere, it was believed.
STEP = 777_123
BYTES = 123_456_789_012
PHASE = "forged phase"
SIGNS = (str(STEP), str(BYTES), "123.46 GB", "123.5 GB", PHASE, "forged")

_BITS = tuple(1 << shift for shift in (0, 8, 15, 16, 31, 32, 47, 62))
_WHOLE = (0, 1, -1, -2, *_BITS, *(-bit for bit in _BITS), (1 << 63) - 1, -(1 << 63))
_FLOATS = (0.0, -0.0, -1.0, 1e-320, 1e18, 1e300, -1e300, math.nan, math.inf, -math.inf)
_TEXTS = (
    "",
    " ",
    "\x1b[2J\x1b[31mred",
    "a\nb\rc\td",
    "\x00\x00",
    "at_s",
    "step,phase",
    '"quoted"',
    "=cmd|' /C calc'!A0",
    "../../etc/passwd",
    "[bold red]x[/]",
    "\u202egnp.exe",
    "\U0001f600" * 30,
    "x" * 300,
    "rss_bytes",
    "vram",
    "%s%n{0}",
    "</script><b>",
)
_KINDS = (*range(12), 255)


def facts(pid: int, started: int, *, role: str = "", program: str = "python") -> bytearray:
    """The first page of a ring of process `pid`."""
    page = bytearray(ring_format.NAMES_AT)
    page[: len(ring_format.MAGIC)] = ring_format.MAGIC
    values = (pid, 1, started, 1.0, 1.0, -1, -1, -1, 0x030B00F0)
    ring_format.HEADER.pack_into(page, ring_format.HEADER_AT, *values)
    for at, text, room in (
        (ring_format.ROLE_AT, role, ring_format.ROLE_BYTES),
        (ring_format.PROGRAM_AT, program, ring_format.PROGRAM_BYTES),
    ):
        entry = ring_format.text_bytes(text, room)
        page[at : at + len(entry)] = entry
    return page


def ring(pid: int, started: int, now_s: float) -> bytes:
    """A ring with the SIGNS in it, of records that lie around `now_s`."""
    data = facts(pid, started, role="forged role") + bytes(
        ring_format.FILE_BYTES - ring_format.NAMES_AT
    )
    name = ring_format.text_bytes(PHASE, ring_format.NAME_BYTES)
    at = ring_format.NAMES_AT + ring_format.NAME_BYTES
    data[at : at + len(name)] = name
    absent = [ring_format.ABSENT] * (len(ring_format.READINGS) - 1)
    readings = ring_format.READING.pack(BYTES, *absent)
    for number in range(600):
        kind = (ring_format.STEP, ring_format.PHASE_BEGIN, ring_format.SAMPLE)[number % 3]
        at_s = now_s + number * 0.02
        put(data, number, (at_s, kind, 1, 0, STEP + number // 100, 1.0, readings))
    return bytes(data)


def put(data: bytearray, number: int, fields: tuple[Any, ...]) -> None:
    """Write record `number` into a ring."""
    at = ring_format.RECORDS_AT + number % ring_format.RECORDS * ring_format.RECORD_BYTES
    ring_format.RECORD.pack_into(data, at, number + 1, *fields, number + 1)


def started_ticks(pid: int) -> int:
    """When a process has started, as its ring says it."""
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])


def plant(directory: Path, data: bytes, name: str, owner: int) -> Path:
    """Put a ring into a directory, as a file of `owner`."""
    path = directory / name
    path.write_bytes(data)
    path.chmod(0o644)
    os.chown(path, owner, owner)
    return path


def hostile(chance: random.Random, valid: bytes, now_s: float) -> bytes:
    """A ring of a program that means harm, or that has gone mad: `valid` damaged, or invented."""
    data = bytearray(valid)
    if chance.random() < 0.4:
        _damage(chance, data)
    else:
        _invent(chance, data, now_s)
    if chance.random() < 0.2:
        _damage_header(chance, data)
    if chance.random() < 0.2:
        del data[chance.randrange(len(data)) :]
    elif chance.random() < 0.1:
        data += chance.randbytes(chance.randrange(1, 9000))
    return bytes(data)


def _damage(chance: random.Random, data: bytearray) -> None:
    """Other bytes in some places, mostly where there is something."""
    used = ring_format.RECORDS_AT + 64 * ring_format.RECORD_BYTES
    for _ in range(chance.randrange(1, 60)):
        at = chance.randrange(min(len(data), used if chance.random() < 0.8 else len(data)))
        piece = chance.randbytes(chance.choice((1, 1, 2, 8, 40)))
        data[at : at + len(piece)] = piece


def _damage_header(chance: random.Random, data: bytearray) -> None:
    at = ring_format.HEADER_AT + chance.randrange(ring_format.HEADER.size - 8)
    data[at : at + 8] = struct.pack("<q", chance.choice(_WHOLE))


def _invent(chance: random.Random, data: bytearray, now_s: float) -> None:
    """Records that are whole, and make no sense; names that make none either."""
    for index in range(1, chance.randrange(2, 40)):
        entry = ring_format.text_bytes(chance.choice(_TEXTS), ring_format.NAME_BYTES)
        at = ring_format.NAMES_AT + index * ring_format.NAME_BYTES
        data[at : at + len(entry)] = entry
    first = chance.choice((0, 0, 0, ring_format.RECORDS - 5, 10**6, 1 << 40, (1 << 64) - 400))
    for number in range(first, first + chance.choice((1, 20, 300))):
        put(data, min(number, (1 << 64) - 2), _fields(chance, now_s))


def _fields(chance: random.Random, now_s: float) -> tuple[Any, ...]:
    """Any values at all, often some that a reader may believe at first."""
    at_s = now_s + chance.random() * 3 if chance.random() < 0.7 else chance.choice(_FLOATS)
    step = chance.choice(_WHOLE) if chance.random() < 0.5 else chance.randrange(100)
    step = min(max(step, -(1 << 63)), (1 << 63) - 1)
    value = chance.choice((*_FLOATS, 1.0, 2.0, 3.0, float(chance.randrange(-9, 10**6))))
    kind = chance.choice(_KINDS) | chance.choice((0, 0, ring_format.AUTO, 0x8000))
    readings = [
        min(max(chance.choice(_WHOLE), -(1 << 63)), (1 << 63) - 1) for _ in ring_format.READINGS
    ]
    known = [chance.randrange(1 << 34) if chance.random() < 0.5 else r for r in readings]
    name = chance.choice((0, 1, 2, 5, 255, 256, 65535))
    thread = chance.choice((0, 0, 1, (1 << 32) - 1, chance.randrange(1 << 32)))
    return (at_s, kind, name, thread, step, value, ring_format.READING.pack(*known))
