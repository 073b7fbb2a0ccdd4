"""What `memdiag watch --all` knows of a machine: its trainings and its memory.

These types are its JSON document.
"""

from __future__ import annotations

from dataclasses import dataclass

from memdiag.values.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Memory of a training on a GPU. gpu: its label (`GPU 0`)."""

    gpu: str
    used_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingState:
    """A training, with its child processes.

    pid, user, command: of its first process (untrusted text). verdict: so far. metric: what decides
    that, "" before anything does. growth_bytes_per_s, growth_bytes_per_step: its rate, null if
    unknown. limit: what a leak reaches first, "" for none. full_in_s: seconds until then.
    watched_s: how long it was watched.
    """

    pid: int
    user: str
    command: str
    processes: int
    verdict: Verdict
    confidence: float | None
    metric: str
    growth_bytes_per_s: float | None
    growth_bytes_per_step: float | None
    step: int | None
    rss_bytes: int | None
    peak_rss_bytes: int
    vram_bytes: int | None
    gpus: tuple[Share, ...]
    limit: str
    full_in_s: float | None
    watched_s: float
    has_ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """The memory of the host, or of a GPU, used by all.

    name: `host RAM`, `GPU 0`. verdict: on what is used. full_in_s: seconds until it is full at this
    rate, null if it does not leak.
    """

    name: str
    model: str
    used_bytes: int | None
    total_bytes: int | None
    verdict: Verdict
    growth_bytes_per_s: float | None
    full_in_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The machine at one moment. at: date and time. trainings: leaks first."""

    schema_version: int
    at: str
    host: str
    watched_s: float
    trainings: tuple[TrainingState, ...]
    memory: tuple[MemoryState, ...]
