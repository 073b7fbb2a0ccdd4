"""A live LEAK may come later than the report's, and the report does not contradict it.

Of recordings that it keeps whole, the live verdict agrees with the report by itself. Of longer ones
it keeps the floors of bins, which differ now and then in what is close (benchmarks/live.py --replay
has the rate): there, the rules of the report confirm a leak before it is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import _jobs
import _series
from _replay import replay

from memdiag.analysis.live.streaming_minima import CAPACITY
from memdiag.analysis.policy import DEFAULT
from memdiag.recording.read import read
from memdiag.values.measurements import Recording
from memdiag.values.verdict import Verdict

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SEED = 3
# For time; benchmarks/live.py --replay looks at all of them.
MOST_READINGS = 4000  # of all series
EVERY = 2
# Asked less often than a run is: each time costs.
SELDOM = replace(DEFAULT, live=replace(DEFAULT.live, patience=0.7))


def seeded() -> Iterator[Recording]:
    for family in _series.FAMILIES:
        made = [_series.make(family, SEED, number) for number in range(20)]
        yield next(m for m in made if 100 <= m.n < CAPACITY).recording()
        yield from (m.recording() for m in made[:4] if CAPACITY <= m.n <= MOST_READINGS)


def jobs() -> Iterator[Recording]:
    for family in _jobs.FAMILIES:
        yield _jobs.make(family, SEED, 1).recording


def recorded() -> Iterator[Recording]:
    for folder in ("corpus", "runs"):
        for path in sorted((FIXTURES / folder).glob("*.csv")):
            yield read(str(path))


@pytest.mark.slow
@pytest.mark.parametrize("recordings", [seeded, jobs, recorded])
def test_a_live_leak_is_one_in_the_report_on_what_was_seen(recordings) -> None:
    shown = 0
    for recording in islice(recordings(), 0, None, EVERY):
        lengths = [len(series.x) for series in recording.series]
        if sum(lengths) > MOST_READINGS:
            continue
        for said in replay(recording, SELDOM):
            shown += said.is_shown
            if said.is_shown or max(lengths) < CAPACITY:
                assert said.final is Verdict.LEAK, (recording.source, said)
    assert shown >= 5, "else this shows nothing"
