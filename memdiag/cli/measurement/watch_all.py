"""`memdiag watch --all`: all trainings of the machine at once, in a table or as JSON."""

from __future__ import annotations

import contextlib
import json
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from memdiag.capture.gpu.machine_memory import MachineMemory, TreeShare
from memdiag.capture.probelink.channel import ChannelReader, find_channel, owners_of
from memdiag.capture.process.attach import this_table
from memdiag.capture.process.memory_limits import LimitWatch
from memdiag.capture.process.trainings import Finder, Training, host_memory
from memdiag.capture.process.tree import ProcessTree
from memdiag.capture.session import TREE_LABEL, Session
from memdiag.cli import lazy_imports
from memdiag.cli.options.gate import Gate
from memdiag.cli.options.page import PageOptions
from memdiag.cli.output.messages import in_words, say
from memdiag.cli.output.printing import show
from memdiag.errors import Exit
from memdiag.report.sections import trainings_table
from memdiag.report.text.screen import Screen
from memdiag.values.codec import plain
from memdiag.values.measurements import ON_DEVICE, AxisKind, Limit, Role, Sample, Unavailable, Unit
from memdiag.values.overview import MemoryState, Overview, Share, TrainingState
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from memdiag.analysis.live.sequential import LiveVerdict
    from memdiag.values.findings import Finding

