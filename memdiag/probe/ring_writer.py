"""Writes the ring of a process. Nothing here waits, locks, or can be stopped by a reader.

A file of one page announces the process. It grows to its full size with the first record; most
processes of a job never write one.
"""

from __future__ import annotations

import os
from itertools import count
from time import monotonic, monotonic_ns

from . import ring_format
from .guard import ours
from .ring_format import NO_NAME, NO_READINGS, NO_VALUE, RECORD_BYTES, RECORDS, RECORDS_AT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from .process_identity import ProcessIdentity

_PAGE_BYTES = 4096
_MOST_REQUEST_BYTES = 100
_pack = ring_format.RECORD.pack_into


class Ring:
    """The ring of this process. Every method may raise OSError or ValueError."""

    def __init__(self, directory: str, facts: ProcessIdentity) -> None:
        name = f"{facts.pid}-{monotonic_ns()}{ring_format.SUFFIX}"
        self.path = os.path.join(directory, name)  # noqa: PTH118 (no pathlib in here)
        self._map: mmap | None = None
        self._number = count()
        self._free_name = count(ring_format.NO_NAME + 1)
        self._names: dict[str, int] = {}
        self._announce(facts)

    def write(
        self, kind: int, name: int, thread: int, step: int, value: float, readings: bytes
    ) -> None:
        """Append one record. `readings` is packed as ring_format.READING.

        Taking the number and writing the record are one operation of the interpreter each: threads
        and signal handlers may run between them, but not within.
        """
        data = self._map or self._grow()
        number = next(self._number)
        at = ring_format.RECORDS_AT + number % ring_format.RECORDS * ring_format.RECORD_BYTES
        # No `*arguments`: a tuple of this length would stay in the interpreter's free list.
        _pack(
            data, at, number + 1, monotonic(), kind, name, thread, step, value, readings, number + 1
        )

    def step(self, kind: int, thread: int, step: int) -> None:
        """Append a record of a step without readings: a faster `write`."""
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
        if index >= ring_format.OTHER_NAME:
            return ring_format.OTHER_NAME
        data = self._map or self._grow()
        entry = ring_format.text_bytes(text, ring_format.NAME_BYTES)
        at = ring_format.NAMES_AT + index * ring_format.NAME_BYTES
        data[at : at + len(entry)] = entry
        self._names[text] = index
        return index

    def write_role(self, role: str) -> None:
        """Write the role of the process, once it is known."""
        fd = self._open()
        try:
            os.pwrite(fd, ring_format.text_bytes(role, ring_format.ROLE_BYTES), ring_format.ROLE_AT)
        finally:
            os.close(fd)

    def write_ranks(self, ranks: tuple[int, int, int]) -> None:
        """Write the ranks of the process in a distributed job, once they are known."""
        fd = self._open()
        try:
            os.pwrite(fd, ring_format.RANKS.pack(*ranks), ring_format.RANKS_AT)
        finally:
            os.close(fd)

    def write_beside(self, data: bytes, suffix: str) -> None:
        """Replace the file of this suffix beside the ring, at once."""
        path = self.path[: -len(ring_format.SUFFIX)] + suffix
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(path + ring_format.NEW_SUFFIX, flags, 0o600)
        try:
            while data:
                data = data[os.write(fd, data) :]
        finally:
            os.close(fd)
        os.replace(path + ring_format.NEW_SUFFIX, path)  # noqa: PTH105

    def take_request(self, suffix: str = ring_format.REQUEST_SUFFIX) -> str:
        """What memdiag has written to the file of this suffix, once; "" for nothing."""
        path = self.path[: -len(ring_format.SUFFIX)] + suffix
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except ours(OSError):
            return ""
        try:
            found = os.read(fd, _MOST_REQUEST_BYTES)
            if found:  # else it is being written
                os.unlink(path)  # noqa: PTH108
            return found.decode("ascii", "replace")
        except ours(OSError):  # another thread has taken it, or it is no file
            return ""
        finally:
            os.close(fd)

    def _announce(self, facts: ProcessIdentity) -> None:
        page = bytearray(_PAGE_BYTES)
        facts.pack_into(page)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self.path, flags, 0o600)
        try:
            # One write: a reader sees all of the page or none of it. Space is allocated first, so
            # that a full disk does not leave a part of it.
            os.posix_fallocate(fd, 0, _PAGE_BYTES)
            os.pwrite(fd, page, 0)
        finally:
            os.close(fd)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        return os.open(self.path, flags)

    def _grow(self) -> mmap:
        """Map the file in its full size. Raises OSError if the disk is full."""
        fd = self._open()
        try:
            # Writing to a hole in a mapped file on a full disk raises SIGBUS.
            os.posix_fallocate(fd, 0, ring_format.FILE_BYTES)
            mapped = _map(fd)
        finally:
            os.close(fd)
        # Touch every page once (read only: another thread may write), so that the mapping is
        # a constant part of the process's memory and does not look like growth.
        mapped[::_PAGE_BYTES]
        self._map = mapped
        return mapped


def _map(fd: int) -> mmap:
    import sys
    from mmap import mmap

    if sys.version_info >= (3, 13):
        # Older versions keep a duplicate of the descriptor, and close it with the mapping.
        return mmap(fd, ring_format.FILE_BYTES, trackfd=False)
    return mmap(fd, ring_format.FILE_BYTES)
