"""The options of `run` and `watch`, and what is checked before anything starts."""

from __future__ import annotations

import enum
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from memdiag.capture.logtags import patterns
from memdiag.capture.logtags.patterns import TagRequest
from memdiag.cli.options import actions, outputs
from memdiag.cli.options.actions import Level
from memdiag.cli.options.declare import flag, option, repeatable
from memdiag.cli.options.gate import Gate, GateOptions, place_of_runs, settle
from memdiag.cli.options.outputs import ReportOptions
from memdiag.cli.options.page import PageOptions
from memdiag.destinations import request
from memdiag.destinations.request import Request
from memdiag.errors import UsageError
from memdiag.values.units import invalid, parse_seconds

if TYPE_CHECKING:
    from memdiag.recording.native.atomic_file import RecordingFiles


DEFAULT_INTERVAL = "0.1s"
# More than a duration that anybody means.
_FOREVER_S = 1e9


class StopOn(enum.Enum):
    """What ends a measurement early."""

    LEAK = "leak"


class Explain(enum.Enum):
    """How much may be spent on finding what holds the memory that grows."""

    AUTO = "auto"  # what the probe's share of the time allows
    ALWAYS = "always"  # as often as is useful
    NEVER = "never"


def _seconds(text: str, *, name: str, low: float, high: float) -> float:
    seconds = parse_seconds(text, name)
    if not low <= seconds <= high:
        most = f" and at most {high:g}s" if high < _FOREVER_S else ""
        raise invalid(text, name, f"must be at least {low:g}s{most}", "")
    return seconds


