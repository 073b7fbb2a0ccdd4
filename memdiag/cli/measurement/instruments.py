"""What reads for one measurement: processes, memory details, GPUs, limits, the channel."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from memdiag import __version__
from memdiag.capture.diagnosis.exit_cause import Held, Kernel, explained
from memdiag.capture.gpu.source import GpuSource
from memdiag.capture.probelink import channel
from memdiag.capture.probelink.uninstrumented import UninstrumentedProcesses
from memdiag.capture.process.cgroup import oom_counters
from memdiag.capture.process.cgroup_charge import GroupCharge
from memdiag.capture.process.clock import Budget, MonotonicClock
from memdiag.capture.process.memory_details import DetailSource
from memdiag.capture.process.memory_limits import LimitWatch
from memdiag.capture.process.sampler import Background
from memdiag.capture.process.tree import ProcessTree
from memdiag.capture.session import Session
from memdiag.cli.measurement.subject import Access
from memdiag.cli.options.recording_options import RecordingOptions
from memdiag.values.measurements import Ending, Limit, Missing

# The details are due at most this often: they change no faster than RSS. Heuristic.
_DETAIL_EVERY_S = 1.0
# Larger jobs are listed in part. Heuristic.
_MOST_PROCESSES = 1000


class Instruments:
    """All readers. Make them before the target starts, so that the GPUs' baseline is known."""

    def __init__(self, options: RecordingOptions, access: Access, stack: ExitStack) -> None:
        """stack: closes them."""
        self._options = options
        self._access = access
        rest_s = max(options.interval_s, _DETAIL_EVERY_S)
        # The source has a budget of its own.
        budget = Budget(clock=MonotonicClock(), share=1.0, at_least_s=rest_s)
        details = DetailSource(access.table)
        self._details = Background(details, budget=budget, name="memdiag-smaps_rollup")
        self._gpu = GpuSource(interval_s=options.interval_s, environ=access.environ)
        self._channel: channel.ChannelReader | None = None
        stack.callback(access.table.close)
        if access.directory is not None:
            self._channel = channel.ChannelReader(access.directory, owners=access.owners)
            stack.callback(self._channel.close)
        stack.callback(self._gpu.close)
        stack.callback(self._details.stop)
        self._gpu.start()
        self._limits: LimitWatch | None = None

    def session(self, root: int, *, began_s: float) -> Session:
        """What samples process `root` and its descendants from now on."""
        access = self._access
        limits = self._limits = LimitWatch(root)
        charge = GroupCharge(lambda: limits.group, helpers=access.strangers)
        uninstrumented = None
        # That there is nowhere to write was reported already.
        if sys.platform.startswith("linux") and not (access.is_ours and access.directory is None):
            uninstrumented = UninstrumentedProcesses(root, access.directory)
        tree = ProcessTree(
            access.table, root=root, adopter=access.adopter, strangers=access.strangers
        )
        return Session(
            tree=tree,
            root=root,
            began_at_s=began_s,
            sources=(self._details, self._gpu, limits, charge),
            channel=self._channel,
            whole_channel=access.is_ours,
            uninstrumented=uninstrumented,
            log=access.log,
        )

    def missing(self) -> tuple[Missing, ...]:
        """Metrics that could not be read at all, and why."""
        return self._gpu.missing()

    def limits(self) -> tuple[Limit, ...]:
        """The limits that apply to the target."""
        host = self._limits.limits() if self._limits is not None else ()
        gpus = self._gpu.limits()
        columns = [limit.metric for limit in gpus if limit.metric]
        return (*self._options.gate.limits(columns), *gpus, *host)

    def explained(self, ending: Ending, session: Session, last: Mapping[str, float]) -> Ending:
        """How the target ended, with memory's part in it. last: the tree's last readings."""
        if self._limits is None:
            return ending
        group = self._limits.group
        gpus = self._gpu.limits()
        return explained(
            ending,
            kernel=Kernel(before=self._limits.oom_before, after=oom_counters(group), group=group),
            report=session.oom_report(time.monotonic()),
            held=Held(
                host_bytes=_whole(last.get("rss_bytes")),
                device_bytes=_whole(last.get("vram_bytes")),
                device_limit_bytes=gpus[0].value_bytes if len(gpus) == 1 else None,
            ),
        )

    def notes(self) -> tuple[str, ...]:
        """What went wrong with reading, one sentence each."""
        log = self._access.log
        notes = [*self._gpu.notes(), *(log.notes() if log is not None else ())]
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
        """The processes that are part of the job, as their probes report them."""
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

    def about(self) -> dict[str, Any]:
        """The circumstances of the recording."""
        return {
            "command": list(self._access.command),
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
    """Where memdiag runs; "" if that directory was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
