"""Files that are whole or not there: written beside their place, then moved over it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def replace_file(path: Path, chunks: Iterable[bytes]) -> int:
    """Writes the chunks to disk and puts them in the place of `path`.

    Returns a descriptor that appends to the new file; the caller closes it. Raises OSError, and
    then leaves what was there.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    fd = os.open(beside, flags, 0o666)
    try:
        for chunk in chunks:
            write_all(fd, chunk)
        os.fsync(fd)
        beside.replace(path)
    except BaseException:
        os.close(fd)
        beside.unlink(missing_ok=True)
        raise
    return fd


def write_all(fd: int, data: bytes) -> None:
    """Writes everything. Raises OSError, perhaps with a part written."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
