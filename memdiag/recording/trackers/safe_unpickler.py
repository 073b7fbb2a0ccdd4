"""Reads pickles of only plain containers, numbers and text; all others are refused.

A pickle is a program, and `pickle.loads` runs it. All instructions are checked first, and only
those are accepted that build dictionaries, lists, tuples, numbers, text and bytes: none that names,
calls or fills anything else, none that needs much more memory than the file (the memo index 2**32
makes C's unpickler allocate 64 GB). Then an unpickler that finds no class reads the pickle.

Opcodes: Lib/pickletools.py of CPython.
"""

from __future__ import annotations

import io
import pickle
import re
from typing import Any, NoReturn

# Instructions are matched in chunks: the regex engine keeps a state for each repetition.
_AT_ONCE = 2000
_LONGS = b"|".join(b"\\x%02x.{%d}" % (length, length) for length in range(10))
_PLAIN = re.compile(
    rb"(?:"
    rb"[(}\])aesutldN\x85-\x89\x94]"  # no argument: containers, and what fills them
    rb"|[Khq]."  # one byte: a number, a memo index
    rb"|M..|[Jj]....|r...\x00"  # memo indices below 2**24
    rb"|[G\x95].{8}"
    rb"|\x8a(?:" + _LONGS + rb")"  # numbers of up to 9 bytes
    rb"){1,%d}" % _AT_ONCE,
    re.S,
)
# Followed by a length in one byte, or in four, and that many bytes.
_SHORT_TEXTS, _LONG_TEXTS = b"\x8cC", b"XB"
_PROTOCOL, _STOP = b"\x80", b"."


class NotPlain(ValueError):
    """The pickle is damaged, or would build anything but plain values."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse every class."""
        raise NotPlain("it names a class")

    def persistent_load(self, pid: Any) -> NoReturn:
        """Refuse external objects."""
        raise NotPlain("it refers to something outside")


def load(data: bytes) -> Any:
    """The value. Raises NotPlain; nothing is built before all instructions are checked."""
    _check(data)
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, ValueError, TypeError, EOFError, IndexError) as error:
        raise NotPlain(f"it is damaged: {error}") from error
    except (KeyError, AttributeError, OverflowError, MemoryError, RecursionError) as error:
        raise NotPlain("it is damaged") from error


def _check(data: bytes) -> None:
    """Check all instructions. Raises NotPlain at the first that is not plain."""
    at, end = 2, len(data)
    if data[:1] != _PROTOCOL or end < 3:
        raise NotPlain("it is not a pickle of protocol 2 or later")
    while at < end:
        code = data[at : at + 1]
        if code in _SHORT_TEXTS:
            at += 2 + (data[at + 1] if at + 1 < end else 0)
        elif code in _LONG_TEXTS:
            at += 5 + int.from_bytes(data[at + 1 : at + 5], "little")
        elif code == _STOP:
            return
        else:
            plain = _PLAIN.match(data, at)
            if plain is None:
                raise NotPlain(f"it does more than build plain values (byte {at})")
            at = plain.end()
    raise NotPlain("it is cut off")
