"""Puts the probe to work in this process: called once per interpreter, before the program."""

from __future__ import annotations

import os
import sys

from .session import Session

PACKAGE = "_memdiag_probe"  # the name under which `memdiag.tags` looks for us


def boot(directory: str) -> None:
    """Announce this process in the channel `directory`, and listen to its tags."""
    package = sys.modules[PACKAGE]
    session = Session(directory)
    session.announce()
    package.session = session  # type: ignore[attr-defined]
    os.register_at_fork(after_in_child=session.after_fork_in_child)
