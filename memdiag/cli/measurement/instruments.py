"""What reads for one measurement: processes, memory details, GPUs, limits, the channel."""

from __future__ import annotations

import contextlib
import platform
import sys
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

from memdiag import __version__
from memdiag.capture.diagnosis.exit_cause import Held, Kernel, explained
from memdiag.capture.gpu.source import GpuSource
from memdiag.capture.launch.run_labels import run_labels
from memdiag.capture.probelink import channel
from memdiag.capture.probelink.uninstrumented import UninstrumentedProcesses
from memdiag.capture.probelink.without_source import without_source
from memdiag.capture.process.cgroup import oom_counters
from memdiag.capture.process.cgroup_charge import GroupCharge
from memdiag.capture.process.clock import Budget, MonotonicClock
from memdiag.capture.process.memory_details import DetailSource
from memdiag.capture.process.memory_limits import LONGEST_PAUSE_S, LimitWatch
from memdiag.capture.process.sampler import Background
from memdiag.capture.process.tree import ProcessId, ProcessTree
from memdiag.capture.session import Session
from memdiag.cli.measurement.subject import Access
from memdiag.cli.options.actions import without_secrets
from memdiag.cli.options.recording_options import Explain, RecordingOptions
from memdiag.probe.ring_format import WALK_OFTEN
from memdiag.values.holders import ProbeFindings
from memdiag.values.measurements import Ending, Limit, Missing

# The details are due at most this often: 40 readings in the first minute. Heuristic.
_DETAIL_EVERY_S = 1.5
# Larger jobs are listed in part. Heuristic.
_MOST_PROCESSES = 1000
_WITHOUT_PROBE = {"rank": None, "local_rank": None, "world_size": None, "role": ""}
# The wait for the last census of a watched process: the probe looks for requests every second.
_LAST_CENSUS_S = 4.0


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
        limits = self._limits = LimitWatch(root, longest_pause_s=self._limits_pause_s())
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

    def _limits_pause_s(self) -> float:
        """The longest time between two reads of the limits: shorter if a threshold depends on them.

        A limit of address space, as resident memory, moves with each reservation of the target.
        """
        depends = any(one.size_bytes is None for one in self._options.gate.thresholds)
        return 0.0 if depends else LONGEST_PAUSE_S

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

    def processes(self, session: Session) -> list[dict[str, Any]]:
        """The processes, those with a probe first, and what the probe reports of them."""
        probed = self._channel.processes() if self._channel is not None else ()
        found: dict[ProcessId, dict[str, Any]] = {
            one.process: {
                "label": one.label,
                "rank": one.rank,
                "local_rank": one.local_rank,
                "world_size": one.world_size,
                "role": one.role,
                **session.work(one),
            }
            for one in probed
        }
        for process, label in session.processes():
            found.setdefault(process.id, dict(_WITHOUT_PROBE))
            found[process.id] |= {"label": label, "parent_pid": process.parent}
        listed = islice(found.items(), _MOST_PROCESSES)
        return [{"pid": identity.pid, **one} for identity, one in listed]

    def probe_findings(self, began_s: float) -> ProbeFindings:
        """What the probe found in the processes. began_s: when the recording began."""
        options, found = self._options, self._channel
        if found is None:
            return ProbeFindings()
        try:
            findings = ProbeFindings(
                holders=() if options.explain is Explain.NEVER else found.holders(began_s),
                censuses=found.censuses(began_s),
                interventions=found.interventions(began_s),
            )
            return without_source(findings) if options.no_source else findings
        except Exception:  # the recording is worth more
            return ProbeFindings()

    def request_census(self, why: str, *, patience_s: float = 0.0) -> None:
        """Ask the processes what is in memory. why, patience_s: as in `ChannelReader`."""
        with contextlib.suppress(Exception):  # the recording is worth more
            if self._channel is not None:
                self._channel.request_census(why, patience_s=patience_s)

    def set_pressure(self, levels: Collection[str]) -> None:
        """Let the processes know the levels that memory is at."""
        with contextlib.suppress(Exception):  # the recording is worth more
            if self._channel is not None:
                self._channel.set_pressure(levels)

    def begin_watch(self) -> None:
        """Ask the processes of a target that memdiag did not start for what the options want."""
        often = [WALK_OFTEN] * (self._options.explain is Explain.ALWAYS)
        words = often + ["request"] * self._options.census
        if words and not self._access.is_ours:
            self.request_census("+".join(words))

    def end_watch(self) -> None:
        """Wait for a last census of such a target."""
        if self._options.census and not self._access.is_ours:
            self.request_census("request", patience_s=_LAST_CENSUS_S)

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
            "memdiag_arguments": without_secrets(sys.argv[1:], self._options.gate.reactions),
            "gpu": self._gpu.about(),
            "labels": run_labels(),
        }


def _working_directory() -> str:
    """Where memdiag runs; "" if that directory was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
