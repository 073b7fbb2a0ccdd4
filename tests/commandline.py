"""The command line, called in this process: most of what a call takes is the start of Python."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock

from memdiag.cli.app import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def called(*arguments: object) -> Ended:
    """`memdiag ARGUMENTS`, not on a terminal."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in "oe")
    argv = ["memdiag", *map(str, arguments)]
    with redirect_stdout(out), redirect_stderr(err), mock.patch.object(sys, "argv", argv):
        code = main()
    out.flush()
    err.flush()
    printed = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return Ended(returncode=code, stdout=printed[0], stderr=printed[1])
