"""What reads for one measurement, put together: processes, the slow lane, GPUs, the channel."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from memdiag import __version__
from memdiag.capture.diagnosis.exit_cause import Held, Kernel, explained
from memdiag.capture.gpu.source import GpuSource
from memdiag.capture.logtags.tagger import LogTags
from memdiag.capture.probelink import channel
from memdiag.capture.probelink.uninstrumented import UninstrumentedProcesses
from memdiag.capture.process.attach import Table
from memdiag.capture.process.cgroup import oom_counters
from memdiag.capture.process.clock import Budget, MonotonicClock
from memdiag.capture.process.memory_limits import LimitWatch
from memdiag.capture.process.sampler import Background
from memdiag.capture.process.tree import DetailSource, ProcessTree
from memdiag.capture.session import Session
from memdiag.cli.options.recording_options import Options, limits_on
from memdiag.values.measurements import Ending, Limit, Missing

# The share of the time that may be spent in smaps_rollup, which holds the lock of the target's
# address space while it is read (11-16 ms per GiB, measured), and how often at most: USS moves no
# faster than RSS. Chosen so that with the fast lane (0.5 % for 10 processes at 10 Hz) and NVML it
# stays well under 1 % of a core (benchmarks/gpu_sampling).
_DETAIL_SHARE, _DETAIL_EVERY_S = 0.0008, 1.0
# A job of more is told in part. Chosen.
_MOST_PROCESSES = 1000


class Apparatus:
    """All readers. Enter it before the target starts, so that the GPUs' baseline is known."""

    def __init__(
        self,
        options: Options,
        *,
        table: Table,
        environ: Mapping[str, str],
        directory: Path | None,
        owners: Collection[int] | None = None,
        log: LogTags | None = None,
    ) -> None:
        """table: closed with the rest. environ: the target's. directory: its channel, None where
        it has none. owners: the users whose rings in it count, None for our own alone.
        log: where tags are looked for, None for nowhere.
        """
        self._log = log
        self._options = options
        self.table = table
        self._directory = directory
        clock = MonotonicClock()
        rest_s = max(options.interval_s, _DETAIL_EVERY_S)
        budget = Budget(clock=clock, share=_DETAIL_SHARE, at_least_s=rest_s)
        self._details = Background(
            DetailSource(self.table), budget=budget, name="memdiag-smaps_rollup"
        )
        self._gpu = GpuSource(interval_s=options.interval_s, environ=environ)
        self._channel: channel.ChannelReader | None = None
        if directory is not None:
            self._channel = channel.ChannelReader(directory, owners=owners)
        self._limits: LimitWatch | None = None
        self._session: Session | None = None

    def __enter__(self) -> Apparatus:
        self._gpu.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._details.stop()
        self._gpu.close()
        if self._channel is not None:
            self._channel.close()
        self.table.close()

    def session(
        self,
        root: int,
        *,
        began_s: float,
        adopter: int | None = None,
        strangers: frozenset[int] = frozenset(),
        whole_channel: bool,
    ) -> Session:
        """The session that samples `root` and its descendants (see ProcessTree, Session)."""
        self._limits = LimitWatch(root)
        self._session = Session(
            tree=ProcessTree(self.table, root=root, adopter=adopter, strangers=strangers),
            root=root,
            began_at_s=began_s,
            sources=(self._details, self._gpu, self._limits),
            channel=self._channel,
            whole_channel=whole_channel,
            uninstrumented=self._outsiders(root, is_ours=whole_channel),
            log=self._log,
        )
        return self._session

    def _outsiders(self, root: int, *, is_ours: bool) -> UninstrumentedProcesses | None:
        """Who finds out why the probe is not in a process; is_ours: memdiag starts the target."""
        nowhere_to_write = is_ours and self._directory is None  # that was said before
        if nowhere_to_write or not sys.platform.startswith("linux"):
            return None
        return UninstrumentedProcesses(root, self._directory)

    def missing(self) -> tuple[Missing, ...]:
        """Metrics that could not be read at all, and why."""
        return self._gpu.missing()

    def limits(self) -> tuple[Limit, ...]:
        """The ceilings that apply to the target."""
        host = self._limits.limits() if self._limits is not None else ()
        gpus = self._gpu.limits()
        columns = [limit.metric for limit in gpus if limit.metric]
        users = limits_on(self._options.gate, columns) if columns else self._options.limits
        return (*users, *gpus, *host)

    def explained(self, ending: Ending | None, *, last: Mapping[str, float]) -> Ending | None:
        """How the target ended, with memory's part in it. last: the tree's last readings."""
        if ending is None or self._limits is None or self._session is None:
            return ending
        group = self._limits.group
        gpus = self._gpu.limits()
        return explained(
            ending,
            kernel=Kernel(before=self._limits.oom_before, after=oom_counters(group), group=group),
            report=self._session.oom_report(time.monotonic()),
            held=Held(
                host_bytes=_whole(last.get("rss_bytes")),
                device_bytes=_whole(last.get("vram_bytes")),
                device_limit_bytes=gpus[0].value_bytes if len(gpus) == 1 else None,
            ),
        )

    def notes(self) -> tuple[str, ...]:
        """What went wrong with reading, one sentence each."""
        notes = [*self._gpu.notes(), *(self._log.notes() if self._log is not None else ())]
        if self._details.failure:
            notes.append(self._details.failure)
        if self._channel is not None and self._channel.lost:
            notes.append(
                f"{self._channel.lost} events of the target came faster than they could be read "
                "and were lost"
            )
        if self._channel is not None and self._channel.damaged:
            notes.append(
                f"{len(self._channel.damaged)} files of the probe are damaged: their readings are "
                "missing"
            )
        return tuple(notes)

    def processes(self) -> list[dict[str, Any]]:
        """The processes that have a part in the job, as their probes tell it."""
        probed = self._channel.processes() if self._channel is not None else ()
        return [
            {
                "pid": one.process.pid,
                "label": one.label,
                "rank": one.rank,
                "local_rank": one.local_rank,
                "world_size": one.world_size,
                "role": one.role,
            }
            for one in probed[:_MOST_PROCESSES]
            if one.label
        ]

    def about(self, command: Sequence[str]) -> dict[str, Any]:
        """What a reader of the recording may want to know of its circumstances."""
        return {
            "command": list(command),
            "started_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "host": platform.node(),
            "system": f"{platform.system()} {platform.release()}",
            "memdiag": __version__,
            "python": platform.python_version(),
            "interval_s": self._options.interval_s,
            "directory": _working_directory(),
            "memdiag_arguments": sys.argv[1:],
            "gpu": self._gpu.about(),
        }


def _working_directory() -> str:
    """Where memdiag runs; "" where that directory was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