INTERVAL_S = 1.0
_SEARCH_S = 5.0  # between two looks for trainings: heuristic
_MOST = 200  # trainings that are watched, and that have ended and are still shown
_ON_HOST = frozenset({Role.HOST, Role.RESIDENT})
_ORDER = (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to watch and how to show it. uid: only this user's; None for all."""

    uid: int | None
    interval_s: float
    duration_s: float | None
    is_json: bool
    gate: Gate
    page: PageOptions


def watch_all(request: Request) -> int:
    """Watch until Ctrl-C or the end of the duration; the exit code: 1 if a training leaks."""
    lazy_imports.import_numpy()
    with ExitStack() as stack:
        machine = MachineMemory(interval_s=request.interval_s)
        machine.start()
        stack.callback(machine.close)
        watched = _Machine(request, machine)
        stack.callback(watched.close)
        with _ended_by_signals():
            _follow(watched, request)
        overview = watched.overview()
    if request.is_json:
        print(json.dumps(plain(overview)))
    else:
        show(lambda w, a: trainings_table.table(overview, Screen(width=w, ascii_only=a)))
    leaks = any(one.verdict is Verdict.LEAK for one in overview.trainings)
    return Exit.LEAK if leaks and Verdict.LEAK in request.gate.failing else Exit.NO_LEAK


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _follow(watched: _Machine, request: Request) -> None:
    with _display(watched, request) as refresh:
        until_s = None if request.duration_s is None else time.monotonic() + request.duration_s
        next_s = time.monotonic()
        while until_s is None or next_s < until_s:
            watched.tick()
            refresh()
            next_s = max(next_s + request.interval_s, time.monotonic())
            time.sleep(max(0.0, min(next_s, until_s or next_s) - time.monotonic()))


@contextmanager
def _display(watched: _Machine, request: Request) -> Iterator[Any]:
    """What shows the table on a terminal meanwhile."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    if request.is_json or not console.is_terminal or request.page.quiet:
        yield lambda: None
        return

    def draw() -> Any:
        screen = Screen(
            width=request.page.width or console.width, ascii_only=request.page.ascii_only
        )
        return trainings_table.table(watched.overview(), screen)

    with Live(draw(), console=console, screen=True, auto_refresh=False) as live:
        yield lambda: live.update(draw(), refresh=True)


@dataclass(slots=True)
class _Watched:
    """A training while it is watched."""

    training: Training
    session: Session
    live: LiveVerdict
    limits: LimitWatch
    share: TreeShare
    began_s: float
    stack: ExitStack
    latest: Sample | None = None
    peak_bytes: int = 0
    processes: int = 0
    has_ended: bool = False
    failure: str = ""

    def tick(self, now_s: float) -> None:
        """Take a sample; notices the end."""
        samples = self.session.tick(now_s)
        if not self.session.pids():
            self.has_ended = True
            self.stack.close()
            return
        for sample in samples:
            self.live.add(sample)
            if sample.process == TREE_LABEL:
                self.latest = sample
                self.peak_bytes = max(self.peak_bytes, int(sample.readings.get("rss_bytes", 0)))


@dataclass(slots=True)
class _Pool:
    """The memory of the host or a GPU, judged as a whole."""

    live: LiveVerdict
    model: str = ""
    used_bytes: int | None = None
    total_bytes: int | None = None


@dataclass(slots=True)
class _Machine:
    """All of it."""

    request: Request
    machine: MachineMemory
    began_s: float = field(default_factory=time.monotonic)
    searched_s: float = float("-inf")
    watched: dict[tuple[int, float], _Watched] = field(default_factory=dict)
    ended: list[TrainingState] = field(default_factory=list)
    pools: dict[str, _Pool] = field(default_factory=dict)
    finder: Finder = field(init=False)

    def __post_init__(self) -> None:
        self.finder = Finder(uid=self.request.uid)

    def tick(self) -> None:
        """Look for trainings if that is due, and take a sample of each, and of the memory."""
        now_s = time.monotonic()
        if now_s - self.searched_s >= _SEARCH_S:
            self.searched_s = now_s
            for training in self.finder.find(self.machine.pids()):
                identity = (training.program.pid, training.began_s)
                if identity not in self.watched and len(self.watched) < _MOST:
                    self._begin(identity, training)
        for identity, one in tuple(self.watched.items()):
            try:
                one.tick(now_s)
            except Exception as error:  # the others continue
                say(f"process {one.training.program.pid} is not watched: {in_words(error)}")
                one.has_ended = True
                one.stack.close()
            if one.has_ended:
                del self.watched[identity]
                self.ended = [*self.ended, self._state(one, now_s)][-_MOST:]
        self._pool("host RAM", "", *host_memory(), now_s)
        reading = self.machine.latest()
        for usage in () if reading is None else reading.usages:
            total = usage.device.total_bytes
            if not isinstance(usage.used_bytes, Unavailable) and not isinstance(total, Unavailable):
                self._pool(usage.device.label, usage.device.name, usage.used_bytes, total, now_s)

    def close(self) -> None:
        """Release what is read from."""
        for one in self.watched.values():
            one.stack.close()

    def overview(self) -> Overview:
        """What is known now."""
        now_s = time.monotonic()
        running = [self._state(one, now_s) for one in self.watched.values()]
        return Overview(
            schema_version=1,
            at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            host=platform.node(),
            watched_s=round(now_s - self.began_s, 3),
            trainings=tuple(sorted([*running, *self.ended], key=_place)),
            memory=tuple(self._memory(name, pool) for name, pool in self.pools.items()),
        )

    def _begin(self, identity: tuple[int, float], training: Training) -> None:
        from memdiag.analysis.live.sequential import LiveVerdict

        pid, began_s = training.program.pid, time.monotonic()
        stack = ExitStack()
        table = this_table()
        stack.callback(table.close)
        directory, channel = find_channel(pid), None
        if directory is not None:
            channel = ChannelReader(directory, owners=owners_of(pid))
            stack.callback(channel.close)
        limits, share = LimitWatch(pid), TreeShare(self.machine)
        self.watched[identity] = _Watched(
            training=training,
            session=Session(
                tree=ProcessTree(table, root=pid),
                root=pid,
                began_at_s=began_s,
                sources=(limits, share),
                channel=channel,
                whole_channel=False,
            ),
            live=LiveVerdict(limits=lambda: self._limits(limits, share)),
            limits=limits,
            share=share,
            began_s=began_s,
            stack=stack,
        )

    def _limits(self, limits: LimitWatch, share: TreeShare) -> tuple[Limit, ...]:
        """Of the host, and of the GPU if it uses one: what others leave of it."""
        found = [*self.request.gate.limits(), *limits.limits()]
        if len(share.by_gpu) == 1:
            ((label, own_bytes),) = share.by_gpu.items()
            pool = self.pools.get(label)
            if pool is not None and pool.total_bytes is not None and pool.used_bytes is not None:
                size = max(0, pool.total_bytes - pool.used_bytes + own_bytes)
                found.append(Limit(name=label, value_bytes=size, roles=ON_DEVICE))
        return tuple(found)

    def _pool(self, name: str, model: str, used_bytes: int, total_bytes: int, now_s: float) -> None:
        from memdiag.analysis.live.sequential import LiveVerdict

        is_host = name == "host RAM"
        pool = self.pools.get(name)
        if pool is None:
            limit = Limit(
                name=name,
                value_bytes=total_bytes,
                roles=_ON_HOST if is_host else ON_DEVICE,
            )
            pool = self.pools[name] = _Pool(live=LiveVerdict(limits=lambda: (limit,)), model=model)
        pool.used_bytes, pool.total_bytes = used_bytes, total_bytes
        metric = "rss_bytes" if is_host else "vram_bytes"
        at_s = now_s - self.began_s
        pool.live.add(Sample(at_s, 0, TREE_LABEL, {metric: used_bytes}))

    def _state(self, one: _Watched, now_s: float) -> TrainingState:
        found = one.live.finding()
        ahead = one.live.limit_ahead
        readings = one.latest.readings if one.latest is not None else {}
        at_s = now_s - one.began_s
        rss, vram = readings.get("rss_bytes"), readings.get("vram_bytes")
        per_s, per_step = _growth(found)
        return TrainingState(
            pid=one.training.program.pid,
            user=one.training.user,
            command=one.training.program.command,
            processes=int(readings.get("processes", 0)),
            verdict=Verdict.INCONCLUSIVE if found is None else found.verdict,
            confidence=None if found is None else found.confidence,
            metric="" if found is None else found.metric,
            growth_bytes_per_s=per_s,
            growth_bytes_per_step=per_step,
            step=None if one.latest is None else one.latest.step,
            rss_bytes=None if rss is None else int(rss),
            peak_rss_bytes=one.peak_bytes,
            vram_bytes=None if vram is None else int(vram),
            gpus=tuple(Share(gpu=gpu, used_bytes=size) for gpu, size in one.share.by_gpu.items()),
            limit="" if ahead is None else ahead.limit,
            full_in_s=None if ahead is None else max(0.0, ahead.at_s - at_s),
            watched_s=round(at_s, 3),
            has_ended=one.has_ended,
        )

    def _memory(self, name: str, pool: _Pool) -> MemoryState:
        found, ahead = pool.live.finding(), pool.live.limit_ahead
        at_s = time.monotonic() - self.began_s
        return MemoryState(
            name=name,
            model=pool.model,
            used_bytes=pool.used_bytes,
            total_bytes=pool.total_bytes,
            verdict=Verdict.INCONCLUSIVE if found is None else found.verdict,
            growth_bytes_per_s=_growth(found)[0],
            full_in_s=None if ahead is None else max(0.0, ahead.at_s - at_s),
        )


def _growth(found: Finding | None) -> tuple[float | None, float | None]:
    """Bytes per second and per step, None if unknown, or if the finding is not about bytes."""
    if found is None or found.unit is not Unit.BYTES or found.growth_per_x is None:
        return None, None
    if found.axis.kind is AxisKind.SECONDS:
        return found.growth_per_x.value, None
    per_step = found.growth_per_x.value if found.axis.kind is AxisKind.STEP else None
    return None if found.growth_per_s is None else found.growth_per_s.value, per_step


def _place(one: TrainingState) -> tuple[bool, int, float]:
    """Running ones first, then by verdict and size."""
    return one.has_ended, _ORDER.index(one.verdict), -float(one.rss_bytes or 0)
