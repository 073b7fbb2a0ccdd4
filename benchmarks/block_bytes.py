"""How large is a block of Python's own allocator? The mean of those in use, and of small objects.

python benchmarks/block_bytes.py

memdiag counts blocks (`sys.getallocatedblocks`), which have 16 to 512 bytes. Where only their
number is known, each counts with `BLOCK_BYTES` of memdiag/probe/ring_format.py. Prints the bytes
per block of everything in use after some imports, and of 20,000 objects of a kind.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Callable
from typing import Any

KEPT = 20_000
_ALLOCATED = re.compile(rb"# bytes in allocated blocks\s*=\s*([\d,]+)")


class Point:
    """An object as people write it."""

    def __init__(self, number: int) -> None:
        self.x = number * 1.5
        self.name = f"point {number}"


KINDS: dict[str, Callable[[int], Any]] = {
    "float": lambda n: n * 1.5,
    "text": lambda n: f"step {n}",
    "tuple of 3 floats": lambda n: (n * 1.5, n * 2.5, n * 3.5),
    "dict of 3 numbers": lambda n: {"loss": n * 1.5, "rate": n * 2.5, "step": n + 1000},
    "object with 2 attributes": Point,
    "exception": ValueError,
}


def in_use() -> tuple[int, int]:
    """Bytes in blocks, and blocks. CPython writes the bytes to the error stream only."""
    with tempfile.TemporaryFile() as statistics:
        stream = os.dup(2)
        os.dup2(statistics.fileno(), 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(stream, 2)
            os.close(stream)
        statistics.seek(0)
        found = _ALLOCATED.search(statistics.read())
    assert found is not None
    return int(found[1].replace(b",", b"")), sys.getallocatedblocks()


def main() -> None:
    for name in ("", "numpy", "torch"):
        if not name or importlib.util.find_spec(name):
            if name:
                importlib.import_module(name)
            size, blocks = in_use()
            print(f"in use after importing {name or 'nothing'}: {size / blocks:.0f} B per block")
    for name, make in KINDS.items():
        before, blocks_before = in_use()
        kept = [make(number) for number in range(KEPT)]
        after, blocks_after = in_use()
        blocks = blocks_after - blocks_before
        print(
            f"{name}: {(after - before) / blocks:.0f} B per block, {blocks / KEPT:.1f} blocks each"
        )
        del kept


if __name__ == "__main__":
    main()
