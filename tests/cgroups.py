"""A real memory cgroup for a test; the test is skipped where none may be created."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdiag.capture.process.cgroup import MemoryGroup, memory_group


@contextlib.contextmanager
def limited_group(limit_bytes: int) -> Iterator[Path]:
    """A real memory group of this size; skips where none may be created."""
    own = memory_group(os.getpid())
    if own is None:
        pytest.skip("this process is in no memory cgroup that can be seen")
    parent = own.levels[-1]
    group = parent / f"memdiag-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup may be created here: {error}")
    try:
        _limit(group, own, limit_bytes)
        yield group
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


def _limit(group: Path, own: MemoryGroup, limit_bytes: int) -> None:
    try:
        (group / own.limit_file).write_text(str(limit_bytes))
    except OSError as error:
        pytest.skip(f"the cgroup can't be limited here: {error}")
    swap = group / ("memory.swap.max" if own.version == 2 else "memory.memsw.limit_in_bytes")
    with contextlib.suppress(OSError):
        swap.write_text("0" if own.version == 2 else str(limit_bytes))
