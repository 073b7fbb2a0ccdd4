"""What the tests of the probe share: a channel of their own, and processes under watch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memdiag.capture.probelink.channel import ChannelReader, prepare
from memdiag.capture.probelink.ring_reader import Event


@dataclass
class Watched:
    """A channel, and a way to run programs with the probe in it."""

    directory: Path
    environ: Mapping[str, str]
    reader: ChannelReader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = ChannelReader(self.directory)

    def run(
        self, *command: str, env: Mapping[str, str] | None = None, **options: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; `env` is added to the environment before ours."""
        environ = prepare({**self.environ, **(env or {})}, self.directory)
        return self._call(command, environ, options)

    def run_without(
        self, *command: str, env: Mapping[str, str] | None = None, **options: object
    ) -> subprocess.CompletedProcess[str]:
        """The same without us."""
        return self._call(command, {**self.environ, **(env or {})}, options)

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a command, its stdin and stdout connected to us."""
        environ = prepare(self.environ, self.directory)
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environ, stdin=pipe, stdout=pipe, text=True)

    def events(self) -> list[Event]:
        return self.reader.drain()

    @staticmethod
    def _call(
        command: tuple[str, ...], environ: Mapping[str, str], options: Mapping[str, object]
    ) -> subprocess.CompletedProcess[str]:
        options = {"timeout": 60, "text": True, **options}
        return subprocess.run(command, env=environ, capture_output=True, check=False, **options)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    directory = tmp_path / "channel"
    directory.mkdir(mode=0o700)
    unwanted = ("PYTHON", "MEMDIAG", "RANK", "LOCAL_RANK", "WORLD_SIZE", "COV_")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    watched = Watched(directory, environ)
    yield watched
    watched.reader.close()


@pytest.fixture
def python() -> str:
    return sys.executable
