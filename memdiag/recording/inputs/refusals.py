"""Refusals of inputs: too large, no space for a copy, binary."""

from __future__ import annotations

import math

from memdiag.errors import ReadError
from memdiag.recording.inputs.spool import NoRoom
from memdiag.values.sanitize import printable

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"memray", "a memray recording"),
    (b'\x04"M\x18', "lz4-compressed"),
    (b"\x89HDF", "an HDF5 file"),
    (b"BZh", "bzip2-compressed"),
    (b"\xfd7zXZ", "xz-compressed"),
)
_EXPORT = "export it as CSV with a step or time column and memory columns such as rss_mb"
_CONTROLS = tuple(bytes([code]) for code in (0, 1, 2, 3, 4, 5, 6, 14, 15, 16, 17))
# The least `--max-input` that an error recommends.
_ADVISED_GB = 20


def too_large(source: str, at_most_bytes: int, *, packed: bool) -> ReadError:
    """The error for an input larger than `--max-input`."""
    holds, or_else = "holds", "shorten it"
    if packed:
        holds, or_else = "decompresses to", "decompress it and name the file"
    advised_gb = max(_ADVISED_GB, math.ceil(2 * at_most_bytes / 1e9))
    return ReadError(
        f"it {holds} more than {_amount(at_most_bytes)}, the limit of --max-input",
        source=source,
        remedy=f"--max-input {advised_gb}GB, or {or_else}",
    )


def no_room(source: str, error: NoRoom, at_most_bytes: int) -> ReadError:
    """The error for a stream whose copy does not fit on the disk."""
    where = printable(error.where)
    message = f"it cannot be copied to {where}: {printable(error.reason)}"
    if error.full:
        message = f"there is no space for a copy in {where}: it takes {_amount(error.needed_bytes)}"
        message += " or more"
    most = _amount(at_most_bytes)
    return ReadError(
        message,
        source=source,
        remedy=f"set TMPDIR to a directory with more space (at most {most}, by --max-input), or "
        "decompress or shorten it and name the file",
    )


def refuse_binary(source: str, head: bytes) -> None:
    """Raise ReadError if this is not the head of a text."""
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise ReadError(f"it is {what}, not a log", source=source, remedy=_EXPORT)
    controls = sum(map(head.count, _CONTROLS))
    if b"\0" in head or controls > len(head) / 20:
        raise ReadError("the file is binary, not text", source=source, remedy=_EXPORT)


def _amount(size_bytes: int) -> str:
    for unit, power in (("GB", 9), ("MB", 6), ("KB", 3)):
        if size_bytes >= 10**power:
            return f"{size_bytes / 10**power:.3g} {unit}"
    return f"{size_bytes} B"
