"""What the readers of the probe's files share: each file is JSON beside the ring of its process.

The files come from the target: the readers raise an error of `DAMAGED` for what no probe writes.
Files that memdiag leaves for the probe are made here as well.
"""

from __future__ import annotations

import contextlib
import math
import os
from typing import Any

from memdiag import safe_open
from memdiag.probe import ring_format
from memdiag.values.holders import Name

_MOST_BYTES = 1 << 20
_LONGEST_TEXT, LONGEST_PATH = 200, 4096
_LARGEST = 1 << 62
_KINDS = frozenset(
    [
        "global",
        "local",
        "attribute",
        "key",
        "item",
        "closure",
        "default",
        "cache",
        "wrapped",
        "inside",
        "unreached",
        "objects",
        "registered",
        "running",
    ]
)
DAMAGED = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
)


def read_document(ring: str, suffix: str, *, dir_fd: int, owners: Any) -> Any:
    """The content of the file of this suffix beside a ring. Raises OSError or ValueError."""
    import msgspec

    name = ring.removesuffix(ring_format.SUFFIX) + suffix
    fd = safe_open.open_regular(name, dir_fd=dir_fd, follow=False, owners=owners)
    with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor
        return msgspec.json.decode(file.read(_MOST_BYTES))


def leave_file(name: str, text: str, *, dir_fd: int) -> None:
    """Leave a file for the probe instead of the one that it has not taken; none if `text` is ""."""
    safe_open.remove(name, dir_fd=dir_fd)
    if not text:
        return
    with (
        contextlib.suppress(OSError),
        # The target may be another user's: it has to read the file, which only it and we reach.
        safe_open.closing(safe_open.create(name, mode=0o644, dir_fd=dir_fd)) as fd,
    ):
        safe_open.write_all(fd, text.encode("ascii"))
        os.fchmod(fd, 0o644)


def name_of(kind: Any, name: Any, owner: Any, file: Any, line: Any) -> Name:
    """One name on the way to a place."""
    if kind not in _KINDS:
        raise ValueError
    return Name(
        kind=kind,
        name=text_of(name),
        owner=text_of(owner),
        file=text_of(file, LONGEST_PATH),
        line=int(line),
    )


def text_of(value: Any, longest: int = _LONGEST_TEXT) -> str:
    """A text, cut to its greatest length."""
    if not isinstance(value, str):
        raise TypeError
    return value[:longest]


def real_of(value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError
    return float(value)


def count_of(value: Any) -> int:
    """A number of things, or of bytes."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise ValueError
    return value


def step_of(value: Any) -> int | None:
    """A step, None before the first."""
    step = int(value)
    return None if step == ring_format.NO_STEP else step
