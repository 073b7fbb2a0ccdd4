"""What the screen knows: the readings so far, the findings, and what the user has chosen."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memdiag.report.text.screen import Screen
from memdiag.screen.history import PhaseHistory, SeriesHistory
from memdiag.screen.messages import About, Frame
from memdiag.screen.output import LastLines, Said
from memdiag.values.findings import Finding
from memdiag.values.measurements import AxisKind, Limit, Role, Sample
from memdiag.values.metrics import METRIC_ROLES

TREE = "tree"
_MOST_SERIES = 256  # as many as the live verdict follows
# What a user looks at first; other metrics follow in the order in which they appear.
_FIRST = (
    "rss_bytes",
    "vram_bytes",
    "vram_allocated_bytes",
    "vram_reserved_bytes",
    "malloc_bytes",
    "tensor_bytes",
    "tensors",
    "pss_bytes",
)
_COSTS, _COST_EVERY_S = 15, 1.0  # what the share of the processor is taken over (heuristic)
_NOT_DRAWN = frozenset({Role.EVENTS, Role.PEAK, Role.PROCESSES})
ORDERS = ("process", "rss_bytes", "pss_bytes", "vram_bytes", "tensors", "growth")

Key = tuple[str, str]


@dataclass(slots=True)
class Process:
    """A process as the table shows it. seen_s: its last sample."""

    pid: int
    name: str
    seen_s: float = 0.0
    readings: dict[str, float] = field(default_factory=dict)


class View:
    """Takes frames; what it holds does not grow with the length of the run.

    chosen: the series that the user wants to see, None for the one that decides.
    order: the column that the table is sorted by. marks: moments that the user has marked,
    as (seconds, step).
    """

    def __init__(self, about: About, copies: Sequence[int] = (), said: int = -1) -> None:
        self.about = about
        self.output = LastLines(copies, ascii_only=about.ascii_only)
        self.said = Said(said, ascii_only=about.ascii_only)
        self.has_output = bool(copies)
        self.frame = Frame()
        self.findings: dict[Key, Finding] = {}
        self.histories: dict[Key, SeriesHistory] = {}
        self.phases = PhaseHistory()
        self.processes: dict[int, Process] = {}
        self.step: int | None = None
        self.phase = ""
        self.chosen: Key | None = None
        self.order = ORDERS[0]
        self.marks: list[tuple[float, int | None]] = []
        self._tree_s = self._before_s = 0.0
        self._taken_s = time.monotonic()
        self._costs = deque([(0.0, time.process_time())], maxlen=_COSTS)

    def screen(self, width: int) -> Screen:
        """The characters for lines of `width` cells."""
        return Screen(width=width, ascii_only=self.about.ascii_only)

    def take(self, frame: Frame) -> None:
        """Take what is new."""
        for sample in frame.samples:
            self._take(sample)
        for found in frame.series:
            self.findings[found.process, found.metric] = found
        if frame.is_whole:
            self.frame, self._taken_s = frame, time.monotonic()
            if frame.elapsed_s >= self._costs[-1][0] + _COST_EVERY_S:
                self._costs.append((frame.elapsed_s, frame.cpu_s + time.process_time()))

    def look(self) -> bool:
        """Read what the job and memdiag have written. Returns True if there was anything."""
        return self.output.look() | self.said.look()

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits that apply."""
        return self.frame.limits

    def is_waiting(self, seconds: float) -> bool:
        """Return True if there was no frame for so long."""
        return time.monotonic() - self._taken_s > seconds

    @property
    def elapsed_s(self) -> float:
        """Since the recording began, also between two frames."""
        return self.frame.elapsed_s + time.monotonic() - self._taken_s

    @property
    def cost(self) -> float:
        """The share of a core that memdiag and its screen have taken lately."""
        (began_s, used_s), (now_s, now_used_s) = self._costs[0], self._costs[-1]
        return (now_used_s - used_s) / max(now_s - began_s, 1e-3)

    def series(self) -> list[Key]:
        """The series that can be drawn, in a fixed order."""
        single = (
            len({process for process, _ in self.histories}) == 2
        )  # the tree and its only process
        keys = [
            key
            for key, history in self.histories.items()
            if len(history) > 1 and not (single and key[0] == TREE)
        ]
        return sorted(keys, key=lambda key: _rank(key[1]))

    @property
    def shown(self) -> Key | None:
        """The series that is drawn."""
        keys = self.series()
        if self.chosen in keys:
            return self.chosen
        found = self.frame.found
        if found is not None and (found.process, found.metric) in keys:
            return found.process, found.metric
        return keys[0] if keys else None

    def choose(self, at: int) -> None:
        """Show the series with this number."""
        keys = self.series()
        if 0 <= at < len(keys):
            self.chosen = keys[at]

    def choose_next(self, by: int) -> None:
        """Show the series that is `by` further."""
        keys, shown = self.series(), self.shown
        if keys and shown is not None:
            self.chosen = keys[(keys.index(shown) + by) % len(keys)]

    def alive(self) -> list[Process]:
        """The processes of the last samples, in the chosen order."""
        alive = [one for one in self.processes.values() if one.seen_s >= self._before_s]
        if self.order == "process":
            return sorted(alive, key=lambda one: (one.name, one.pid))
        return sorted(alive, key=lambda one: -self._value(one))

    def growth(self, process: Process) -> Finding | None:
        """What is known of the growth of a process."""
        return self.findings.get((process.name, "rss_bytes"))

    def _value(self, process: Process) -> float:
        if self.order != "growth":
            return process.readings.get(self.order, -math.inf)
        found = self.growth(process)
        known = found is not None and found.growth_per_x is not None
        return found.growth_per_x.value if known else -math.inf  # type: ignore[union-attr]

    def mark(self) -> None:
        """Mark this moment."""
        self.marks.append((self.elapsed_s, self.step))

    def _take(self, sample: Sample) -> None:
        if sample.process == TREE:
            self._before_s, self._tree_s = self._tree_s, sample.at_s
            if sample.step is not None and self.step is None:
                self.phases = PhaseHistory()
            self.step, self.phase = sample.step, sample.phase
            x = sample.at_s if sample.step is None else float(sample.step)
            self.phases.add(x, sample.phase)
        else:
            self._take_process(sample)
        if sample.young:
            return
        for metric, value in _drawn(sample):
            history = self._history(sample, metric)
            if not history.is_stepped or sample.step is not None:
                x = sample.at_s if sample.step is None else float(sample.step)
                history.add(x, float(value))

    def _take_process(self, sample: Sample) -> None:
        process = self.processes.get(sample.pid)
        if process is None:
            gone = [one.pid for one in self.processes.values() if one.seen_s < self._before_s]
            for pid in gone:
                del self.processes[pid]
            process = self.processes[sample.pid] = Process(sample.pid, sample.process)
        process.name, process.seen_s = sample.process, max(process.seen_s, sample.at_s)
        process.readings.update(sample.readings)

    def _history(self, sample: Sample, metric: str) -> SeriesHistory:
        key = (sample.process, metric)
        history = self.histories.get(key)
        if history is None or (sample.step is not None and not history.is_stepped):
            history = self.histories[key] = SeriesHistory(is_stepped=sample.step is not None)
            if len(self.histories) > _MOST_SERIES:
                del self.histories[next(iter(self.histories))]
        return history

    def axis(self, key: Key) -> AxisKind:
        """The axis of a series: steps, once there are any."""
        return AxisKind.STEP if self.histories[key].is_stepped else AxisKind.SECONDS


def _drawn(sample: Sample) -> Iterator[tuple[str, float]]:
    for metric, value in sample.readings.items():
        role = METRIC_ROLES.get(metric, Role.COUNTER)
        if role not in _NOT_DRAWN and abs(value) < 1e300:
            yield metric, value


def _rank(metric: str) -> int:
    return _FIRST.index(metric) if metric in _FIRST else len(_FIRST)
