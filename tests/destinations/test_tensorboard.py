"""What TensorBoard and memdiag read from the event file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tracked_runs

import memdiag
from memdiag.destinations.tensorboard import TensorBoard

pytest.importorskip("tensorboard")
STEPS = 500


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The directory of a leak."""
    said: list[str] = []
    destination = TensorBoard(str(tmp_path / "logs"), {})
    destination.start(tracked_runs.RUN, said.append)
    found = tracked_runs.rows(STEPS)
    destination.rows(found[:50])
    destination.rows(found[50:])
    destination.finish(tracked_runs.end(tmp_path))
    (directory,) = (tmp_path / "logs").iterdir()
    assert said == [str(directory)]
    return directory


# A process of its own: TensorBoard registers message types of TensorFlow.
READ = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1])
found.Reload()
for name in sorted(found.Tags()["tensors"]):
    print("tensor", name, len(found.Tensors(name)))
for name in sorted(found.Tags()["scalars"]):
    events = found.Scalars(name)
    print("scalar", name, len(events), events[-1].step, events[-1].wall_time, events[-1].value)
for name in sorted(found.Tags()["images"]):
    print("image", name, found.Images(name)[0].width, found.Images(name)[0].height)
print(found.Tensors("memdiag/verdict/text")[0].tensor_proto.string_val[0].decode())
"""


def test_tensorboard_reads_series_verdict_and_picture(written: Path) -> None:
    read = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ, str(written)],
        text=True,
        capture_output=True,
        check=True,
        timeout=120,
    ).stdout
    assert "scalar memdiag/rss_bytes 500 499 1700000249.5 1998000000.0" in read
    assert "scalar memdiag/rank0/copies_now 500" in read
    assert "scalar memdiag/verdict/growth_bytes_per_step 1 499" in read
    assert "image memdiag/picture 2 3" in read
    assert "tensor memdiag/verdict/text 1" in read
    assert "| verdict | LEAK |" in read
    assert (written / "memdiag.html").read_text() == "<!DOCTYPE html>"


def test_memdiag_finds_the_same_leak_in_the_event_file(written: Path) -> None:
    (events,) = written.glob("events.*")
    found = memdiag.analyze(str(events))
    assert found.verdict == "leak"
    assert found.deciding is not None
    assert found.deciding.process == "rank0"
    assert found.deciding.growth_per_x is not None
    assert found.deciding.growth_per_x.value == pytest.approx(1e6, rel=0.01)
    assert {(one.process, one.metric) for one in found.series} == {
        ("tree", "rss_bytes"),
        ("tree", "processes"),
        ("rank0", "rss_bytes"),
        ("rank0", "copies_now"),
    }
