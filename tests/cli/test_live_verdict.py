"""A leak is shown, and stops a job, only if the report will find it as well."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from memdiag.analysis.live.sequential import LiveVerdict
from memdiag.cli.measurement.live_verdict import ConfirmedVerdict, verdict_on
from memdiag.recording.native.atomic_file import RecordingFiles
from memdiag.recording.native.writer import Writer
from memdiag.values.holders import Holder, Name, ProbeFindings, ProcessHolders, Size
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


def shown(files: RecordingFiles, flush: Callable[[], None]) -> list[Verdict]:
    """What is shown of a live verdict that is LEAK, before the report was asked and after."""
    live, threads = LiveVerdict(), []
    for sample in samples(leak):
        live.add(sample)

    def start(call: Callable[[], None]) -> Callable[[], bool]:
        threads.append(threading.Thread(target=call))
        threads[-1].start()
        return threads[-1].is_alive

    confirmed = ConfirmedVerdict(live, partial(verdict_on, files), flush=flush, start=start)
    verdicts = []
    for _ in range(2):
        found = confirmed.finding()
        assert found is not None
        verdicts.append(found.verdict)
        for thread in threads:
            thread.join()
    assert len(threads) == 1, "nothing is judged again before the live verdict is made anew"
    return verdicts


def test_leak_that_is_shown_stays_while_it_is_judged_anew() -> None:
    live = LiveVerdict()
    threads: list[Callable[[], None]] = []
    for sample in samples(leak):
        live.add(sample)
        if live.verdict() is Verdict.LEAK:
            break

    def start(call: Callable[[], None]) -> Callable[[], bool]:
        threads.append(call)
        return lambda: len(threads) > 1  # the second judgement does not end

    confirmed = ConfirmedVerdict(live, lambda: Verdict.LEAK, flush=lambda: None, start=start)

    def now() -> Verdict:
        found = confirmed.finding()
        assert found is not None
        return found.verdict

    assert now() is Verdict.INCONCLUSIVE
    threads[0]()
    assert now() is Verdict.LEAK
    at_s = sample.at_s
    while len(threads) == 1:
        at_s += 0.1
        step = round(at_s * 10)
        confirmed.add(Sample(at_s=at_s, pid=7, process="main", readings=leak(step), step=step))
        assert now() is Verdict.LEAK


def is_leak_live(readings: Readings) -> bool:
    live = LiveVerdict()
    for sample in samples(readings):
        live.add(sample)
        if live.verdict() is Verdict.LEAK:
            return True
    return False


def test_leak_that_the_report_denies_is_not_shown(recorded) -> None:
    assert not is_leak_live(shared_pages)
    assert is_leak_live(leak), "else this shows nothing"
    files, writer = recorded(shared_pages)
    assert shown(files, writer.flush) == [Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE]


def test_leak_that_the_report_confirms_is_shown(recorded) -> None:
    files, writer = recorded(leak)
    assert shown(files, writer.flush)[1] is Verdict.LEAK


def test_leak_is_not_shown_of_a_recording_that_cannot_be_judged(tmp_path: Path) -> None:
    files = RecordingFiles(tmp_path / "x.csv", force=False)
    assert shown(files, lambda: None) == [Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE]
    files.close()


def filling(step: int) -> ProbeFindings:
    """A deque of the program that has taken an item a step since the plateau, and is not full."""
    items = max(0, step - PLATEAU)
    place = Holder(
        path=(Name(kind="global", name="recent", owner="__main__"),),
        unit="items",
        sizes=tuple(
            Size(at_s=(PLATEAU + n) / 10, step=PLATEAU + n, size=float(n))
            for n in range(0, items, 50)
        ),
        bytes_per_unit=200_000.0,
        bound=2 * items,
    )
    return ProbeFindings(holders=(ProcessHolders(pid=7, walks=9, last_s=170.0, holders=(place,)),))


def test_leak_is_not_shown_while_a_container_with_a_greatest_length_fills(recorded) -> None:
    files, writer = recorded(leak)

    def flush() -> None:
        writer.flush()
        writer.describe(limits=(), processes=(), found=filling(STEPS))

    assert shown(files, flush) == [Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE]
