"""What `run` and `watch` can be told alike, and what is checked before anything starts."""

from __future__ import annotations

import enum
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.cli.options import outputs
from memdiag.cli.options.gate import Gate
from memdiag.errors import UsageError
from memdiag.values.measurements import Limit, Role
from memdiag.values.units import parse_bytes, parse_seconds

if TYPE_CHECKING:
    from memdiag.capture.logtags.patterns import TagRequest
    from memdiag.recording.native.atomic_file import RecordingFiles

# Below this the sampler would be the load; above, nothing of a step's life is seen. Chosen.
_SHORTEST_INTERVAL_S, _LONGEST_INTERVAL_S = 0.01, 3600.0
# What `--gpu-limit` is a ceiling for, and `--limit`: everything that takes room in one memory.
_ON_DEVICE = frozenset({Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED})
_ON_HOST = frozenset(
    {
        Role.RESIDENT,
        Role.UNIQUE,
        Role.PROPORTIONAL,
        Role.HOST,
        Role.IN_USE,
        Role.COLLECTED_HEAP,
        Role.PEAK,
    }
)


class StopOn(enum.Enum):
    """What may end a measurement early."""

    LEAK = "leak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options, checked. `duration_s`, `output`, `json_file`, `tags`: None where not given.

    json: the report goes to stdout as JSON, in place of the text.

    limits: of the user's, for a target that is on one GPU at most (see `limits_on`).
    """

    interval_s: float
    output: Path | None
    force: bool
    full: bool
    quiet: bool
    duration_s: float | None
    stop_on_leak: bool
    json_file: Path | None
    gate: Gate
    limits: tuple[Limit, ...]
    tags: TagRequest | None = None
    json: bool = False


Interval = Annotated[
    str, typer.Option("--interval", metavar="TIME", help="Time between two samples.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to record, .csv or .parquet.  [default: memdiag-TIME-PID.csv, here]",
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Overwrite FILE, and reports' files, whatever they hold."),
]
ForceReports = Annotated[
    bool,
    typer.Option("--force", help="Overwrite FILE even if memdiag did not write what it holds."),
]
Full = Annotated[bool, typer.Option("--full", help="Keep every sample of a long run.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No status line, and of the report one line only.")
]
Duration = Annotated[
    str | None, typer.Option("--duration", metavar="TIME", help="Stop after this long (90, 10min).")
]
StopOnOption = Annotated[
    StopOn | None, typer.Option("--stop-on", help="Stop as soon as this is the verdict.")
]
JsonOut = Annotated[
    bool, typer.Option("--json", help="Print the report as JSON, and nothing else.")
]
JsonFile = Annotated[
    Path | None, typer.Option("--json-file", metavar="FILE", help="Write the report there as JSON.")
]


def checked(
    *,
    interval: str,
    output: Path | None,
    force: bool,
    full: bool,
    quiet: bool,
    duration: str | None,
    stop_on: StopOn | None,
    json_file: Path | None,
    gate: Gate,
    tags: TagRequest | None = None,
    json: bool = False,
    command: Sequence[str] = (),
) -> Options:
    """The options as values. Raises UsageError or OutputExists for what can't be done.

    command: what is to be started, whose files are not to be overwritten.
    """
    read = outputs.of_command(command)
    if tags is not None and tags.file is not None:
        read.append(outputs.Named(path=tags.file, where="--tags-from"))
    outputs.check(
        outputs.reports(json_file, gate),
        inputs=read,
        recording=outputs.of_recording(output) if output is not None else (),
        force=force,
    )
    return Options(
        interval_s=_within("--interval", interval, _SHORTEST_INTERVAL_S, _LONGEST_INTERVAL_S),
        output=output,
        force=force,
        full=full,
        quiet=quiet,
        duration_s=None if duration is None else _within("--duration", duration, 0.1, 1e9),
        stop_on_leak=stop_on is StopOn.LEAK,
        json_file=json_file,
        gate=gate,
        limits=limits_on(gate, ()),
        tags=tags,
        json=json,
    )


def recording_files(
    options: Options, default: Callable[[], Path], say: Callable[[str], None]
) -> RecordingFiles:
    """The files of the recording, made now. Where nothing can be written here, in a private
    directory. Raises UsageError or OutputExists.
    """
    from memdiag.recording.native.atomic_file import RecordingFiles

    if options.output is not None:
        return RecordingFiles(options.output, force=options.force)
    path = default()
    try:
        return RecordingFiles(path, force=False)
    except UsageError:
        path = Path(tempfile.mkdtemp(prefix="memdiag-")) / path.name
        say(f"nothing can be written here; recording to {path}")
        return RecordingFiles(path, force=False)


def _within(option: str, text: str, low: float, high: float) -> float:
    seconds = parse_seconds(text)
    if not low <= seconds <= high:
        raise UsageError(
            f"{option} {text} is out of range", remedy=f"give a time from {low:g} s to {high:g} s"
        )
    return seconds


def limits_on(gate: Gate, gpu_columns: Sequence[str]) -> tuple[Limit, ...]:
    """The limits that `--limit` and `--gpu-limit` mean. Raises UsageError.

    gpu_columns: the metrics of the single GPUs where the target is on several: each has
    `--gpu-limit` to itself.
    """
    found = []
    if gate.limit is not None:
        roles = _ON_HOST if gate.gpu_limit is not None else _ON_HOST | _ON_DEVICE
        found.append(Limit(name="--limit", value_bytes=_size("--limit", gate.limit), roles=roles))
    if gate.gpu_limit is not None:
        size = _size("--gpu-limit", gate.gpu_limit)
        found += [
            Limit(name="--gpu-limit", value_bytes=size, roles=_ON_DEVICE, metric=metric)
            for metric in gpu_columns or ("",)
        ]
    return tuple(found)


def _size(option: str, text: str) -> int:
    size = parse_bytes(text)
    if size <= 0:
        raise UsageError(f"{option} {text} is no limit", remedy="write 16GB or 1.5GiB")
    return size
