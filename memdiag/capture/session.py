"""Merges the readings of the system, the probe and a log into the samples of a recording."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memdiag.capture.diagnosis.oom_reports import OomReport, OomReports
from memdiag.capture.logtags.patterns import TagKind
from memdiag.capture.logtags.tagger import LogEvent, LogTags
from memdiag.capture.probelink.channel import ChannelReader
from memdiag.capture.probelink.probe_notes import Notes
from memdiag.capture.probelink.ring_reader import Event, Kind, Probed
from memdiag.capture.probelink.uninstrumented import UninstrumentedProcesses
from memdiag.capture.process.labels import why_not_measured
from memdiag.capture.process.sampler import Reading, Source, numbers, totals
from memdiag.capture.process.step_and_phase import Origin, Timeline
from memdiag.capture.process.tree import TREE, Process, ProcessId, ProcessTree
from memdiag.capture.tree_members import TreeMembers
from memdiag.values.measurements import Missing, Sample, Unavailable
from memdiag.values.metrics import KEY_COLUMNS, METRIC_ROLES

# A reading at most this long after a line of a log counts as taken at that line. Heuristic.
_BOUNDARY_S = 0.03

TREE_LABEL = "tree"
_OWN_COLUMNS = METRIC_ROLES.keys() | KEY_COLUMNS


class Session:
    """Turns each tick into samples: one for each live process and one for the whole tree.

    Events with readings of their own (a step with its resident bytes, a counter, a tensor count)
    become samples at their own time.
    """

    def __init__(
        self,
        *,
        tree: ProcessTree,
        root: int,
        began_at_s: float,
        sources: Sequence[Source] = (),
        channel: ChannelReader | None = None,
        whole_channel: bool = True,
        uninstrumented: UninstrumentedProcesses | None = None,
        log: LogTags | None = None,
    ) -> None:
        """whole_channel: every process that writes to the channel belongs to the target, even one
        that started and ended between two ticks. uninstrumented: finds out why processes lack the
        probe.
        """
        self._tree = tree
        self._root = root
        self._began_at_s = began_at_s
        self._sources = sources
        self._channel = channel
        self._whole_channel = whole_channel
        self._notes = Notes()
        self._members = TreeMembers(root, uninstrumented=uninstrumented)
        self._log = log
        self._timeline = Timeline(awaits_log_steps=log is not None and log.promises_steps)
        self._boundary: tuple[float, str] | None = None
        self._origins: dict[tuple[ProcessId, bool], Origin] = {}
        self._reasons: dict[tuple[str, str], Unavailable] = {}
        self._oom_reports = OomReports()
        self._work: dict[ProcessId, dict[str, float]] = {}

    def tick(self, now_s: float) -> list[Sample]:
        """The samples of this moment (`now_s` on the clock that the events use), in time order."""
        found = self._tree.read()
        processes = [process for process, _ in found]
        labels = self._channel.labels() if self._channel is not None else {}
        ended = self._members.update(processes, labels, now_s)
        samples = self._events(now_s)
        for process in (*ended, *self._members.take_unseen()):  # after their last events
            self._forget(process)
        measured = self._members.measured
        if len(measured) < len(processes):
            self._note_clients(processes)
        readings = self._read(found, measured)
        at_s = now_s - self._began_at_s
        young = self._members.young(now_s)
        rows = self._rows(at_s, measured, readings, young)
        if processes and not measured:  # a recording without rows would be dropped
            rows = [self._tree_sample(at_s, (), readings, young)]
        phase_before = self._ended_phase(now_s)
        if phase_before is not None:
            samples += [row._replace(phase=phase_before) for row in rows]
        return samples + rows

    def has_log_events(self) -> bool:
        """Return True if a log has had a tag since the last tick."""
        return self._log is not None and self._log.waiting()

    def _ended_phase(self, now_s: float) -> str | None:
        """The phase that a log has just ended: the readings of now are also those of its end."""
        boundary, self._boundary = self._boundary, None
        if boundary is None or now_s - boundary[0] > _BOUNDARY_S:
            return None
        return boundary[1]

    def pids(self) -> frozenset[int]:
        """Pids of the processes alive at the last tick."""
        return self._members.pids

    def where(self) -> tuple[int | None, str]:
        """The step and phase of the job."""
        return self._timeline.where(TREE)

    def oom_report(self, ended_at_s: float) -> OomReport | None:
        """The out-of-memory report of a process that explains an end of the target now."""
        return self._oom_reports.latest(ended_at_s)

    def missing(self) -> tuple[Missing, ...]:
        """The metrics that a process lacked, and why."""
        own = tuple(
            Missing(metric=metric, process=label, why=why)
            for (metric, label), why in self._reasons.items()
        )
        return (*self._without_probe(), *own, *self._notes.missing())

    def notes(self) -> tuple[str, ...]:
        """The notes of the probe, one sentence each."""
        return self._notes.sentences()

    def processes(self) -> list[tuple[Process, str]]:
        """The processes, with those that have ended, and their labels in the recording."""
        return [(process, self._members.label(process)) for process in self._members.all()]

    def work(self, probed: Probed) -> dict[str, float]:
        """Where the program's own work began (after its imports, or else when its probe started)
        and ended, if it has, in seconds since the recording began.
        """
        started = {"work_began_s": probed.created_s - self._began_at_s}
        known = {**started, **self._work.get(probed.process, {})}
        return {edge: round(at_s, 4) for edge, at_s in known.items()}

    def _without_probe(self) -> tuple[Missing, ...]:
        probed = self._channel.processes() if self._channel is not None else ()
        inside = {
            facts.process
            for facts in probed
            if self._whole_channel or self._members.known(facts.process) is not None
        }
        return self._members.without_probe(inside)

    def _forget(self, process: Process) -> None:
        self._timeline.forget(process.id)
        for is_step in (True, False):
            self._origins.pop((process.id, is_step), None)
        self._members.forget(process)

    def _read(
        self,
        found: Sequence[tuple[Process, int | Unavailable]],
        processes: Sequence[Process],
    ) -> dict[ProcessId, dict[str, Reading]]:
        readings: dict[ProcessId, dict[str, Reading]] = {
            process.id: {"rss_bytes": resident} for process, resident in found
        }
        readings[TREE] = {}
        for source in self._sources:
            for identity, values in source.read(processes).items():
                readings.setdefault(identity, {}).update(values)
        return readings

    def _rows(
        self,
        at_s: float,
        processes: Sequence[Process],
        readings: Mapping[ProcessId, dict[str, Reading]],
        young: Collection[ProcessId],
    ) -> list[Sample]:
        rows = []
        for process in processes:
            identity = process.id
            label, is_young = self._members.label(process), identity in young
            plain = self._plain(label, readings[identity], is_young=is_young)
            step, phase = self._timeline.where(identity)
            rows.append(Sample(at_s, identity.pid, label, plain, step, phase, is_young))
        if processes:
            rows.append(self._tree_sample(at_s, processes, readings, young))
        return rows

    def _tree_sample(
        self,
        at_s: float,
        processes: Sequence[Process],
        readings: Mapping[ProcessId, dict[str, Reading]],
        young: Collection[ProcessId],
    ) -> Sample:
        sums = totals(
            [readings[process.id] for process in processes if process.id not in young],
            [readings[process.id] for process in processes if process.id in young],
        )
        sums.update(readings[TREE])
        if processes:
            sums["processes"] = len(processes)
        step, phase = self.where()
        return Sample(
            at_s=at_s,
            pid=self._root,
            process=TREE_LABEL,
            readings=self._plain(TREE_LABEL, sums),
            step=step,
            phase=phase,
        )

    def _note_clients(self, processes: Sequence[Process]) -> None:
        """Remember why the memory of clients is not recorded."""
        for process in processes:
            if (why := why_not_measured(process.name)) is not None:
                self._reasons["rss_bytes", self._members.label(process)] = why

    def _plain(
        self, label: str, readings: dict[str, Reading], *, is_young: bool = False
    ) -> dict[str, int | float]:
        plain = numbers(readings)
        if plain is not readings and not is_young:
            for metric, reading in readings.items():
                if isinstance(reading, Unavailable):
                    self._reasons[metric, label] = reading
        return plain

    def _events(self, now_s: float) -> list[Sample]:
        events: list[Event | LogEvent] = [*(self._channel.drain() if self._channel else ())]
        events += self._log.drain() if self._log is not None else ()
        if not events:
            return []
        samples = []
        for event in sorted(events, key=lambda event: event.at_s):
            if isinstance(event, LogEvent):
                sample = self._take_from_log(event)
            else:
                sample = self._take(event, now_s)
            if sample is not None:
                samples.append(sample)
        return _last_of_each_counter(samples)

    def _take_from_log(self, event: LogEvent) -> Sample | None:
        """Update the step or phase of the job; a sample of the tree if the event has a number."""
        by = self._log.origin if self._log is not None else Origin.NONE
        if event.kind is TagKind.STEP:
            self._timeline.log_step(int(event.value), by)
        elif event.kind is TagKind.PHASE:
            _, before = self.where()
            self._timeline.log_phase(event.name, by)
            if self.where()[1] != before:
                self._boundary = (event.at_s, before)
        elif event.at_s >= self._began_at_s:
            step, phase = self.where()
            return Sample(
                at_s=event.at_s - self._began_at_s,
                pid=self._root,
                process=TREE_LABEL,
                readings={counter_column(event.name): _plain_number(event.value)},
                step=step,
                phase=phase,
            )
        return None

    def _take(self, event: Event, now_s: float) -> Sample | None:
        """Update the step and phase of the process; a sample if the event has readings."""
        process = self._members.known(event.process)
        if process is None and self._whole_channel:
            process = Process(id=event.process, name="python")
            self._members.add_unseen(process)
        if process is None:
            return None
        if (
            event.kind in (Kind.ALLOCATOR, Kind.OUT_OF_MEMORY)
            or "vram_reserved_bytes" in event.readings
        ):
            self._oom_reports.add(event, self._members.label(process))
        before = self._timeline.phase(event.process)
        self._timeline.move(
            event.process,
            step=event.step,
            phase=event.phase,
            step_by=self._origin(event, event.kind is Kind.STEP, is_step=True),
            phase_by=self._origin(event, event.kind is Kind.PHASE_BEGIN, is_step=False),
        )
        if event.kind is Kind.WORK:
            edge = "work_began_s" if event.value else "work_ended_s"
            self._work.setdefault(event.process, {})[edge] = event.at_s - self._began_at_s
        if event.kind is Kind.NOTE:
            self._notes.take(event.name, self._members.label(process))
        readings = _event_readings(event)
        at_s = event.at_s - self._began_at_s
        if not readings or at_s < 0:
            return None
        young = self._members.is_young(process, now_s)
        step, phase = self._timeline.where(event.process)
        return Sample(
            at_s=at_s,
            pid=process.id.pid,
            process=self._members.label(process),
            readings=readings,
            step=step,
            # A reading at the end of a phase belongs to it.
            phase=before if event.kind is Kind.PHASE_END else phase,
            young=young,
        )

    def _origin(self, event: Event, is_tag: bool, *, is_step: bool) -> Origin:
        """The source of a process's steps (or phases): the program, once it has tagged one."""
        key = (event.process, is_step)
        if is_tag and not event.auto:
            self._origins[key] = Origin.PROGRAM
        elif event.loop:
            self._origins.setdefault(key, Origin.LOOP)
        elif is_tag and self._origins.get(key) is Origin.LOOP:
            del self._origins[key]
        return self._origins.get(key, Origin.PROBE)


def _plain_number(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _last_of_each_counter(samples: Sequence[Sample]) -> list[Sample]:
    """Drop samples whose readings are all repeated in the same step: a counter in a tight loop."""
    kept: list[Sample] = []
    later: dict[tuple[int, int | None, str], set[str]] = {}
    for sample in reversed(samples):
        known = later.setdefault((sample.pid, sample.step, sample.phase), set())
        if (
            sample.step is None
            or "rss_bytes" in sample.readings
            or not known >= set(sample.readings)
        ):
            kept.append(sample)
        known.update(sample.readings)
    return kept[::-1]


def _event_readings(event: Event) -> dict[str, int | float]:
    readings: dict[str, int | float] = dict(event.readings)
    if event.kind is Kind.COUNTER and event.value is not None:
        readings[counter_column(event.name)] = event.value
    return readings


def counter_column(name: str) -> str:
    """The column of a user's counter: its name, unless memdiag has a column of that name."""
    column = "".join(c if c.isalnum() or c in "_-./ " else "_" for c in name).strip(" -") or "_"
    return f"counter_{column}" if column.lower() in _OWN_COLUMNS else column
