"""Python's collector runs when it would run without the probe's own objects."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from threading import Event
from time import sleep

import pytest

from memdiag.probe.collector import OwnObjects
from memdiag.probe.heartbeat import Heartbeat
from memdiag.probe.kept_bytes import Arrays
from memdiag.probe.name_walk import NameWalk
from memdiag.probe.places import Places

# Counts collections while a program creates objects that stay, with looks of a probe in between.
PROGRAM = """
import gc, json, sys
from memdiag.probe.collector import OwnObjects
looks = int(sys.argv[1])
own = OwnObjects()
kept, probes, at = [], [], []
gc.collect()
gc.callbacks.append(lambda phase, info: phase == "start" and at.append(len(kept)))
for n in range(3000):
    kept.append([n])
    if looks and n % 500 == 0:
        with own:
            for _ in range(2000):
                probes.append([])
print(json.dumps([at, gc.get_threshold()]))
"""


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.enable()
    gc.set_threshold(*before)


def collections(looks: int) -> list[int]:
    command = [sys.executable, "-c", PROGRAM, str(looks)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    at: list[int] = json.loads(said.stdout)[0]
    return at


def test_the_collector_runs_after_as_many_objects_of_the_program() -> None:
    alone, watched = collections(0), collections(1)
    assert len(alone) >= 3
    assert len(watched) == len(alone)
    assert all(abs(a - b) < 60 for a, b in zip(alone, watched, strict=True))


def test_a_collection_ends_it() -> None:
    before = gc.get_threshold()
    own = OwnObjects()
    with own:
        kept = [[] for _ in range(500)]
    assert gc.get_threshold()[0] > before[0]
    gc.collect()
    assert gc.get_threshold() == before
    own.remove()
    assert len(kept) == 500


@pytest.mark.parametrize("mine", [(900, 5, 5), (0, 5, 5)])
def test_thresholds_of_the_program_stay(mine: tuple[int, int, int]) -> None:
    own = OwnObjects()
    with own:
        gc.set_threshold(*mine)
    assert gc.get_threshold() == mine
    with own:
        pass
    gc.collect()
    assert gc.get_threshold() == mine
    own.remove()


def test_a_collector_that_is_off_stays_as_it_is() -> None:
    gc.disable()
    before = gc.get_threshold()
    own = OwnObjects()
    with own:
        assert gc.get_threshold() == before
    assert not gc.isenabled()


def test_nothing_is_left_when_the_probe_goes() -> None:
    before = gc.get_threshold(), list(gc.callbacks)
    own = OwnObjects()
    with own:
        kept = [[] for _ in range(500)]
    own.remove()
    assert (gc.get_threshold(), gc.callbacks) == before
    assert kept


def test_a_walk_leaves_no_garbage() -> None:
    """What it has found would wait for the collector, and with it the program's objects."""
    gc.collect()
    gc.disable()

    def look() -> None:
        walk = NameWalk(Places(), Arrays())
        walk.run()
        assert walk.visits > 0

    look()
    assert not [one for one in gc.get_objects() if type(one) is NameWalk]


def test_the_end_waits_for_a_look_that_has_begun() -> None:
    """Python stops other threads at its end where they are, with all that they refer to."""
    began, ended = Event(), []

    def beat() -> None:
        began.set()
        sleep(0.1)
        ended.append(True)

    heartbeat = Heartbeat(beat)
    heartbeat.start()
    assert began.wait(30)
    heartbeat.end()
    assert ended
