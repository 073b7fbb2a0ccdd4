"""Opens what the user named and finds out whether it is text."""

from __future__ import annotations

import difflib
import enum
import glob
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memdiag.errors import ReadError
from memdiag.recording.inputs.compression import is_packed, unpacked
from memdiag.recording.inputs.decoding import Decoded, utf16
from memdiag.recording.inputs.opening import HEAD_BYTES, Waiting, mode_of, opened, place_of
from memdiag.recording.inputs.paste_cleanup import unwrapped
from memdiag.recording.inputs.refusals import no_room, refuse_binary, too_large
from memdiag.recording.inputs.spool import NoRoom, Readable, Stream, TooLarge, spooled
from memdiag.recording.native.sidecar import rows_path
from memdiag.recording.parsing.intervals import interval_s
from memdiag.recording.read_options import DEFAULT_MAX_INPUT_BYTES, DEFAULTS, ReadOptions
from memdiag.safe_open import open_regular
from memdiag.values.sanitize import printable

_BEGINNING_BYTES, _LONG_LINES_BYTES = 4 << 20, 16 << 20
# A head with fewer lines may contain only a part of a table's header.
_LINES_IN_HEAD = 20
STDIN = "-"
# How similar a name must be to one in the directory to count as misspelled. Heuristic.
_MISSPELLED = 0.8

_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
# The first record of an event file: its length, a checksum, when it began (field 1, a double),
# and then field 3, what wrote it.
_EVENTS_AT, _EVENTS = 23, b"brain.Event:"
_MARK = b"\xef\xbb\xbf"


