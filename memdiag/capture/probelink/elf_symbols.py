"""Finds the addresses of exported functions of a running process in its mapped ELF files.

The files are read while the process runs; a debugger would stop it meanwhile. They may belong to a
hostile user, so only a limited part of them is read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memdiag import safe_open

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNSYM, _PT_LOAD = 11, 1
_ELF64_LITTLE = b"\x7fELF\x02\x01"
# The largest known interpreter has 60 MB and 5,000 symbols. Heuristic.
_MOST_BYTES, _MOST_SYMBOLS, _LONGEST_NAME = 512 << 20, 500_000, 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """A mapped file: its path in the process, a path for memdiag, and its start address."""

    name: str
    path: Path
    start: int


def mapped_files(pid: int) -> list[Mapped]:
    """The files with code that process `pid` has mapped, each once. Raises OSError."""
    found: dict[str, Mapped] = {}
    executable = os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 - with its " (deleted)"
    for line in os.fsdecode(Path(f"/proc/{pid}/maps").read_bytes()).splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/") and fields[5] not in found:
            name = fields[5]
            # These paths also reach an executable that was replaced, and files of another mount
            # namespace.
            path = Path(f"/proc/{pid}/exe" if name == executable else f"/proc/{pid}/root{name}")
            start = int(fields[0].partition("-")[0], 16)
            found[name] = Mapped(name=name, path=path, start=start)
    return list(found.values())


def exported(file: Mapped, names: frozenset[str]) -> dict[str, int]:
    """Name -> address in the process's memory, for the `names` that the file exports.

    Empty for a file that is not a 64-bit little-endian ELF. Raises OSError if it is missing.
    """
    data = safe_open.read_regular(file.path, most_bytes=_MOST_BYTES)
    if not data.startswith(_ELF64_LITTLE):
        return {}
    try:
        base = file.start - _first_address(data)
        return {name: base + value for name, value in _symbols(data, names)}
    except (struct.error, ValueError):
        return {}


def _first_address(data: bytes) -> int:
    """The address that the first loaded segment was linked for, rounded to its page."""
    (at,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for index in range(count):
        kind, _, offset, address, *_ = _SEGMENT.unpack_from(data, at + index * size)
        if kind == _PT_LOAD:
            return int(address - offset)
    raise ValueError("nothing to load")


def _symbols(data: bytes, names: frozenset[str]) -> Iterator[tuple[str, int]]:
    """(name, value) of the symbols in `names` that the file defines."""
    (at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [_SECTION.unpack_from(data, at + index * size) for index in range(count)]
    table = next((section for section in sections if section[1] == _DYNSYM), None)
    if table is None:
        return
    _, _, _, _, offset, length, link, _, _, entry = table
    if entry != _SYMBOL.size or link >= count:
        raise ValueError("not a table of symbols")
    strings = sections[link][4]
    for index in range(min(length // entry, _MOST_SYMBOLS)):
        name, _, _, section, value, _ = _SYMBOL.unpack_from(data, offset + index * entry)
        if section:  # defined here
            begin = strings + name
            end = data.find(b"\0", begin, begin + _LONGEST_NAME)
            text = data[begin : max(end, begin)].decode("ascii", "replace")
            if text in names:
                yield text, value
