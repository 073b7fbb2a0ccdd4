"""What the tests of the probe share: a channel of their own, and processes under watch."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memdiag.capture.probelink.channel import ChannelReader, prepare
from memdiag.capture.probelink.ring_reader import Event, Kind
from memdiag.probe import name_walk, places, unnamed
from memdiag.probe.plain_access import locals_of

# What runs the tests: its variables lead to all tests. (xdist's worker runs as `__channelexec__`.)
_RUNNERS = {"_pytest", "pluggy", "pytest_rerunfailures", "xdist", "execnet", "__channelexec__"}
_ROOT = Path(__file__).resolve().parents[2]
_TESTING = tuple(str(_ROOT / folder) + os.sep for folder in ("tests", "tools", "benchmarks"))


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
        return [event for event in self.reader.drain() if event.kind is not Kind.WORK]

    @staticmethod
    def _call(
        command: tuple[str, ...], environ: Mapping[str, str], options: Mapping[str, object]
    ) -> subprocess.CompletedProcess[str]:
        options = {"timeout": 60, "text": True, **options}
        return subprocess.run(command, env=environ, capture_output=True, check=False, **options)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    directory = tmp_path / f"{os.getpid()}-0-channel"  # (named as by `create`)
    directory.mkdir(mode=0o700)
    unwanted = ("PYTHON", "MEMDIAG", "RANK", "LOCAL_RANK", "WORLD_SIZE", "COV_")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    watched = Watched(directory, environ)
    yield watched
    watched.reader.close()


@pytest.fixture
def python() -> str:
    return sys.executable


def _locals_of_programs(frame: types.FrameType) -> Mapping[str, object]:
    """Those of a function, but none of what runs the tests."""
    module = frame.f_globals.get("__name__", "")
    is_runner = module.partition(".")[0] in _RUNNERS or module.endswith("conftest")
    return {} if is_runner else locals_of(frame)


@pytest.fixture
def program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> types.ModuleType:
    """A module of a program: it has a file, outside of the packages. No test is part of it, nor is
    what pytest holds, which grows with the number of tests. What others have left is collected."""
    gc.collect()
    monkeypatch.setattr(name_walk, "locals_of", _locals_of_programs)
    monkeypatch.setattr(name_walk, "_MOST_VISITS", 10**6)
    monkeypatch.setattr(name_walk, "_MOST_UNNAMED", 10**6)
    monkeypatch.setattr(name_walk, "_LONGEST_S", 10.0)
    monkeypatch.setattr(places, "MOST_PLACES", 10**6)
    monkeypatch.setattr(unnamed, "_MOST_FOLLOWED", 100)
    for name, other in list(sys.modules.items()):
        if other is not request.module and (getattr(other, "__file__", "") or "").startswith(
            _TESTING
        ):
            monkeypatch.delitem(sys.modules, name)
    module = types.ModuleType("a_training_program")
    module.__file__ = str(tmp_path / "a_training_program.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module
