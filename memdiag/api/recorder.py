"""`memdiag.record`: records this process and its children, without `memdiag run`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from memdiag.api.analyze import analyze
from memdiag.api.cells import with_cells
from memdiag.api.diagnosis import Diagnosis
from memdiag.errors import CaptureError, UsageError
from memdiag.values import findings
from memdiag.values.sanitize import printable

# In isolated mode: neither the working directory nor a module of the program replaces one of the
# standard library, and the probe is not loaded.
_PROGRAM = """
import json, sys
asked = json.loads(sys.argv[1])
sys.path.insert(0, asked["package"])
import memdiag  # the same as the program's
del sys.path[0]
sys.path += [place for place in asked["path"] if place not in sys.path]
from memdiag.cli.measurement.caller_session import main
sys.exit(main(asked))
"""


def record(
    *,
    interval: float | str = 0.1,
    output: str | os.PathLike[str] | None = None,
    explain: str = "auto",
) -> Recorder:
    """Record the memory of this process and its children in a `with` statement.

    interval: time between two samples, in seconds or as text ("50ms"). output: a file for the
    recording, .csv or .parquet; by default a new run is kept in `.memdiag` (docs/api.md).
    explain: how much may be spent on finding what holds the memory that grows (`--explain`): auto,
    always, which finds it in short recordings, or never.

    The samples are taken by a process of memdiag's own. Steps, phases and exact metrics come from
    the probe, which is loaded into this process for the time of the recording.
    """
    return Recorder(interval=interval, output=output, explain=explain)


class Recorder:
    """A recording of this process, made by `memdiag.record()`; enter it to begin.

    path: of the recording; None before it has begun.
    """

    def __init__(
        self,
        *,
        interval: float | str = 0.1,
        output: str | os.PathLike[str] | None = None,
        explain: str = "auto",
    ) -> None:
        self.path: Path | None = None
        self._asked: dict[str, Any] = {
            "interval_s": str(interval),
            "output": None if output is None else os.fspath(output),
            "explain": explain,
        }
        self._process: subprocess.Popen[str] | None = None
        self._pid = 0
        self._name = ""  # the path from the directory in which it began
        self._has_probe = False
        self._diagnosis: Diagnosis | None = None

    @property
    def diagnosis(self) -> Diagnosis:
        """The diagnosis of the recording; while it is being made, of what was written so far.

        Raises UsageError before it has begun, and ReadError if nothing was written yet.
        """
        if self.path is None:
            raise UsageError("nothing was recorded yet", remedy="with memdiag.record() as rec: ...")
        if self._diagnosis is None or self._process is not None:
            (found,) = analyze(self.path).found.recordings
            named = with_cells(replace(found, source=self._name))
            self._diagnosis = Diagnosis(found=findings.Diagnosis(recordings=(named,)))
        return self._diagnosis

    def __enter__(self) -> Recorder:
        """Begin; returns once the first sample was taken. Raises CaptureError or UsageError."""
        if self._process is not None or self.path is not None:
            raise UsageError("this recorder was used before", remedy="call memdiag.record() again")
        if not sys.executable:
            raise CaptureError("the Python of this process is unknown (sys.executable)")
        self._pid = os.getpid()
        asked = {
            **self._asked,
            "pid": self._pid,
            "package": str(Path(__file__).resolve().parents[2]),
            "path": [place for place in sys.path if os.path.isabs(place)],  # noqa: PTH117
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM, json.dumps(asked)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # the keys of the terminal are for the program
            )
        except OSError as error:
            raise CaptureError(
                f"no process can be started to record: {error.strerror} ({sys.executable})"
            ) from error
        try:
            for message in self._messages():
                if "execute" in message:
                    self._has_probe = True
                    exec(Path(message["execute"]).read_text(encoding="utf-8"), {})  # noqa: S102
                if "recording" in message:
                    self._name = message["recording"]
                    self.path = Path(self._name).absolute()
                    return self
                if "error" in message:
                    kind = UsageError if message["is_usage"] else CaptureError
                    raise kind(message["error"], remedy=message["remedy"])
            said = self._last_words().splitlines()[-1:] or ["it has printed nothing"]
            raise CaptureError(
                f"the process that records has ended: {printable(said[0])}",
                remedy=f"{sys.executable} -m memdiag doctor",
            )
        except BaseException:
            self._stop()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the recording; returns once it is written. Does nothing in a forked child."""
        if os.getpid() == self._pid:
            self._stop()

    def __repr__(self) -> str:
        if self.path is None:
            return "<Recorder: not begun>"
        if self._process is not None:
            return f"<Recorder: recording to {self._name}>"
        return f"<Recorder: recorded to {self._name}>"

    def _messages(self) -> Iterator[dict[str, Any]]:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                yield json.loads(line)
            except ValueError:  # printed by a library
                continue

    def _stop(self) -> None:
        """Have the recording finished, and unload the probe."""
        process = self._process
        if process is None:
            return
        with process:  # waits for it
            process.send_signal(signal.SIGTERM)
            failures = [one["failure"] for one in self._messages() if one.get("failure")]
            words = self._last_words()
        self._process = None
        detach = getattr(sys.modules.get("_memdiag_probe"), "detach", None)
        if self._has_probe and detach is not None:
            detach()
        if words:
            print(words, file=sys.stderr)
        if failures:
            warnings.warn(f"measuring failed: {failures[0]}", RuntimeWarning, stacklevel=3)

    def _last_words(self) -> str:
        """What the process that records has printed on standard error."""
        assert self._process is not None
        assert self._process.stderr is not None
        return self._process.stderr.read().strip()
