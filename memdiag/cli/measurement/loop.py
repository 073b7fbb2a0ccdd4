"""A running measurement: the loop that `run` and `watch` share.

Nothing that fails in here may reach the target. A full disk or a bug of memdiag ends the recording
and is kept as `failure`; the loop keeps waiting as if it measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from memdiag.capture.launch.signals import Mailbox
from memdiag.capture.process.clock import MonotonicClock
from memdiag.capture.process.sampler import Ticker
from memdiag.capture.session import TREE_LABEL, Session
from memdiag.cli.measurement.instruments import Instruments
from memdiag.cli.measurement.live_verdict import FinalRules, growth_text
from memdiag.cli.measurement.subject import Running
from memdiag.cli.measurement.threshold_alarms import Alarms
from memdiag.cli.options.recording_options import RecordingOptions
from memdiag.cli.output.messages import in_words, say
from memdiag.report.formats.status_line import LastRow, Status
from memdiag.report.sections import threshold_events
from memdiag.report.text.screen import Screen
from memdiag.values.measurements import Ending, Sample
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memdiag.analysis.live.sequential import LiveVerdict
    from memdiag.recording.native.atomic_file import RecordingFiles
    from memdiag.recording.native.writer import Writer
    from memdiag.values.findings import Finding

T = TypeVar("T")

_FLUSH_S = 1.0  # at most this much is lost to a power cut
_EARLY_S = 0.005  # shortest time between two ticks
_STATUS_S = 0.5  # the status line changes at most this often


class Measurement:
    """Takes a tick at a time into the recording, the live verdict and the status line.

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
        row: LastRow,
        began_s: float,
        live: LiveVerdict | None,
    ) -> None:
        """files, about: see `Writer`, which is opened with the first sample. live: None if nobody
        needs it.
        """
        self._options = options
        self._files = files
        self._about = about
        self._instruments = instruments
        self._session = session
        self._writer: Writer | None = None
        self._row = row
        self._live = live
        self._live_failure = ""
        self._final_rules = FinalRules(files)
        self._alarms = Alarms(options.gate.thresholds, instruments.limits)
        self._clock = MonotonicClock()
        self._ticker = Ticker(clock=self._clock, interval_s=options.interval_s)
        self._began_s = began_s
        self._cpu_began_s = time.process_time()
        self._flush_at_s = self._status_at_s = self._early_s = began_s
        self._paused_s = 0.0
        self._latest: Sample | None = None
        self.last_readings: dict[str, float] = {}
        self.failure = ""

    @property
    def pids(self) -> frozenset[int]:
        """Pids of the processes alive at the last tick; none once measuring has failed."""
        return self._session.pids() if not self.failure else frozenset()

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
        if self._options.stop_on_leak and self._leaks():
            return "ended by memdiag because of --stop-on leak"
        return ""

    def pause(self, stop: Callable[[], None]) -> None:
        """Release the terminal, call `stop` (which returns when continued), and take it again."""
        self._row.release()
        self._flush()
        began_s = self._clock.now_s()
        stop()
        self._paused_s += self._clock.now_s() - began_s
        self._ticker.restart()
        self._row.reserve()

    def close(self, ending: Ending, notes: Sequence[str]) -> None:
        """Finish the recording and release the terminal."""
        self._row.release()
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
                processes=self._instruments.processes(),
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
        for mark in self._alarms.see(samples):
            writer.mark(mark)
            say(threshold_events.live(mark, Screen(width=80)))
        self._ask_live(partial(_feed, samples))
        if now_s >= self._flush_at_s:
            self._flush_at_s = now_s + _FLUSH_S
            writer.flush()
        if now_s >= self._status_at_s:
            self._status_at_s = now_s + _STATUS_S
            self._row.show(self._status)

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

    def _ask_live(self, ask: Callable[[LiveVerdict], T]) -> T | None:
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

    def _leaks(self) -> bool:
        """Return True once the live verdict is LEAK and the final rules agree."""
        found = self._finding()
        if found is None or found.verdict is not Verdict.LEAK or self._writer is None:
            return False
        return self._final_rules.agree(self._elapsed_s(), self._flush)

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
            verdict=self._shown(found),
            growth=growth_text(found) if found is not None else "",
        )

    def _shown(self, found: Finding | None) -> str:
        """The live verdict; a LEAK only once the final rules have found it in what was recorded."""
        if found is None:
            return ""
        denied = found.verdict is Verdict.LEAK and not self._leaks()
        return (Verdict.INCONCLUSIVE if denied else found.verdict).value

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever it is, the target continues
            self.failure = self.failure or in_words(error)


def _feed(samples: Sequence[Sample], live: LiveVerdict) -> None:
    for sample in samples:
        live.add(sample)


def measure(target: Running, measurement: Measurement, mailbox: Mailbox) -> None:
    """Follow `target` until it is over, or until the options end it."""
    why = ""
    measurement.tick()
    while not target.over():
        letters = mailbox.wait(measurement.remaining_s())
        for message in target.handle(letters, measurement.pids):
            say(message)
        if target.pause_wanted():
            measurement.pause(target.pause)
        measurement.tick()
        why = why or measurement.reason_to_end()
        if why:
            target.end(why, measurement.pids)
