"""Decompression of gzip and zstd as a stream.

Python has zstd since 3.14. Without a library for it, polars decompresses text line by line. polars
has no limit, so the uncompressed size is first estimated from the block headers (RFC 8878, section
3.1.1).
"""

from __future__ import annotations

import contextlib
import importlib
import io
import zlib
from types import ModuleType

from memdiag.errors import ReadError
from memdiag.recording.inputs.spool import Readable, Stream, TooLarge

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MODULES = ("compression.zstd", "zstandard")
_HEAD_BYTES = 1 << 16
_PIECE_BYTES = 1 << 16
_WITH_HEADER = 31  # zlib's number for data with a gzip header

_SKIPPABLE = 0x184D2A50  # and the 15 numbers after it
_MOST_IN_BLOCK = 128 << 10
_RLE, _COMPRESSED = 1, 2


def is_packed(head: bytes) -> bool:
    """Return True if it begins like a gzip or zstd file."""
    return head.startswith((_GZIP, _ZSTD))


def unpacked(name: str, stream: Stream, *, at_most_bytes: int) -> Readable:
    """The uncompressed stream. Raises ReadError for data that cannot be decompressed here
    and TooLarge if the size is known beforehand. Damaged data raise ValueError, EOFError, OSError
    or zlib.error, here or while reading.
    """
    if stream.head().startswith(_GZIP):
        return _Gzip(stream)
    for module in _MODULES:
        with contextlib.suppress(ImportError):
            return _Zstd(importlib.import_module(module), stream)
    return io.BytesIO(_unpacked_by_polars(name, _whole(stream), at_most_bytes))


class _Gzip:
    """The members of gzip data, one after the other. (Python's `GzipFile` reads the zeros after
    them byte by byte, and there may be gigabytes.)
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._unpacker = zlib.decompressobj(_WITH_HEADER)
        self._packed = b""
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes; fewer only at the end."""
        unpacked = bytearray()
        while len(unpacked) < size and not self._ended:
            packed = self._packed or self._stream.read(_PIECE_BYTES)
            if not packed:
                raise EOFError("the gzip data is cut off")
            unpacked += self._unpacker.decompress(packed, size - len(unpacked))
            self._packed = self._unpacker.unconsumed_tail
            if self._unpacker.eof:
                self._begin_next(self._unpacker.unused_data)
        return bytes(unpacked)

    def _begin_next(self, rest: bytes) -> None:
        """Zeros may pad the end of a file; anything else is another member."""
        while not (rest := rest.lstrip(b"\0")):
            if not (rest := self._stream.read(_PIECE_BYTES)):
                self._ended = True
                return
        self._unpacker = zlib.decompressobj(_WITH_HEADER)
        self._packed = rest


class _Zstd:
    """A zstd library; damaged data raise ValueError with every library."""

    def __init__(self, module: ModuleType, stream: Stream) -> None:
        self._module = module
        self._empty = True
        if hasattr(module, "ZstdFile"):
            self._file = module.ZstdFile(stream)
        else:
            unpacker = module.ZstdDecompressor()
            self._file = unpacker.stream_reader(stream, read_across_frames=True)

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes; fewer only at the end."""
        try:
            piece: bytes = self._file.read(size)
        except (self._module.ZstdError, EOFError) as error:
            raise ValueError("the zstd data is damaged") from error
        if self._empty and not piece and size:
            raise ValueError("the zstd data is cut off")
        self._empty = False
        return piece


def _whole(stream: Stream) -> bytes:
    held = bytearray()
    while piece := stream.read(_PIECE_BYTES):
        held += piece
    return bytes(held)


def _unpacked_by_polars(name: str, raw: bytes, at_most_bytes: int) -> bytes:
    if largest_size(raw) > at_most_bytes:
        raise TooLarge
    text = _unpacked_lines(raw)
    if b"\0" in text[:_HEAD_BYTES]:
        raise ReadError(
            "it is zstd-compressed, and either not plain text or damaged",
            source=name,
            remedy="decompress it with `zstd -d`, or `pip install zstandard`",
        )
    return text


def _unpacked_lines(raw: bytes) -> bytes:
    """The text, or a zero byte if there are no lines."""
    from polars.exceptions import PolarsError

    from memdiag.recording.lazy_polars import raw_lines

    try:
        lines = raw_lines(raw)
    except PolarsError:
        return b"\0"
    text: str = lines.str.join("\n").item()
    return text.encode() + b"\n"


def largest_size(raw: bytes) -> int:
    """The largest possible uncompressed size of zstd data: the sizes in the block headers, and
    128 KiB for each block without one. Damaged data count up to the damage.
    """
    size = at = 0
    while at + 8 <= len(raw):
        if _number(raw, at, 4) & ~0xF == _SKIPPABLE:
            at += 8 + _number(raw, at + 4, 4)
        elif raw.startswith(_ZSTD, at):
            begun, at = at, at + 4 + _header_bytes(raw[at + 4])
            is_last = False
            while not is_last and at + 3 <= len(raw):
                block = _number(raw, at, 3)
                is_last, kind, length = bool(block & 1), block >> 1 & 3, block >> 3
                size += _MOST_IN_BLOCK if kind == _COMPRESSED else length
                at += 3 + (1 if kind == _RLE else length)
            at += raw[begun + 4] & 4  # the four bytes of an optional checksum
        else:
            break
    return size


def _header_bytes(descriptor: int) -> int:
    """Length of a frame's header after its magic number."""
    is_single = bool(descriptor & 0x20)
    window = 0 if is_single else 1
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    content = (int(is_single), 2, 4, 8)[descriptor >> 6]
    return 1 + window + dictionary + content


def _number(raw: bytes, at: int, length: int) -> int:
    return int.from_bytes(raw[at : at + length], "little")
