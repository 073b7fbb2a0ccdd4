"""What is packed by gzip or zstd, unpacked up to a limit.

Python knows zstd since 3.14. Where no library for it is there, polars unpacks it line by line,
which does for text. polars knows no limit: so the blocks are asked beforehand for how much there is
inside (RFC 8878, section 3.1.1).
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
from pathlib import Path
from types import ModuleType

from memdiag.errors import UnreadableInput
from memdiag.recording.spooling import TooLarge, spooled

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
MOST_BYTES = 2 << 30
_MODULES = ("compression.zstd", "zstandard")
_HEAD_BYTES = 1 << 16

_SKIPPABLE = 0x184D2A50  # and the 15 numbers after it
_MOST_IN_BLOCK = 128 << 10
_RLE, _COMPRESSED = 1, 2


def is_packed(head: bytes) -> bool:
    """It begins as gzip's files do, or zstd's."""
    return head.startswith((_GZIP, _ZSTD))


def unpacked(name: str, raw: bytes) -> bytes | Path:
    """What is inside, or a file of it. Raises UnreadableInput for what is too large, or can't be
    unpacked here; ValueError, EOFError, OSError or zlib.error for damaged data.
    """
    try:
        if raw.startswith(_GZIP):
            return spooled(gzip.GzipFile(fileobj=io.BytesIO(raw)), at_most=MOST_BYTES)
        return _unpacked_zstd(name, raw)
    except TooLarge as error:
        raise _too_large(name) from error


def _too_large(name: str) -> UnreadableInput:
    return UnreadableInput(
        f"it unpacks to more than {MOST_BYTES >> 30} GiB",
        source=name,
        remedy="unpack it, and name the file",
    )


def _unpacked_zstd(name: str, raw: bytes) -> bytes | Path:
    for module in _MODULES:
        with contextlib.suppress(ImportError):
            return _unpacked_by(importlib.import_module(module), raw)
    if largest_size(raw) > MOST_BYTES:
        raise _too_large(name)
    text = _unpacked_lines(raw)
    if b"\0" in text[:_HEAD_BYTES]:
        raise UnreadableInput(
            "it is zstd-compressed, and either no plain text or damaged",
            source=name,
            remedy="unpack it with `zstd -d`, or `pip install zstandard`",
        )
    return text


def _unpacked_by(module: ModuleType, raw: bytes) -> bytes | Path:
    try:
        if hasattr(module, "ZstdFile"):
            file = module.ZstdFile(io.BytesIO(raw))
        else:
            file = module.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        content = spooled(file, at_most=MOST_BYTES)
    except (module.ZstdError, EOFError) as error:
        raise ValueError("the zstd data is damaged") from error
    if not content:
        raise ValueError("the zstd data is cut off")
    return content


def _unpacked_lines(raw: bytes) -> bytes:
    """A zero byte where it holds no lines."""
    from polars.exceptions import PolarsError

    from memdiag.recording.rawlines import raw_lines

    try:
        lines = raw_lines(raw)
    except PolarsError:
        return b"\0"
    text: str = lines.str.join("\n").item()
    return text.encode() + b"\n"


def largest_size(raw: bytes) -> int:
    """Bytes to which zstd data unpack at the most: as its blocks say, and 128 KiB for each that
    does not. Damaged data count up to the damage.
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
            at += raw[begun + 4] & 4  # the checksum's four bytes, where there is one
        else:
            break
    return size


def _header_bytes(descriptor: int) -> int:
    """Length of a frame's header behind its magic number."""
    is_single = bool(descriptor & 0x20)
    window = 0 if is_single else 1
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    content = (int(is_single), 2, 4, 8)[descriptor >> 6]
    return 1 + window + dictionary + content


def _number(raw: bytes, at: int, length: int) -> int:
    return int.from_bytes(raw[at : at + length], "little")
