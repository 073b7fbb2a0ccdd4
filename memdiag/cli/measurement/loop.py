"""A running measurement: the loop that `run` and `watch` share.

Nothing that fails in here may reach the target. A full disk or a bug of memdiag ends the recording
and is kept as `failure`; the loop keeps waiting as if it measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from memdiag.capture.launch.signals import Mailbox
from memdiag.capture.process.clock import MonotonicClock
from memdiag.capture.process.sampler import Ticker
from memdiag.capture.session import TREE_LABEL, Session
from memdiag.cli.measurement.display import Display
from memdiag.cli.measurement.guard import Guard
from memdiag.cli.measurement.instruments import Instruments
from memdiag.cli.measurement.live_verdict import ConfirmedVerdict, growth_text, verdict_on
from memdiag.cli.measurement.subject import Running
from memdiag.cli.measurement.threshold_alarms import Alarms
from memdiag.cli.measurement.tracker_feed import TrackerFeed
from memdiag.cli.options.actions import LEVEL_OF, Level
from memdiag.cli.options.recording_options import RecordingOptions
from memdiag.cli.output.messages import in_words, say
from memdiag.report.formats import status_line
from memdiag.report.formats.status_line import Status
from memdiag.screen.messages import Frame, WishKind
from memdiag.values.measurements import Ending, Mark, MarkLevel, Sample
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memdiag.analysis.live.sequential import LiveVerdict
    from memdiag.recording.native.atomic_file import RecordingFiles
    from memdiag.recording.native.writer import Writer
    from memdiag.values.findings import Finding

T = TypeVar("T")

_FLUSH_S = 1.0  # at most this much is lost to a power cut
# The sidecar is written during the run as well, since memdiag may be killed. The least time between
# two writes: in seconds, as a share of the elapsed time, as a multiple of what a write takes.
# Heuristic.
_DESCRIBE_S, _DESCRIBE_PART, _DESCRIBE_TIMES = 5.0, 0.05, 200
_ENDING_S = 1.0  # between two looks at a target that memdiag ends
_EARLY_S = 0.005  # shortest time between two ticks
# The target is ended only once its processes have answered, or after this time: memory is critical
# meanwhile. Heuristic.
_CENSUS_BEFORE_END_S = 0.2


class Measurement:
    """Takes a tick at a time into the recording, the live verdict and to the terminal.

    failure: why the recording ends early, "" if it does not.
    last_readings: the latest reading of each metric of the tree.
    """

    def __init__(
        self,
        *,
        options: RecordingOptions,
        files: RecordingFiles,
        about: dict[str, Any],
        instruments: Instruments,
        session: Session,
        display: Display,
        began_s: float,
        live: LiveVerdict | None,
        guard: Guard,
        feed: TrackerFeed | None = None,
    ) -> None:
        """files, about: see `Writer`, which is opened with the first sample. live: None if nobody
        needs it.
        """
        self._guard = guard
        self._feed = feed
        self._marked: set[tuple[str, str]] = set()
        self._has_leaked = False
        self._options = options
        self._files = files
        self._about = about
        self._instruments = instruments
        self._session = session
        self._writer: Writer | None = None
        self._display = display
        self._ended_by_key = ""
        self._moments: list[str] = []
        judge = partial(verdict_on, files)
        self._live = (
            ConfirmedVerdict(live, judge, flush=self._complete) if live is not None else None
        )
        self._live_failure = ""
        self._alarms = Alarms(options.gate.thresholds, instruments.limits)
        self._clock = MonotonicClock()
        self._ticker = Ticker(clock=self._clock, interval_s=options.interval_s)
        self._began_s = began_s
        self._cpu_began_s = time.process_time()
        self._flush_at_s = self._status_at_s = self._early_s = began_s
        self._describe_at_s = began_s + _DESCRIBE_S
        self._paused_s = 0.0
        self._latest: Sample | None = None
        self.last_readings: dict[str, float] = {}
        self.failure = ""

    @property
    def pids(self) -> frozenset[int]:
        """Pids of the processes alive at the last tick; none once measuring has failed."""
        return self._session.pids() if not self.failure else frozenset()

    @property
    def has_steps(self) -> bool:
        """Return True if the job has reported a step."""
        return self._session.where()[0] is not None

    def remaining_s(self) -> float:
        """Seconds until the next tick."""
        return self._ticker.remaining_s()

    def tick(self) -> None:
        """Take a sample, if one is due or a log has reported a new phase."""
        is_due = self._ticker.take()
        if not is_due and self._clock.now_s() >= self._early_s and not self.failure:
            with self._guarded():
                is_due = self._session.has_log_events()
        if is_due:
            self._early_s = self._clock.now_s() + _EARLY_S
            self.look()

    def look(self) -> None:
        """Take a sample now."""
        if not self.failure:
            with self._guarded():
                self._sample()

    def reason_to_end(self) -> str:
        """Why the options end the measurement now, "" if they do not."""
        duration_s = self._options.duration_s
        if duration_s is not None and self._elapsed_s() >= duration_s:
            return f"ended by memdiag after --duration {duration_s:g} s"
        if self._has_leaked and self._options.stop_on_leak:
            return "ended by memdiag because of --stop-on leak"
        return self._ended_by_key

    def reason_to_stop(self) -> str:
        """Why `--on` ends the target now, "" if it does not."""
        level = self._guard.stops_at
        return "" if level is None else f"ended by memdiag because of --on {level.value}=stop"

    def expect(self) -> None:
        """Act on a leak and on what it will do, if the options ask for that."""
        if not self._options.requires_live_verdict or self.failure:
            return
        found = self._finding()
        if found is None or found.verdict is not Verdict.LEAK:
            return
        with self._guarded():
            if not self._has_leaked:
                self._has_leaked = True
                growth = growth_text(found)
                rate = f", {growth}" if growth else ""
                self._guard.leaks(f"leak: {found.metric} of {found.process}{rate}", self._facts())
            ahead = self._ask_live(lambda live: live.limit_ahead())
            if ahead is not None and self._latest is not None:
                self._crossed(self._alarms.foresee(ahead, self._latest))

    def obey(self) -> None:
        """Do what the user asks for on the screen, which ends with the recording."""
        if self.failure:
            self._display.leave(f"the recording has ended: {self.failure}")
        for wish in self._display.wishes():
            if wish is WishKind.END:
                self._ended_by_key = "ended by memdiag because of q"
            elif wish is WishKind.MARK:
                step, _ = self._session.where()
                at = "" if step is None else f", at step {step:,}"
                self._moments.append(f"marked by the user after {self._elapsed_s():.1f} s{at}")

    def pause(self, target: Running) -> None:
        """Release the terminal, pause as the target does, and take it again; or give way."""
        if self._display.give_way(target):
            return
        self._display.release()
        self._flush()
        began_s = self._clock.now_s()
        target.pause()
        self._paused_s += self._clock.now_s() - began_s
        self._ticker.restart()
        self._display.reserve()

    def close(self, ending: Ending, notes: Sequence[str]) -> None:
        """Finish the recording and release the terminal."""
        self._display.release()
        if self._feed is not None:
            self._feed.take((), self._elapsed_s(), is_last=True)
        notes = (*notes, *self._moments)
        writer = self._writer
        if writer is None:
            return
        if self._live_failure:
            notes = (*notes, f"the live verdict failed: {self._live_failure}")
        with self._guarded():
            writer.close(
                ending=ending,
                missing=tuple(
                    dict.fromkeys((*self._session.missing(), *self._instruments.missing()))
                ),
                limits=self._instruments.limits(),
                notes=(*self._instruments.notes(), *notes, *self._session.notes()),
                processes=self._instruments.processes(self._session),
                found=self._instruments.probe_findings(self._began_s),
                cost=self._cost(),
            )
        self.failure = self.failure or writer.trouble

    def _cost(self) -> dict[str, float]:
        """What measuring took: CPU seconds of memdiag, wall seconds, ticks taken and missed."""
        return {
            "cpu_s": round(time.process_time() - self._cpu_began_s, 3),
            "wall_s": round(self._elapsed_s() - self._paused_s, 3),
            "paused_s": round(self._paused_s, 3),
            "ticks": self._ticker.ticks,
            "missed_ticks": self._ticker.missed,
            **({"screen_cpu_s": round(self._display.cpu_s, 3)} if self._display.cpu_s else {}),
        }

    def _elapsed_s(self) -> float:
        return self._clock.now_s() - self._began_s

    def _sample(self) -> None:
        now_s = self._clock.now_s()
        samples = self._session.tick(now_s)  # first: a target may be gone at once
        writer = self._writer or self._opened()
        writer.add(samples)
        self._latest = next((s for s in samples if s.process == TREE_LABEL), self._latest)
        self.last_readings.update(self._latest.readings if self._latest is not None else {})
        crossed = self._alarms.see(samples)
        levels = {LEVEL_OF[level].value for level in self._alarms.levels}
        self._instruments.set_pressure(levels | {Level.LEAK.value} if self._has_leaked else levels)
        self._crossed(crossed)
        self._ask_live(partial(_feed, samples))
        if now_s >= self._flush_at_s:
            self._flush_at_s = now_s + _FLUSH_S
            writer.flush()
        if now_s >= self._describe_at_s:
            self._complete()
            took_s = self._clock.now_s() - now_s
            apart_s = max(_DESCRIBE_S, _DESCRIBE_PART * self._elapsed_s(), _DESCRIBE_TIMES * took_s)
            self._describe_at_s = now_s + apart_s
        self._display.take(samples)
        if self._feed is not None and self._feed.take(samples, self._elapsed_s()):
            self._judge_for_trackers(self._feed)
        if now_s >= self._status_at_s:
            self._status_at_s = now_s + self._display.every_s(self._elapsed_s())
            self._display.show(self._status, self._frame)

    def _judge_for_trackers(self, feed: TrackerFeed) -> None:
        """Send the verdict so far."""
        found = self._finding()
        ahead = self._ask_live(lambda live: live.limit_ahead()) if found is not None else None
        full_in_s = ahead.at_s - self._elapsed_s() if ahead is not None else None
        feed.judge(found, self._instruments.limits(), full_in_s)

    def _crossed(self, marks: Sequence[Mark]) -> None:
        """Report thresholds that were crossed. The recording has the first crossing of each."""
        for mark in marks:
            self._guard.crossed(mark, self._facts())
            if (mark.threshold, mark.metric) in self._marked or self._writer is None:
                continue
            self._marked.add((mark.threshold, mark.metric))
            self._writer.mark(mark)
            if mark.level is MarkLevel.CRITICAL:
                ends = self._guard.stops_at is not None
                patience_s = _CENSUS_BEFORE_END_S if ends else 0.0
                self._instruments.request_census("critical", patience_s=patience_s)

    def _facts(self) -> dict[str, Any]:
        """What is known beside a crossing: for the commands and webhooks of `--on`."""
        step, phase = self._session.where()
        memory = self.last_readings.get("rss_bytes")
        return {
            "pid": self._about["pid"],
            "recording": str(self._files.written),
            "at_s": round(self._elapsed_s(), 3),
            "step": step,
            "phase": phase,
            "rss_bytes": None if memory is None else int(memory),
        }

    def _opened(self) -> Writer:
        from memdiag.recording.native.writer import Writer

        options = self._options
        self._writer = Writer(
            self._files, about=self._about, interval_s=options.interval_s, full=options.full
        )
        return self._writer

    def _flush(self) -> None:
        if self._writer is not None:
            with self._guarded():
                self._writer.flush()

    def _complete(self) -> None:
        """Write all that the report is made of: also the places that grow, which may be bounded."""
        self._flush()
        if self._writer is None:
            return
        with suppress(Exception):  # the recording is worth more
            self._writer.describe(
                limits=self._instruments.limits(),
                processes=self._instruments.processes(self._session),
                found=self._instruments.probe_findings(self._began_s),
            )

    def _ask_live(self, ask: Callable[[ConfirmedVerdict], T]) -> T | None:
        """The answer of the live verdict; None without one. The recording does not depend on it."""
        try:
            return ask(self._live) if self._live is not None else None
        except Exception as error:
            self._live = None
            self._live_failure = in_words(error)
            return None

    def _finding(self) -> Finding | None:
        """The live finding; None without one, and while nothing is known."""
        return self._ask_live(lambda live: live.finding())

    def _status(self) -> Status:
        step, phase = self._session.where()
        readings = self._latest.readings if self._latest is not None else {}
        memory = readings.get("rss_bytes")
        found = self._finding()
        return Status(
            elapsed_s=self._elapsed_s(),
            memory_bytes=None if memory is None else int(memory),
            processes=int(readings.get("processes", 0)),
            step=step,
            phase=phase,
            trend=status_line.trend(found) if self._live is not None else "",
            limit=self._nearest_limit(found),
        )

    def _nearest_limit(self, found: Finding | None) -> str:
        """The limit that a leak reaches first, for the status line."""
        if found is None or found.verdict is not Verdict.LEAK or self._latest is None:
            return ""
        ahead = self._ask_live(lambda live: live.limit_ahead())
        return (
            "" if ahead is None else status_line.limit(ahead.limit, ahead.at_s - self._latest.at_s)
        )

    def _frame(self) -> Frame:
        return Frame(
            elapsed_s=self._elapsed_s(),
            found=self._finding(),
            series=tuple((self._ask_live(lambda live: live.findings()) or {}).values()),
            limits=self._instruments.limits(),
            cpu_s=time.process_time() - self._cpu_began_s,
            missed_ticks=self._ticker.missed,
        )

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever it is, the target continues
            self.failure = self.failure or in_words(error)


def _feed(samples: Sequence[Sample], live: ConfirmedVerdict) -> None:
    for sample in samples:
        live.add(sample)


def measure(target: Running, measurement: Measurement, mailbox: Mailbox) -> None:
    """Follow `target` until it is over, or until the options end it."""
    why = stop = ""
    measurement.tick()
    while not target.over():
        remaining_s = measurement.remaining_s()
        letters = mailbox.wait(min(remaining_s, _ENDING_S) if why or stop else remaining_s)
        measurement.obey()
        for message in target.handle(letters, measurement.pids):
            say(message)
        if target.pause_wanted():
            measurement.pause(target)
        measurement.tick()
        measurement.expect()
        why = why or measurement.reason_to_end()
        if stop := measurement.reason_to_stop():
            target.stop(stop, measurement.pids)
        elif why:
            target.end(why, measurement.pids)
