"""A measurement while it goes on: the loop that `run` and `watch` share.

Nothing that fails in here may reach the target. A full disk or a bug of ours ends the recording,
is kept as `failure`, and the loop goes on waiting as if it measured.
"""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from memdiag.capture.launch.signals import Letter, Mailbox
from memdiag.capture.process.clock import MonotonicClock
from memdiag.capture.process.sampler import Ticker
from memdiag.capture.session import TREE_LABEL, Session
from memdiag.cli.measurement.threshold_alarms import Alarms
from memdiag.cli.options.recording_options import Options
from memdiag.cli.output.conclude import say
from memdiag.errors import MemdiagError
from memdiag.report.formats.status_line import LastRow, Status
from memdiag.report.sections import threshold_events
from memdiag.report.text import rates
from memdiag.report.text.screen import Screen
from memdiag.values.findings import Finding
from memdiag.values.measurements import Ending, Limit, Mark, Missing, Sample, Unit
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from memdiag.analysis.live.sequential import LiveVerdict

_FLUSH_S = 1.0  # at most this much is lost to a power cut
_EARLY_S = 0.005  # at most so often between two ticks
_STATUS_S = 0.5  # a line that is calm to look at


class Writer(Protocol):
    """Where samples are kept (`memdiag.recording.native.writer`).

    trouble: what kept it from writing, "" if nothing did.
    """

    trouble: str

    def add(self, samples: Sequence[Sample]) -> None:
        """Keep these."""

    def mark(self, mark: Mark) -> None:
        """Note that a threshold was passed."""

    def flush(self) -> None:
        """Hand everything to the operating system."""

    def close(
        self,
        *,
        ending: Ending | None,
        missing: Sequence[Missing],
        limits: Sequence[Limit],
        notes: Sequence[str],
        processes: Sequence[dict[str, Any]],
        cost: dict[str, Any],
    ) -> None:
        """Finish the recording."""


class FinalRules(Protocol):
    """The rules of the report, while it runs."""

    def agree(self, elapsed_s: float, flush: Callable[[], None]) -> bool:
        """Return True once they find a leak in what was recorded so far."""


class Subject(Protocol):
    """What is being measured: the started command, or an adopted process."""

    def handle(self, letters: Sequence[Letter], pids: Collection[int]) -> Sequence[str]:
        """Act on signals that came in, and look how the target is; what to tell the person."""

    def over(self) -> bool:
        """There is nothing more to wait for."""

    def pause_wanted(self) -> bool:
        """The terminal has stopped the target: memdiag has to stop with it."""

    def pause(self) -> None:
        """Stop until continued."""

    def end(self, why: str, pids: Collection[int]) -> None:
        """memdiag has what it was asked for. Called again and again until `over`."""


