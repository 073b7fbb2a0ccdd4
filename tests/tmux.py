"""A real terminal with a shell in it: what a person sees, also of full-screen programs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

PATIENCE_S = 60.0
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Tmux:
    """A shell in a window of `size` (columns, rows), in `directory`; the window outlives it."""

    def __init__(
        self, directory: Path, size: tuple[int, int] = (80, 24), environ: Mapping[str, str] = {}
    ) -> None:
        self._socket = directory / "tmux.socket"
        columns, rows = size
        self._call(
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            *("-x", str(columns), "-y", str(rows), "-c", str(directory)),
            "bash --norc",
            *(";", "set-option", "-g", "remain-on-exit", "on"),
            environ={"PS1": "PROMPT ", **environ},
        )

    def type(self, line: str) -> None:
        """A line for the shell or the program."""
        self._call("send-keys", "-l", line)
        self.press("Enter")

    def run(self, command: list[str]) -> None:
        """A command of the shell."""
        self.type(shlex.join(command))

    def press(self, *keys: str) -> None:
        """Keys by tmux's names: `C-c`, `Tab`, `q`."""
        self._call("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        """Change the window's size."""
        self._call("resize-window", "-x", str(columns), "-y", str(rows))

    def see(self, *, colors: bool = False, scrolled: bool = False) -> str:
        """What is on the screen; `scrolled`: with what has left it at the top."""
        options = ["-e"] * colors + ["-S", "-2000"] * scrolled
        return self._call("capture-pane", "-p", "-J", *options)

    def until(self, pattern: str, *, scrolled: bool = False) -> str:
        """What is on the screen, once the pattern is."""
        expression = re.compile(pattern, re.M)
        deadline_s = time.monotonic() + PATIENCE_S
        while not expression.search(seen := self.see(scrolled=scrolled)):
            if time.monotonic() > deadline_s:
                raise AssertionError(f"{pattern!r} never came:\n{seen}")
            time.sleep(0.1)
        return seen

    def close(self) -> None:
        """End the shell and what runs in it."""
        self._call("kill-server")

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()

    def _call(self, *arguments: str, environ: Mapping[str, str] = {}) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        called = subprocess.run(
            ["tmux", "-S", str(self._socket), *arguments],
            env={**os.environ, "PATH": path, **environ},
            capture_output=True,
            text=True,
            check=True,
        )
        return called.stdout