class Kind(enum.Enum):
    """What the bytes of a source are."""

    TEXT = "text"
    PARQUET = "parquet"
    EVENTS = "events"  # TensorBoard's
    PICKLE = "pickle"
    DATABASE = "database"  # SQLite's
    WANDB = "wandb"  # of an offline run


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An open input. The reader closes it.

    name: as the user wrote it.
    path: opens a plain file again in place; None if `content` is everything.
    content: the bytes, as UTF-8 if they are text; the first 64 KiB if there is a path.
    whole: `content` is everything.
    tail: the last bytes of a text, at most 64 KiB.
    interval_s: how far apart its readings are, if it is a small text that says so.
    at_most_bytes: see `ReadOptions.max_input_bytes`.
    file: keeps the file of `path` open.
    """

    name: str
    path: Path | None
    content: bytes
    whole: bool
    tail: bytes
    kind: Kind = Kind.TEXT
    interval_s: float | None = None
    at_most_bytes: int = DEFAULT_MAX_INPUT_BYTES
    file: BinaryIO | None = None

    def head(self) -> str:
        """The first 64 KiB as text; invalid UTF-8 becomes U+FFFD."""
        return self.content[:HEAD_BYTES].decode("utf-8", errors="replace")

    def first_lines(self) -> str:
        """The head, or the first 16 MiB if the head has few lines because they are long."""
        if self.content.count(b"\n", 0, HEAD_BYTES) < _LINES_IN_HEAD:
            begin = self.first_bytes(_LONG_LINES_BYTES)
            if b"\n" in begin:
                return begin.decode("utf-8", errors="replace")
        return self.head()

    def begins_with(self, words: bytes) -> bool:
        """Return True if these words occur in the first few megabytes."""
        return words in (self.content if self.whole else self.first_bytes(_BEGINNING_BYTES))

    def first_bytes(self, most_bytes: int) -> bytes:
        """The beginning, of at most this many bytes."""
        if self.whole:
            return self.content[:most_bytes]
        with self.opened() as file:
            return file.read(min(most_bytes, os.fstat(file.fileno()).st_size))

    def all_bytes(self) -> bytes:
        """Everything, as UTF-8 if the source was valid. Raises ReadError if it is too large
        to be read into memory.
        """
        if self.whole:
            return self.content
        with self.opened() as file:
            if os.fstat(file.fileno()).st_size > self.at_most_bytes:
                raise too_large(self.name, self.at_most_bytes, packed=False)
            return file.read()

    def opened(self) -> BinaryIO:
        """A file of the whole content, at its beginning."""
        if self.whole or self.path is None:
            return io.BytesIO(self.content)
        return open(open_regular(self.path), "rb")  # noqa: PTH123 - a descriptor

    def close(self) -> None:
        """Close the file. A temporary one is deleted."""
        if self.file is not None:
            self.file.close()


def open_source(name: str, options: ReadOptions = DEFAULTS) -> Source:
    """Open a file or, for "-", standard input. Raises ReadError."""
    try:
        return _from_stdin(name, options) if name == STDIN else _from_file(name, options)
    except FileNotFoundError:
        rows = rows_path(Path(name))
        message, remedy = _missing(name)
        if stat.S_ISREG(mode_of(rows) or 0):  # an interrupted recording
            remedy = f"analyze {printable(rows.name)} beside it"
    except IsADirectoryError:
        message, remedy = "a directory, not a file", "name a file in it"
    except PermissionError:
        message, remedy = "no permission to read it", "make it readable, or run as its owner"
    except EOFError as error:
        message, remedy = str(error), "copy it again, or read what is there: zcat FILE | memdiag"
        remedy += " analyze -"
    except (OSError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message, remedy = f"it cannot be read: {printable(reason)}", "check the file"
    finally:
        if options.progress is not None:
            options.progress.done()
    raise ReadError(message, source=name, remedy=remedy)


def _missing(name: str) -> tuple[str, str]:
    """What to say of a name without a file, and what to try instead."""
    shown = printable(name)
    if re.match(r"[a-z][a-z0-9+.-]*://", name):
        return "URLs are not read", f"curl -s {shown} | memdiag analyze -"
    if glob.has_magic(name):
        return "no file matches this pattern", ""
    try:
        names = {entry.name.lower(): entry.name for entry in Path(name).parent.iterdir()}
    except OSError:
        names = {}
    near = difflib.get_close_matches(Path(name).name.lower(), names, n=1, cutoff=_MISSPELLED)
    beside = str(Path(name).with_name(names[near[0]])) if near else ""
    if not near and name.isalnum():
        return "no such file or run", "memdiag list shows the runs that were kept"
    return "no such file", f"did you mean {printable(beside)}?" if near else ""


def _from_stdin(name: str, options: ReadOptions) -> Source:
    if sys.stdin is None:
        raise ReadError(
            "standard input is closed", source=name, remedy="name a file, or pipe one to memdiag"
        )
    try:
        below: Readable = Waiting(sys.stdin.fileno())
    except OSError:  # not a file of the system
        below = sys.stdin.buffer
    stream = Stream(
        below,
        at_most_bytes=options.max_input_bytes,
        # A progress bar would be drawn over the typed text.
        watch=None if sys.stdin.isatty() else _watch(name, options, None),
    )
    return _from_stream(name, stream, options)


def _from_file(name: str, options: ReadOptions) -> Source:
    found = opened(name)
    if found.size_bytes is not None and _is_plain(found.file):
        return _in_place(name, found.file, place_of(found.file) or Path(name), options)
    with found.file:
        stream = Stream(
            found.file if found.size_bytes is not None else Waiting(found.file.fileno()),
            begun=found.begun,
            at_most_bytes=options.max_input_bytes,
            watch=_watch(name, options, found.size_bytes),
        )
        return _from_stream(name, stream, options)


def _watch(name: str, options: ReadOptions, size_bytes: int | None) -> Callable[[int], None] | None:
    progress = options.progress
    if progress is None:
        return None
    return lambda done_bytes: progress.reached(name, done_bytes, size_bytes)


def _from_stream(name: str, stream: Stream, options: ReadOptions) -> Source:
    """Read a stream, or a file to decompress or decode, into memory or into a copy."""
    packed = False
    try:
        packed = is_packed(stream.head())
        if packed:
            stream = Stream(unpacked(name, stream, at_most_bytes=options.max_input_bytes))
            _refuse_packed(name, stream.head())
        head = stream.head()
        if _kind(head) is Kind.TEXT:
            if (flavour := utf16(head)) is not None:
                stream = Stream(Decoded(stream, flavour))
                head = stream.head()
            if len(head) == HEAD_BYTES:  # smaller ones are checked after paste cleanup
                refuse_binary(name, head)
        content = spooled(stream, at_most_bytes=options.max_input_bytes)
    except TooLarge as error:
        raise too_large(name, options.max_input_bytes, packed=packed) from error
    except NoRoom as error:
        raise no_room(name, error, options.max_input_bytes) from error
    if isinstance(content, bytes):
        return _from_bytes(name, content)
    return _in_place(name, content.file, content.path, options)


def _refuse_packed(name: str, head: bytes) -> None:
    if is_packed(head):
        raise ReadError(
            "it is compressed twice", source=name, remedy="decompress it once, and name the file"
        )


def _is_plain(file: BinaryIO) -> bool:
    """Return True if it is plain and of known size (sizes in /proc are not)."""
    head = file.read(HEAD_BYTES)
    file.seek(0)
    if len(head) > os.fstat(file.fileno()).st_size:
        return False
    return _kind(head) is not Kind.TEXT or not (is_packed(head) or utf16(head))


def _in_place(name: str, file: BinaryIO, path: Path, options: ReadOptions) -> Source:
    """The source of a file at `path`. It stays open unless the head is everything."""
    try:
        file.seek(0)
        head = file.read(HEAD_BYTES)
        size_bytes = os.fstat(file.fileno()).st_size
        kind, tail = _kind(head), b""
        if kind is Kind.TEXT and len(head) < size_bytes:
            refuse_binary(name, head)
            file.seek(max(0, size_bytes - HEAD_BYTES))
            tail = file.read(HEAD_BYTES)
    except BaseException:
        file.close()
        raise
    if len(head) >= size_bytes:
        file.close()
        return _from_bytes(name, head)
    return Source(
        name=name,
        path=path,
        content=head,
        whole=False,
        tail=tail,
        kind=kind,
        at_most_bytes=options.max_input_bytes,
        file=file,
    )


def _from_bytes(name: str, raw: bytes) -> Source:
    kind = _kind(raw)
    if kind is not Kind.TEXT:
        return Source(name=name, path=None, content=raw, whole=True, tail=b"", kind=kind)
    text = unwrapped(raw.removeprefix(_MARK))
    if not text.strip():
        raise ReadError(
            "no input on standard input" if name == STDIN else "it is empty", source=name
        )
    refuse_binary(name, text[:HEAD_BYTES])
    said_s = interval_s(raw[:HEAD_BYTES].decode("utf-8", errors="replace"))
    return Source(
        name=name,
        path=None,
        content=text,
        whole=True,
        tail=text[-HEAD_BYTES:],
        interval_s=said_s,
    )


def _kind(head: bytes) -> Kind:
    if head.startswith(b"PAR1"):
        return Kind.PARQUET
    if head.startswith(_EVENTS, _EVENTS_AT):
        return Kind.EVENTS
    if head.startswith(b"SQLite format 3\0"):
        return Kind.DATABASE
    if head.startswith(b":W&B"):
        return Kind.WANDB
    return Kind.PICKLE if head.startswith(_PICKLES) else Kind.TEXT
