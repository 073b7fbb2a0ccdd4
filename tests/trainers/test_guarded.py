"""Other people's trainers save and stop once memory reaches a level (`make trainers`)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "guarded.py"
STEPS = 40
TRAINERS = ("transformers", "lightning", "accelerate", "keras", "ignite")

pytestmark = [pytest.mark.trainers, pytest.mark.slow]


def trained(directory: Path, name: str, *options: str) -> int:
    """The steps that a training took under `memdiag run`."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "memdiag", "run", "-q", "-o", "run.csv", *options, "--"),
            *(sys.executable, str(PROGRAM), name),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.stdout, done.stderr
    return int(done.stdout)


def saved(directory: Path) -> list[str]:
    """What was saved, by callbacks or (Transformers) by the Trainer."""
    found = [*directory.glob("saved*"), *directory.glob("out/checkpoint-*/optimizer.pt")]
    return sorted(str(path.relative_to(directory)) for path in found)


@pytest.mark.parametrize("name", TRAINERS)
def test_training_is_saved_at_one_level_and_stopped_at_the_other(tmp_path: Path, name: str) -> None:
    """The levels hold from the start, so both are reached at the first steps."""
    assert trained(tmp_path, name, "--warn-at", "2MB") == STEPS
    assert len(saved(tmp_path)) == 1
    assert trained(tmp_path, name, "--force", "--critical-at", "2MB") < STEPS


@pytest.mark.parametrize("name", TRAINERS)
def test_training_below_its_levels_is_left_alone(tmp_path: Path, name: str) -> None:
    options = ["--warn-at", "95%", "--critical-at", "100%", "--limit", "64GB"]
    assert trained(tmp_path, name, *options) == STEPS
    assert saved(tmp_path) == []
