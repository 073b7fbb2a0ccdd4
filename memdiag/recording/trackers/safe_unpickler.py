"""Pickles that hold nothing but plain containers, numbers and texts; all others are refused.

A pickle is a program, and `pickle.loads` runs it. Here its instructions are looked at first, and
only those pass that build dictionaries, lists, tuples, numbers, texts and bytes: none that names,
calls or fills anything else, none that needs much more room than the file has (a place of 2**32 in
the memo makes C's unpickler allocate 64 GB). Then it is read by an unpickler that finds no class.

Opcodes: Lib/pickletools.py of CPython.
"""

from __future__ import annotations

import io
import pickle
import re
from typing import Any, NoReturn

# A chunk of instructions at a time: the regular expression engine keeps a note of each.
_AT_ONCE = 2000
_LONGS = b"|".join(b"\\x%02x.{%d}" % (length, length) for length in range(10))
_PLAIN = re.compile(
    rb"(?:"
    rb"[(}\])aesutldN\x85-\x89\x94]"  # no argument: containers, and what fills them
    rb"|[Khq]."  # one byte: a number, a place in the memo
    rb"|M..|[Jj]....|r...\x00"  # places below 2**24
    rb"|[G\x95].{8}"
    rb"|\x8a(?:" + _LONGS + rb")"  # numbers of up to 9 bytes
    rb"){1,%d}" % _AT_ONCE,
    re.S,
)
# Followed by that many bytes: the length in one byte, or in four.
_SHORT_TEXTS, _LONG_TEXTS = b"\x8cC", b"XB"
_PROTOCOL, _STOP = b"\x80", b"."


class NotPlain(ValueError):
    """The pickle is damaged, or would build something else than plain values."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        """Nothing is plain that has a class to be found."""
        raise NotPlain("it names a class")

    def persistent_load(self, pid: Any) -> NoReturn:
        """Nor what is kept elsewhere."""
        raise NotPlain("it refers to something outside")


def load(data: bytes) -> Any:
    """The value. Raises NotPlain; builds nothing before all instructions are known to be plain."""
    _check(data)
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, ValueError, TypeError, EOFError, IndexError) as error:
        raise NotPlain(f"it is damaged: {error}") from error
    except (KeyError, AttributeError, OverflowError, MemoryError, RecursionError) as error:
        raise NotPlain("it is damaged") from error


def _check(data: bytes) -> None:
    """Walks over all instructions. Raises NotPlain at the first that is not plain."""
    at, end = 2, len(data)
    if data[:1] != _PROTOCOL or end < 3:
        raise NotPlain("it is no pickle of protocol 2 or later")
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
