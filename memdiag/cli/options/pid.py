"""The process that a command line names."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from memdiag.errors import UsageError
from memdiag.recording.native.runs import is_run_name
from memdiag.values.sanitize import printable

PidOption = Annotated[
    list[str] | None,
    typer.Option("--pid", "-p", metavar="PID", help="The same as an option."),
]


def only_pid(named: Sequence[str], usage: str) -> int:
    """The only pid among the words. Raises UsageError. usage: `memdiag watch`."""
    if not named:
        raise UsageError("no PID", remedy=f"{usage} PID; memdiag watch lists Python processes")
    first = named[0]
    if not (first.isdecimal() and first.isascii()):
        message = f"invalid value {printable(first)!r} for PID: not a process id"
        raise UsageError(message, remedy=_meant(named))
    if len(named) > 1:
        raise UsageError(
            f"only one process can be named, got {len(named)}",
            remedy=f"its children belong to it; run {usage} once for each",
        )
    return int(first)


def _meant(named: Sequence[str]) -> str:
    """What to type instead of words of which the first is not a pid."""
    word, typed = printable(named[0]), printable(shlex.join(named))
    is_script = word.endswith(".py")
    if not is_script and (is_run_name(word) or os.path.lexists(word)):
        return f"to judge a recording: memdiag analyze {typed}"
    python = "python " if is_script else ""
    start = f"\nto start it: memdiag run -- {python}{typed}" if is_script or named[1:] else ""
    return f"to find it: pgrep -af {word}{start}"
