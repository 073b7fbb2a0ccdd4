"""The public tags: `step`, `phase`, `counter`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

_PROBE = "_memdiag_probe"  # the module name under which `memdiag run` loads the in-target part


def _probe() -> Any:
    return sys.modules.get(_PROBE)


def step(n: int) -> None:
    """Say that optimizer step `n` has finished."""
    probe = _probe()
    if probe is not None:
        probe.step(n)


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Say that the body is phase `name`; phases nest."""
    probe = _probe()
    if probe is None:
        yield
        return
    probe.phase_begin(name)
    try:
        yield
    finally:
        probe.phase_end(name)


def counter(name: str, value: float) -> None:
    """Record a value of your own beside the memory."""
    probe = _probe()
    if probe is not None:
        probe.counter(name, value)
