"""The wire format of protocol buffers, read without a schema.

https://protobuf.dev/programming-guides/encoding: a message is a sequence of fields, each a key (its
number and wire type in a varint) and a value.
"""

from __future__ import annotations

from collections.abc import Iterator

Message = bytes

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10


class Malformed(ValueError):
    """The bytes are not a message."""


def fields(message: Message) -> Iterator[tuple[int, int, int | bytes]]:
    """(number, wire type, value) of each field: an int for varints, else the value's bytes.

    Raises Malformed if the message ends within a field, or a wire type is unknown.
    """
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, at = _varint(message, at)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise Malformed(f"wire type {kind}")
        if at + length > end:
            raise Malformed("it ends within a field")
        yield number, kind, message[at : at + length]
        at += length


def _varint(message: Message, at: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, and where it ends."""
    value = 0
    for place in range(_LONGEST_VARINT):
        if at + place >= len(message):
            raise Malformed("it ends within a number")
        byte = message[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise Malformed("a number is too long")
