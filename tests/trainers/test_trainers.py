"""Steps, epochs and phases of other people's trainers. `make trainers` installs and runs them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from memdiag.capture.probelink.channel import ChannelReader, prepare
from memdiag.capture.probelink.ring_reader import Event, Kind

PROGRAM = Path(__file__).parent / "trainings.py"
ACCUMULATED = {"transformers": 30, "lightning": 30, "accelerate": 15, "keras": 60}

pytestmark = [pytest.mark.trainers, pytest.mark.slow]


def trained(
    directory: Path, name: str, *how: str, backend: str = "torch"
) -> tuple[int, list[Event]]:
    """The true number of steps, and what the probe told."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    channel = directory / "channel"
    channel.mkdir(mode=0o700)
    reader = ChannelReader(channel)
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), name, *how],
        env=prepare({**os.environ, "KERAS_BACKEND": backend}, channel),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stderr
    events = reader.drain()
    reader.close()
    return int(ended.stdout), events


def steps(events: list[Event]) -> list[int | None]:
    return [event.step for event in events if event.kind is Kind.STEP]


def counted(events: list[Event]) -> int | None:
    """The steps that were reached: not each is told by itself, but those that are are true."""
    told = steps(events)
    assert told == sorted({step for step in told if step is not None})
    return told[-1]


def epochs(events: list[Event]) -> list[float | None]:
    return [event.value for event in events if event.kind is Kind.COUNTER]


@pytest.mark.parametrize("name", ACCUMULATED)
def test_a_trainers_steps_and_epochs_are_counted_exactly(tmp_path: Path, name: str) -> None:
    true, events = trained(tmp_path, name)
    assert true == ACCUMULATED[name] == counted(events)
    assert epochs(events) == [1, 2, 3]
    assert all(event.auto for event in events if event.kind is Kind.STEP)


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_keras_is_followed_whatever_computes(tmp_path: Path, backend: str) -> None:
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    true, events = trained(tmp_path, "keras", backend=backend)
    assert counted(events) == true
    assert {true // 3, 2 * true // 3} < set(steps(events)), "epochs end with a step"
    assert epochs(events) == [1, 2, 3]


def test_arrays_that_a_loop_of_jax_keeps_are_counted_exactly(tmp_path: Path) -> None:
    true, events = trained(tmp_path, "jax")
    assert steps(events) == list(range(1, true + 1))
    asked = [event for event in events if event.name == "jax" and event.step]
    first, last = asked[0], asked[-1]
    assert first.step is not None
    assert last.step is not None
    kept = last.step - first.step
    assert kept > 0
    assert last.readings["jax_arrays"] - first.readings["jax_arrays"] == kept
    grown = last.readings["jax_array_bytes"] - first.readings["jax_array_bytes"]
    assert grown == kept * 256 * 64 * 4


@pytest.mark.parametrize("name", ["transformers", "lightning", "keras"])
def test_evaluations_are_told_from_training(tmp_path: Path, name: str) -> None:
    _, events = trained(tmp_path, name)
    coarse = [event.phase.partition("/")[0] for event in events]
    seen = [phase for phase, _ in groupby(p for p in coarse if p in ("train", "eval"))]
    assert seen[-6:] == ["train", "eval"] * 3 or seen[-7:] == [*["train", "eval"] * 3, "train"]


@pytest.mark.parametrize("name", ["transformers", "lightning"])
def test_the_explicit_form_tells_the_same(tmp_path: Path, name: str) -> None:
    true, events = trained(tmp_path, name, "explicit")
    told = [event for event in events if not event.auto]
    assert steps(told) == list(range(1, true + 1))
    assert steps(events) == steps(told)
    assert epochs(events) == [1, 2, 3]
    phases = [phase for phase, _ in groupby(event.phase for event in told)]
    assert [p for p in phases if p in ("train", "train/eval")][:6] == ["train", "train/eval"] * 3
