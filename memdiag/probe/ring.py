"""Writes a process's ring. Nothing here waits, locks, or can be stopped by a reader.

A file of one page announces the process. It grows to its full size, once and for good, with the
first record: most processes of a job never write one.
"""

from __future__ import annotations

import os
from itertools import count
from time import monotonic, monotonic_ns

from . import layout
from .layout import NO_NAME, NO_READINGS, NO_VALUE, RECORD_BYTES, RECORDS, RECORDS_AT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from .facts import Facts

_PAGE_BYTES = 4096
_pack = layout.RECORD.pack_into


class Ring:
    """The ring of this process. Every method may raise OSError or ValueError; callers guard."""

    def __init__(self, directory: str, facts: Facts) -> None:
        name = f"{facts.pid}-{monotonic_ns()}{layout.SUFFIX}"
        self._path = os.path.join(directory, name)  # noqa: PTH118 (no pathlib in here)
        self._map: mmap | None = None
        self._number = count()
        self._free_name = count(layout.NO_NAME + 1)
        self._names: dict[str, int] = {}
        self._announce(facts)

    def write(
        self, kind: int, name: int, thread: int, step: int, value: float, readings: bytes
    ) -> None:
        """Append one record. `readings` is packed as layout.READING.

        Taking the number is one step of the interpreter and so is writing the record: threads
        and signal handlers may come between, never into either.
        """
        data = self._map or self._grow()
        number = next(self._number)
        at = layout.RECORDS_AT + number % layout.RECORDS * layout.RECORD_BYTES
        # Arguments one by one: a tuple of this length would stay in the interpreter's free list.
        _pack(
            data, at, number + 1, monotonic(), kind, name, thread, step, value, readings, number + 1
        )

    def step(self, kind: int, thread: int, step: int) -> None:
        """Append a record of a step without readings: `write` in short."""
        data = self._map or self._grow()
        number = next(self._number)
        at = RECORDS_AT + number % RECORDS * RECORD_BYTES
        number += 1
        now_s = monotonic()
        _pack(data, at, number, now_s, kind, NO_NAME, thread, step, NO_VALUE, NO_READINGS, number)

    def name(self, text: str) -> int:
        """The number that stands for `text` in records."""
        known = self._names.get(text)
        if known is not None:
            return known
        index = next(self._free_name)
        if index >= layout.OTHER_NAME:
            return layout.OTHER_NAME
        data = self._map or self._grow()
        entry = layout.text_bytes(text, layout.NAME_BYTES)
        at = layout.NAMES_AT + index * layout.NAME_BYTES
        data[at : at + len(entry)] = entry
        self._names[text] = index
        return index

    def say_role(self, role: str) -> None:
        """Say what the process does, once that is known."""
        fd = self._open()
        try:
            os.pwrite(fd, layout.text_bytes(role, layout.ROLE_BYTES), layout.ROLE_AT)
        finally:
            os.close(fd)

    def say_ranks(self, ranks: tuple[int, int, int]) -> None:
        """Say the process's place in a distributed job, once that is known."""
        fd = self._open()
        try:
            os.pwrite(fd, layout.RANKS.pack(*ranks), layout.RANKS_AT)
        finally:
            os.close(fd)

    def _announce(self, facts: Facts) -> None:
        page = bytearray(_PAGE_BYTES)
        facts.pack_into(page)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._path, flags, 0o600)
        try:
            # One write: a reader sees all of the page or none of it. Room is reserved before,
            # for on a full disk a part of it would be worse than nothing.
            os.posix_fallocate(fd, 0, _PAGE_BYTES)
            os.pwrite(fd, page, 0)
        finally:
            os.close(fd)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(self._path, flags)

    def _grow(self) -> mmap:
        """Map the file in its full size. Raises OSError where there is no room for it."""
        fd = self._open()
        try:
            # A hole in a file on a full disk is SIGBUS on the day it is written to.
            os.posix_fallocate(fd, 0, layout.FILE_BYTES)
            mapped = _map(fd)
        finally:
            os.close(fd)
        # Every page is looked at once (only looked at: another thread may write to them already),
        # so that the mapping is a constant part of the process's memory and no slow growth.
        mapped[::_PAGE_BYTES]
        self._map = mapped
        return mapped


def _map(fd: int) -> mmap:
    import sys
    from mmap import mmap

    if sys.version_info >= (3, 13):
        # Older ones keep a duplicate of the descriptor, and close it with the mapping.
        return mmap(fd, layout.FILE_BYTES, trackfd=False)
    return mmap(fd, layout.FILE_BYTES)
