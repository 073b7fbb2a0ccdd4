"""Bytes in: opening what the user named, and telling text from everything else."""

from __future__ import annotations

import enum
import os
import stat
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memdiag.errors import UnreadableInput
from memdiag.printable import printable
from memdiag.recording.packing import is_packed, unpacked
from memdiag.recording.pasting import unwrapped
from memdiag.recording.sidecar import rows_path
from memdiag.recording.spooling import spooled

HEAD_BYTES = 1 << 16
_BEGINNING_BYTES = 4 << 20
STDIN = "-"

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"memray", "a recording of memray's"),
    (b'\x04"M\x18', "lz4-compressed"),
    (b"\x89HDF", "an HDF5 file"),
    (b"BZh", "bzip2-compressed"),
    (b"\xfd7zXZ", "xz-compressed"),
)
_EXPORT = "export it as CSV with a step or time column and memory columns such as rss_mb"
_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
# The first record of an event file: its length, a checksum, when it began (field 1, a double),
# and then field 3, what wrote it.
_EVENTS_AT, _EVENTS = 23, b"brain.Event:"


class Kind(enum.Enum):
    """What the bytes of a source are."""

    TEXT = "text"
    PARQUET = "parquet"
    EVENTS = "events"  # TensorBoard's
    PICKLE = "pickle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What was opened.

    name: as the user wrote it.
    path: of a plain UTF-8 file that may be read again in place; None where `content` is all.
    content: the bytes, as UTF-8 where they are text; of a plain file (not of a pickle) only its
        first 64 KiB unless it is small.
    whole: `content` is everything.
    tail: the last bytes of the source, at most 64 KiB.
    """

    name: str
    path: Path | None
    content: bytes
    whole: bool
    tail: bytes
    kind: Kind = Kind.TEXT

    def head(self) -> str:
        """The first 64 KiB as text; what is no UTF-8 shows as U+FFFD."""
        return self.content[:HEAD_BYTES].decode("utf-8", errors="replace")

    def begins_with(self, words: bytes) -> bool:
        """These words stand somewhere in its first few megabytes."""
        if self.whole or self.path is None:
            return words in self.content
        with self.path.open("rb") as file:
            return words in file.read(_BEGINNING_BYTES)

    def all_bytes(self) -> bytes:
        """Everything, as UTF-8 (where the source was valid)."""
        if self.whole or self.path is None:
            return self.content
        return self.path.read_bytes()


def open_source(name: str) -> Source:
    """Opens a file or, for "-", standard input. Raises UnreadableInput."""
    try:
        return _from_stream(name, sys.stdin.buffer) if name == STDIN else _from_file(name)
    except FileNotFoundError:
        rows = rows_path(Path(name))
        message, remedy = "there is no such file", "check the path"
        if rows.is_file():  # a recording that was cut off
            remedy = f"analyse {printable(rows.name)} beside it"
    except IsADirectoryError:
        message, remedy = "this is a directory", "name a file in it"
    except PermissionError:
        message, remedy = "no permission to read it", "make it readable, or run as its owner"
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message, remedy = f"it cannot be read: {printable(reason)}", "check the file"
    raise UnreadableInput(message, source=name, remedy=remedy)


def _from_stream(name: str, stream: BinaryIO) -> Source:
    content = spooled(stream)
    return _in_place(name, content) if isinstance(content, Path) else _from_bytes(name, content)


def _from_file(name: str) -> Source:
    path = Path(name)
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not stat.S_ISREG(mode):  # a pipe of the shell's, /dev/fd/63
        with path.open("rb") as stream:
            return _from_stream(name, stream)
    return _in_place(name, path)


def _in_place(name: str, path: Path) -> Source:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        size = os.fstat(file.fileno()).st_size
        if len(head) >= size:
            return _from_bytes(name, head, path)
        kind = _kind(head)
        if kind in {Kind.PARQUET, Kind.EVENTS}:  # read in place
            return Source(name=name, path=path, content=head, whole=False, tail=b"", kind=kind)
        if kind is Kind.TEXT and _is_plain(head):
            _refuse_binary(name, head)
            file.seek(max(0, size - HEAD_BYTES))
            return Source(name=name, path=path, content=head, whole=False, tail=file.read())
        return _from_bytes(name, head + file.read(), path)


def _from_bytes(name: str, raw: bytes, path: Path | None = None) -> Source:
    plain = path if _kind(raw) is not Kind.TEXT or _is_plain(raw) else None
    if is_packed(raw):
        content = unpacked(name, raw)
        if isinstance(content, Path):
            return _in_place(name, content)
        raw = content
    kind = _kind(raw)
    if kind is not Kind.TEXT:
        return Source(name=name, path=plain, content=raw, whole=True, tail=b"", kind=kind)
    text = unwrapped(_as_utf8(raw))
    if not text.strip():
        raise UnreadableInput(
            "it is empty", source=name, remedy="record something first, or name another file"
        )
    _refuse_binary(name, text[:HEAD_BYTES])
    return Source(name=name, path=plain, content=text, whole=True, tail=text[-HEAD_BYTES:])


def _kind(head: bytes) -> Kind:
    if head.startswith(b"PAR1"):
        return Kind.PARQUET
    if head.startswith(_EVENTS, _EVENTS_AT):
        return Kind.EVENTS
    return Kind.PICKLE if head.startswith(_PICKLES) else Kind.TEXT


def _is_plain(head: bytes) -> bool:
    """Needs neither decompressing nor decoding before a CSV reader may have it."""
    return not is_packed(head) and _utf16(head) is None


def _utf16(head: bytes) -> str | None:
    """The UTF-16 flavour of the text, by its mark or by where the zeros are (PowerShell's `>`)."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    even, odd = head[0:200:2], head[1:200:2]
    if len(odd) > 1 and any(even) and not any(odd):
        return "utf-16-le"
    return "utf-16-be" if len(odd) > 1 and any(odd) and not any(even) else None


def _as_utf8(raw: bytes) -> bytes:
    flavour = _utf16(raw)
    if flavour is not None:
        return raw.decode(flavour, errors="replace").encode("utf-8", errors="replace")
    return raw.removeprefix(b"\xef\xbb\xbf")


def _refuse_binary(name: str, head: bytes) -> None:
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise UnreadableInput(f"it is {what}, no log", source=name, remedy=_EXPORT)
    controls = sum(head.count(bytes([code])) for code in (0, 1, 2, 3, 4, 5, 6, 14, 15, 16, 17))
    if b"\0" in head or controls > len(head) / 20:
        raise UnreadableInput("it is binary, no text", source=name, remedy=_EXPORT)
