"""The options of `run` and `watch`, and what is checked before anything starts."""

from __future__ import annotations

import enum
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memdiag.capture.logtags.patterns import TagRequest, request
from memdiag.cli.options import outputs
from memdiag.cli.options.declare import flag, option, repeatable
from memdiag.cli.options.gate import Gate, GateOptions, settle
from memdiag.cli.options.outputs import ReportOptions
from memdiag.errors import UsageError
from memdiag.values.units import invalid, parse_seconds

if TYPE_CHECKING:
    from memdiag.recording.native.atomic_file import RecordingFiles


class StopOn(enum.Enum):
    """What ends a measurement early."""

    LEAK = "leak"


def _seconds(text: str, *, name: str, low: float, high: float) -> float:
    seconds = parse_seconds(text, name)
    if not low <= seconds <= high:
        remedy = f"give a time from {low:g} s to {high:g} s"
        raise invalid(text, name, "out of range", remedy)
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOptions:
    """The options, in the order of the help screen, and what `checked` adds to them.

    tags: what to look for in the output or a log. gate, report: see there.
    """

    # A shorter interval would make the sampler the load; a longer one would miss whole steps.
    interval_s: float = option(
        "--interval",
        "TIME",
        "Time between two samples.",
        default="0.1s",
        parse=partial(_seconds, name="--interval", low=0.01, high=3600.0),
    )
    output: Path | None = option(
        "--output",
        "FILE",
        "Where to record, .csv or .parquet.  [default: memdiag-TIME-PID.csv, here]",
        parse=Path,
        short="-o",
    )
    full: bool = flag("--full", help="Disable downsampling of long recordings.")
    quiet: bool = flag("--quiet", "-q", help="Print no status line, and only the verdict line.")
    duration_s: float | None = option(
        "--duration",
        "TIME",
        "Stop after this long (90, 10min).",
        parse=partial(_seconds, name="--duration", low=0.1, high=1e9),
    )
    stop_on: StopOn | None = option("--stop-on", None, "Stop as soon as this is the verdict.")
    step_regex: tuple[str, ...] = repeatable(
        "--step-regex", "REGEX", r"Read the step from lines of the output or log: 'step (\d+)'."
    )
    phase_regex: tuple[str, ...] = repeatable(
        "--phase-regex", "REGEX", r"Read the phase from these lines: 'phase: (\w+)'."
    )
    counter_regex: tuple[str, ...] = repeatable(
        "--counter-regex",
        "NAME=REGEX",
        r"Record a number from these lines: 'copies=Copies: (\d+)'.",
    )
    tags_from: str | None = option(
        "--tags-from",
        "FILE",
        "Read steps and phases from this log while it is written (run: - for the output). "
        "Without a REGEX, the lines of common loggers are recognized.",
    )
    attach: bool = flag(
        "--attach", help="Inject the probe to record steps, phases, tensors and exact metrics."
    )
    tags: TagRequest | None = None
    gate: Gate = Gate()
    report: ReportOptions = ReportOptions()

    @property
    def stop_on_leak(self) -> bool:
        """Return True if a leak ends the measurement."""
        return self.stop_on is StopOn.LEAK


def checked(
    options: RecordingOptions,
    report: ReportOptions,
    gate: GateOptions,
    *,
    command: Sequence[str] = (),
) -> RecordingOptions:
    """The options, settled and checked. Raises UsageError or OutputExists.

    command: what will be started, () if the target runs already. Its files are not overwritten.
    """
    tags = _tag_request(options, sees_output=bool(command))
    options = replace(options, tags=tags, gate=settle(gate), report=report)
    read = outputs.of_command(command)
    if tags is not None and tags.file is not None:
        read.append(outputs.Named(path=tags.file, where="--tags-from"))
    outputs.check(
        outputs.reports(report),
        inputs=read,
        recording=outputs.of_recording(options.output) if options.output is not None else (),
        force=report.force,
    )
    return options


def _tag_request(options: RecordingOptions, *, sees_output: bool) -> TagRequest | None:
    """What to look for in the output or a log. Raises UsageError."""
    regexes = (*options.step_regex, *options.phase_regex, *options.counter_regex)
    source = options.tags_from
    if source is None and not regexes:
        return None
    if not sees_output and source in {None, "-"}:
        raise UsageError(
            "the output of a running process cannot be read",
            remedy="name its log: --tags-from train.log",
        )
    return request(
        steps=options.step_regex,
        phases=options.phase_regex,
        counters=options.counter_regex,
        file=None if source in {None, "-"} else Path(source or ""),
        output=source == "-",
    )


def recording_files(options: RecordingOptions, say: Callable[[str], None]) -> RecordingFiles:
    """The files of the recording, created now; in a private directory if the working directory is
    not writable. Raises UsageError or OutputExists.
    """
    from memdiag.recording.native.atomic_file import RecordingFiles
    from memdiag.recording.native.writer import default_path

    if options.output is not None:
        return RecordingFiles(options.output, force=options.report.force)
    path = default_path(os.getpid(), datetime.now(timezone.utc))
    try:
        return RecordingFiles(path, force=False)
    except UsageError:
        path = Path(tempfile.mkdtemp(prefix="memdiag-")) / path.name
        say(f"this directory is not writable; recording to {path}")
        return RecordingFiles(path, force=False)