def interval(text: str) -> float:
    """The time between two samples, in seconds. Raises UsageError."""
    # A shorter interval would make the sampler the load; a longer one would miss whole steps.
    return _seconds(text, name="--interval", low=0.01, high=3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOptions:
    """The options, in the order of the help screen, and what `checked` adds to them.

    tags: what to look for in the output or a log. destinations: what `to` asks for, checked.
    run_variables: what the environment says of the run that the training opens in a tracker.
    gate, report, page: see there.
    """

    IS_SETTABLE: ClassVar[bool] = True

    interval_s: float = option(
        "--interval",
        "TIME",
        "Time between two samples.",
        default=DEFAULT_INTERVAL,
        parse=interval,
        panel="Recording",
    )
    output: Path | None = option(
        "--output",
        "FILE",
        "Where to record, .csv or .parquet.  [default: a new run in .memdiag]",
        parse=Path,
        short="-o",
        panel="Recording",
        typical=True,
    )
    full: bool = flag("--full", help="Disable downsampling of long recordings.", panel="Recording")
    live: bool | None = option(
        "--live/--no-live",
        None,
        "Show a live screen instead of the status line.  [default: watch on a terminal]",
        panel="Output",
    )
    duration_s: float | None = option(
        "--duration",
        "TIME",
        "Stop after this long (90, 10min).",
        parse=partial(_seconds, name="--duration", low=0.1, high=_FOREVER_S),
        panel="Recording",
        typical=True,
    )
    stop_on: StopOn | None = option(
        "--stop-on",
        None,
        "Stop as soon as this is the verdict.",
        panel="Limits and alarms",
        typical=True,
    )
    step_regex: tuple[str, ...] = repeatable(
        "--step-regex",
        "REGEX",
        r"Read the step from lines of the output or log: 'step (\d+)'.",
        panel="Steps and phases",
    )
    phase_regex: tuple[str, ...] = repeatable(
        "--phase-regex",
        "REGEX",
        r"Read the phase from these lines: 'phase: (\w+)'.",
        panel="Steps and phases",
    )
    counter_regex: tuple[str, ...] = repeatable(
        "--counter-regex",
        "NAME=REGEX",
        r"Record a number from these lines: 'copies=Copies: (\d+)'.",
        panel="Steps and phases",
    )
    tags_from: str | None = option(
        "--tags-from",
        "FILE",
        "Read steps and phases from this log of the job (run: - for its output). "
        "Without a REGEX, the lines of common loggers are recognized.",
        panel="Steps and phases",
        typical=True,
    )
    explain: Explain = option(
        "--explain",
        None,
        "Find what holds the memory that grows: within the probe's overhead, with the lines that "
        "run for up to 30 s where it grows (auto), more often, or never.",
        default=Explain.AUTO,
        panel="Recording",
    )
    no_source: bool = flag(
        "--no-source",
        help="Do not record names and source lines of the program.",
        panel="Recording",
    )
    census: bool = flag(
        "--census",
        help="Count tensors, arrays and objects from time to time, with their holders.",
        panel="Recording",
    )
    intervene: bool = flag(
        "--intervene",
        help="Free memory a few times (gc.collect, empty_cache, malloc_trim), to see what returns.",
        panel="Recording",
    )
    snapshot: bool = flag(
        "--snapshot",
        help="Record torch's allocations on GPUs; keep its snapshot of them, as of a failed "
        "allocation or the end.",
        panel="Recording",
    )
    attach: bool = flag(
        "--attach",
        help="Inject the probe to record steps, phases, tensors and exact metrics.",
        panel="Recording",
    )
    to: tuple[str, ...] = repeatable(
        "--to",
        "TRACKER[:WHERE]",
        "Send memory and verdict to wandb, mlflow, tensorboard[:DIR], prometheus[:PORT|:FILE.prom] "
        "or otlp[:URL] while it is recorded.",
        panel="Output",
    )
    tags: TagRequest | None = None
    destinations: tuple[Request, ...] = ()
    run_variables: Mapping[str, str] = field(default_factory=dict)
    gate: Gate = Gate()
    report: ReportOptions = ReportOptions()
    page: PageOptions = PageOptions()

    @property
    def stop_on_leak(self) -> bool:
        """Return True if a leak ends the measurement."""
        return self.stop_on is StopOn.LEAK

    @property
    def requires_live_verdict(self) -> bool:
        """Return True if something is to happen at a leak, or at a forecast."""
        return (
            self.stop_on_leak
            or bool(self.destinations)
            or any(one.level is Level.LEAK for one in self.gate.reactions)
            or any(one.within_s is not None for one in self.gate.thresholds)
        )


def checked(
    options: RecordingOptions,
    report: ReportOptions,
    gate: GateOptions,
    page: PageOptions,
    *,
    command: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> RecordingOptions:
    """The options, settled and checked. Raises UsageError or OutputExists.

    command: what will be started, () if the target runs already. Its files are not overwritten.
    environ: the target's, if it is this user's; None for that of memdiag.
    """
    if options.live and page.quiet:
        raise UsageError("--live and --quiet exclude each other", remedy="give one of them")
    _ = page.detail  # raises
    tags = _tag_request(options, sees_output=bool(command))
    settled = settle(gate)
    actions.check(settled.reactions, settled.thresholds)
    options = replace(options, tags=tags, gate=settled, report=report, page=page)
    options = _with_destinations(options, os.environ if environ is None else environ)
    read = outputs.of_command(command)
    if tags is not None and tags.file is not None:
        read.append(outputs.Named(path=tags.file, where="--tags-from"))
    outputs.require(report)
    outputs.check(
        outputs.reports(report),
        inputs=read,
        recording=outputs.of_recording(options.output) if options.output is not None else (),
        force=report.force,
    )
    return options


def _with_destinations(options: RecordingOptions, environ: Mapping[str, str]) -> RecordingOptions:
    """The options with what `--to` asks for. Raises UsageError."""
    if not options.to:
        return options
    given_as = "--to"
    requests = dict.fromkeys(request.parse(text, given_as) for text in options.to)
    known = {name: environ[name] for name in request.RUN_VARIABLES if name in environ}
    whole = {**known, **os.environ}
    settled = dict.fromkeys(request.checked(one, whole) for one in requests)
    return replace(options, destinations=tuple(settled), run_variables=known)


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
    return patterns.request(
        steps=options.step_regex,
        phases=options.phase_regex,
        counters=options.counter_regex,
        file=None if source in {None, "-"} else Path(source or ""),
        output=source == "-",
    )


def recording_files(
    options: RecordingOptions, command: Sequence[str], pid: int, say: Callable[[str], None]
) -> RecordingFiles:
    """The files of the recording, created now; in a private directory if the working directory is
    not writable. Raises UsageError or OutputExists.

    command, pid: what is recorded.
    """
    from memdiag.recording.native.atomic_file import RecordingFiles
    from memdiag.recording.native.runs import Place, RunFiles

    if options.output is not None:
        return RecordingFiles(options.output, force=options.report.force)
    place, now = place_of_runs(), datetime.now(timezone.utc).astimezone()
    try:
        return RunFiles(place, command, pid, now)
    except UsageError as error:
        if place.is_named:
            raise
        place = Place(path=Path(tempfile.mkdtemp(prefix="memdiag-")), is_named=True)
        say(f"{error.message}; recording to {place.path}")
        return RunFiles(place, command, pid, now)