class Measurement:
    """Takes a tick at a time into the recording, the live verdict and the status line.

    failure: why the recording ends early, "" while all is well.
    """

    def __init__(
        self,
        *,
        session: Session,
        open_writer: Callable[[], Writer],
        row: LastRow,
        interval_s: float,
        began_s: float,
        live: LiveVerdict | None = None,
        final_rules: FinalRules | None = None,
        alarms: Alarms | None = None,
    ) -> None:
        self._session = session
        self._open_writer = open_writer
        self._writer: Writer | None = None
        self._row = row
        self._live = live
        self._final_rules = final_rules
        self._alarms = alarms
        self._live_failure = ""
        self._clock = MonotonicClock()
        self._ticker = Ticker(clock=self._clock, interval_s=interval_s)
        self._began_s = began_s
        self._cpu_began_s = time.process_time()
        self._flush_at_s = self._status_at_s = began_s
        self._early_s = began_s
        self._paused_s = 0.0
        self._latest: Sample | None = None
        self._last: dict[str, float] = {}
        self.failure = ""

    @property
    def pids(self) -> frozenset[int]:
        """Pids of the processes alive at the last tick; none once measuring has failed."""
        return self._session.pids() if not self.failure else frozenset()

    @property
    def last_readings(self) -> dict[str, float]:
        """The latest reading of each metric of the tree, of when it was last seen."""
        return self._last

    def remaining_s(self) -> float:
        """Seconds until the next tick."""
        return self._ticker.remaining_s()

    def elapsed_s(self) -> float:
        """Seconds since the recording began."""
        return self._clock.now_s() - self._began_s

    def tick(self) -> None:
        """Take a sample, if one is due, or a log has told of a new phase."""
        if self._ticker.take() or (self._clock.now_s() >= self._early_s and self._stirred()):
            self._early_s = self._clock.now_s() + _EARLY_S
            self.look()

    def look(self) -> None:
        """Take a sample now."""
        if not self.failure:
            self._guarded(self._sample)

    def finding(self) -> Finding | None:
        """The live finding; None while there is nothing to report, or nobody wants it."""
        try:
            return None if self._live is None else self._live.finding()
        except Exception as error:  # the recording does not depend on it
            self._give_up_live(error)
            return None

    def leaks(self) -> bool:
        """Return True once the live verdict is LEAK, and the final rules agree."""
        found = self.finding()
        if found is None or found.verdict is not Verdict.LEAK or self._writer is None:
            return False
        rules, flush = self._final_rules, self._writer.flush
        return rules is None or rules.agree(self.elapsed_s(), lambda: self._guarded(flush))

    def pause(self, stop: Callable[[], None]) -> None:
        """Give the terminal back, call `stop` (which returns when continued), and take it again."""
        self._row.release()
        if self._writer is not None:
            self._guarded(self._writer.flush)
        began_s = self._clock.now_s()
        stop()
        self._paused_s += self._clock.now_s() - began_s
        self._ticker.restart()
        self._row.reserve()

    def close(
        self,
        ending: Ending | None,
        *,
        missing: Sequence[Missing] = (),
        limits: Sequence[Limit] = (),
        notes: Sequence[str] = (),
        processes: Sequence[dict[str, Any]] = (),
    ) -> None:
        """Finish the recording and give the terminal back."""
        self._row.release()
        writer = self._writer
        if writer is None:
            return
        self._guarded(
            lambda: writer.close(
                ending=ending,
                missing=tuple(dict.fromkeys((*self._session.missing(), *missing))),
                limits=limits,
                notes=(*notes, *self._notes()),
                processes=processes,
                cost=self.cost(),
            )
        )
        self.failure = self.failure or writer.trouble

    def cost(self) -> dict[str, float]:
        """What measuring took: CPU seconds of memdiag, wall seconds, ticks taken and missed."""
        return {
            "cpu_s": round(time.process_time() - self._cpu_began_s, 3),
            "wall_s": round(self.elapsed_s() - self._paused_s, 3),
            "paused_s": round(self._paused_s, 3),
            "ticks": self._ticker.ticks,
            "missed_ticks": self._ticker.missed,
        }

    def _stirred(self) -> bool:
        try:
            return not self.failure and self._session.has_log_events()
        except Exception as error:  # whatever it is, the target goes on
            self.failure = self.failure or in_words(error)
            return False

    def _sample(self) -> None:
        now_s = self._clock.now_s()
        samples = self._session.tick(now_s)  # first of all: a target may be gone at once
        if self._writer is None:
            self._writer = self._open_writer()
        self._writer.add(samples)
        self._latest = next((s for s in samples if s.process == TREE_LABEL), self._latest)
        self._last.update(self._latest.readings if self._latest is not None else {})
        self._raise_alarms(self._writer, samples)
        self._follow_live(samples)
        if now_s >= self._flush_at_s:
            self._flush_at_s = now_s + _FLUSH_S
            self._writer.flush()
        if now_s >= self._status_at_s:
            self._status_at_s = now_s + _STATUS_S
            self._row.show(self._status)

    def _raise_alarms(self, writer: Writer, samples: Sequence[Sample]) -> None:
        for mark in self._alarms.see(samples) if self._alarms is not None else ():
            writer.mark(mark)
            with contextlib.suppress(OSError):  # stderr may be gone
                say(threshold_events.live(mark, Screen(width=80)))

    def _follow_live(self, samples: Sequence[Sample]) -> None:
        if self._live is None:
            return
        try:
            for sample in samples:
                self._live.add(sample)
        except Exception as error:  # the recording does not depend on it
            self._give_up_live(error)

    def _give_up_live(self, error: Exception) -> None:
        self._live = None
        self._live_failure = in_words(error)

    def _notes(self) -> tuple[str, ...]:
        live = f"the live verdict failed: {self._live_failure}"
        return (*self._session.notes(), *((live,) if self._live_failure else ()))

    def _status(self) -> Status:
        step, phase = self._session.where()
        readings = self._latest.readings if self._latest is not None else {}
        memory = readings.get("rss_bytes")
        found = self.finding()
        return Status(
            elapsed_s=self.elapsed_s(),
            memory_bytes=None if memory is None else int(memory),
            processes=int(readings.get("processes", 0)),
            step=step,
            phase=phase,
            leaning="" if found is None else found.verdict.value,
            growth="" if found is None else _growth(found),
        )

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # whatever it is, the target goes on
            self.failure = self.failure or in_words(error)


def measure(
    subject: Subject,
    measurement: Measurement,
    mailbox: Mailbox,
    options: Options,
    *,
    say: Callable[[str], None],
    finish: Callable[[], None],
) -> None:
    """Follow `subject` until it is over, or until `options` end it.

    finish: sees off what was sent at the very end, before the last look at it.
    """
    why = ""
    measurement.tick()
    while not subject.over():
        letters = mailbox.wait(measurement.remaining_s())
        for message in subject.handle(letters, measurement.pids):
            say(message)
        if subject.pause_wanted():
            measurement.pause(subject.pause)
        measurement.tick()
        why = why or _reason_to_end(measurement, options)
        if why:
            subject.end(why, measurement.pids)
    finish()
    measurement.look()  # what the probe has sent since the last tick


def _reason_to_end(measurement: Measurement, options: Options) -> str:
    duration_s = options.duration_s
    if duration_s is not None and measurement.elapsed_s() >= duration_s:
        return f"ended by memdiag after --duration {duration_s:g} s"
    if options.stop_on_leak and measurement.leaks():
        return "ended by memdiag because of --stop-on leak"
    return ""


def in_words(error: Exception) -> str:
    """What went wrong, in one line that is safe to print."""
    if isinstance(error, MemdiagError):
        return printable(error.message)
    if isinstance(error, OSError) and error.strerror:
        name = f" ({printable(str(error.filename))})" if error.filename else ""
        return f"{error.strerror}{name}"
    if isinstance(error, MemoryError):
        return "no memory is left for memdiag"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "no more threads may be started (ulimit -u, or the pids limit of the container)"
    where = traceback.extract_tb(error.__traceback__)[-1]
    told = printable(f"{type(error).__name__} in {where.name}:{where.lineno}: {error}")
    return f"{told} (a bug in memdiag)"


def _growth(found: Finding) -> str:
    if found.growth_per_x is None:
        return ""
    brief = rates.rate(found.growth_per_x, found.axis, found.unit).brief()
    return brief if found.unit is Unit.BYTES else f"{brief} ({found.metric})"
