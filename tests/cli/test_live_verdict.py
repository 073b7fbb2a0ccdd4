"""`--stop-on leak` stops a job only for a leak that its report will find as well."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdiag.analysis.live.sequential import LiveVerdict
from memdiag.cli.measurement.live_verdict import FinalRules
from memdiag.recording.native.atomic_file import RecordingFiles
from memdiag.recording.native.writer import Writer
from memdiag.values.measurements import Sample
from memdiag.values.verdict import Verdict

STEPS, PLATEAU = 1700, 800
Readings = Callable[[int], dict[str, int]]


def rss(step: int) -> int:
    """Flat at first, then 200 KB a step."""
    return 10**9 + max(0, step - PLATEAU) * 200_000 + step * 7919 % 5 * 4096


def shared_pages(step: int) -> dict[str, int]:
    """A process that touches a mapped file from one end to the other: RSS grows, USS does not."""
    return {"rss_bytes": rss(step), "uss_bytes": 5 * 10**8 + step % 3 * 4096}


def leak(step: int) -> dict[str, int]:
    return {"rss_bytes": rss(step), "uss_bytes": rss(step) - 5 * 10**8}


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Callable[[Readings], tuple[RecordingFiles, Writer]]]:
    opened = []

    def record(readings: Readings) -> tuple[RecordingFiles, Writer]:
        files = RecordingFiles(tmp_path / f"{len(opened)}.csv", force=False)
        writer = Writer(files, about={}, interval_s=0.1)
        opened.append((files, writer))
        writer.add(samples(readings))
        return files, writer

    yield record
    for files, writer in opened:
        writer.close()
        files.close()


def samples(readings: Readings) -> list[Sample]:
    return [
        Sample(at_s=n / 10, pid=7, process=process, readings=readings(n), step=n)
        for n in range(STEPS)
        for process in ("main", "tree")
    ]


def agreed(rules: FinalRules, flush: Callable[[], None]) -> bool:
    """Ask until they have judged once."""
    rules.agree(170.0, flush)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.name.endswith("(_judge)"):
            thread.join()
    return rules.agree(170.0, flush)


def is_leak_live(readings: Readings) -> bool:
    live = LiveVerdict()
    for sample in samples(readings):
        live.add(sample)
        if live.verdict() is Verdict.LEAK:
            return True
    return False


def test_leak_that_the_report_denies_does_not_stop_the_job(recorded) -> None:
    assert not is_leak_live(shared_pages)
    assert is_leak_live(leak), "else this shows nothing"
    files, writer = recorded(shared_pages)
    assert not agreed(FinalRules(files), writer.flush)


def test_leak_that_the_report_confirms_stops_the_job(recorded) -> None:
    files, writer = recorded(leak)
    assert agreed(FinalRules(files), writer.flush)


def test_recording_that_cannot_be_judged_does_not_stop_the_job(tmp_path: Path) -> None:
    files = RecordingFiles(tmp_path / "x.csv", force=False)
    assert not agreed(FinalRules(files), lambda: None)
    files.close()
