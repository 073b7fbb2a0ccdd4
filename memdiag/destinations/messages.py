"""What a destination gets: the run, rows of readings, the verdict so far, and the end."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

PREFIX = "memdiag"
TREE = "tree"
# What trackers accept in the name of a series (MLflow has the shortest list).
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


class Run(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A run that begins.

    name: of the run, safe as a file name. program: its program without arguments, which may hold
    secrets. started_s: seconds since the epoch of Unix.
    """

    name: str
    program: str
    pid: int
    host: str
    started_s: float
    memdiag: str


class Row(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The latest readings at one moment.

    at_s: seconds since the run began. readings: by process ("tree" for all of them) and metric.
    """

    at_s: float
    step: int | None
    phase: str
    readings: dict[str, dict[str, float]]


class Judgment(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The verdict so far, or that of the report.

    verdict: "leak", "warmup", "stable" or "inconclusive". confidence: 0 to 1, None before there is
    any. metric, process: the series that decides, "" without one. unit: of its growth ("bytes",
    "count", "percent"). limits_bytes: limits by name. full_in_s: seconds until the first limit at
    this rate, None if no leak leads there. is_final: it is the report's.
    """

    verdict: str
    confidence: float | None = None
    metric: str = ""
    process: str = ""
    unit: str = "bytes"
    growth_per_step: float | None = None
    growth_per_s: float | None = None
    onset_step: float | None = None
    limits_bytes: dict[str, int] = {}
    full_in_s: float | None = None
    is_final: bool = False

    def numbers(self) -> dict[str, float]:
        """What is known as numbers, by name: `growth_bytes_per_step`, `confidence`."""
        found = {
            "confidence": self.confidence,
            f"growth_{self.unit}_per_step": self.growth_per_step,
            f"growth_{self.unit}_per_s": self.growth_per_s,
            "onset_step": self.onset_step,
            "full_in_s": self.full_in_s,
            **{f"limit_bytes/{safe(name)}": size for name, size in self.limits_bytes.items()},
        }
        return {name: float(value) for name, value in found.items() if value is not None}

    def texts(self) -> dict[str, str]:
        """The verdict and the series that it rests on."""
        series = f"{self.process} {self.metric}".strip()
        return {"verdict": self.verdict.upper()} | ({"series": series} if series else {})


class End(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The run has ended. judgment: of the report. files: the report as files, by their names."""

    judgment: Judgment
    files: dict[str, str]


Message = Run | Row | Judgment | End
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    return _ENCODER.encode(message)


def decode(data: bytes) -> Message:
    """The message. Raises msgspec.DecodeError."""
    return _DECODER.decode(data)


def safe(name: str) -> str:
    """A name that every tracker accepts as a part of one."""
    return _UNSAFE.sub("_", name).strip("_") or "_"


def series(row: Row) -> Iterator[tuple[str, float]]:
    """Name and value of each reading: `memdiag/rss_bytes`, `memdiag/rank0/rss_bytes`; the step."""
    if row.step is not None:
        yield f"{PREFIX}/step", float(row.step)
    for process, readings in row.readings.items():
        place = PREFIX if process == TREE else f"{PREFIX}/{safe(process)}"
        for metric, value in readings.items():
            yield f"{place}/{safe(metric)}", value
