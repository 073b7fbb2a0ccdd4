"""Lists of what has been done, with a size for each number of steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log

from memdiag.errors import ReadError
from memdiag.values.measurements import AxisKind

N = 12
TITLE = ["## Memory checkpoints of the replay job", "", "/label ~memory", ""]


def gigabytes(at: int) -> str:
    return f"{4.9 + at / 2:.1f} GB"


@pytest.mark.parametrize(
    "item",
    [
        "- [x] {k}k steps \N{EN DASH} {size}",
        "- [x] {k}k steps: {size}",
        "* [X] {k}000 steps - {size}",
        "{at}. [x] {k}k steps, {size}",
        "[x] {k}k steps - {size}",
        "- :white_check_mark: {k}k steps: {size}",
        "\N{WHITE HEAVY CHECK MARK} {k}k steps - {size}",
        "- {k}k steps - {size}",
        "{k}k steps: {size}",
    ],
)
def test_sizes_behind_numbers_of_steps_are_read(tmp_path: Path, item: str) -> None:
    items = (item.format(at=at + 1, k=10 * (at + 1), size=gigabytes(at)) for at in range(N))
    (series,) = read_log(tmp_path, [*TITLE, *items]).series
    assert series.y.tolist() == pytest.approx([(4.9 + at / 2) * 1e9 for at in range(N)])
    assert series.x.tolist() == [10_000 * (at + 1) for at in range(N)]
    assert series.axis.kind is AxisKind.STEP


@pytest.mark.parametrize("left", ["- [ ] 30 epochs", "- [ ] 30 epochs: 40 GB, I guess"])
def test_what_is_not_done_is_no_reading(tmp_path: Path, left: str) -> None:
    items = (f"- [x] {at + 1} epochs: {gigabytes(at)}" for at in range(N))
    (series,) = read_log(tmp_path, [*TITLE, *items, left]).series
    assert (series.axis.kind, series.x[-1], series.y[-1]) == (AxisKind.EPOCH, N, 10.4e9)


def test_a_list_in_which_nothing_is_ticked_is_read(tmp_path: Path) -> None:
    items = (f"- [ ] step {at}: RSS {500 + at} MB" for at in range(N))
    (series,) = read_log(tmp_path, list(items)).series
    assert series.y.tolist() == [(500 + at) * 1e6 for at in range(N)]


@pytest.mark.parametrize(
    "item",
    [
        "- [x] {at} shards - {size}",
        "- [x] shard {at}: {size}",
        "- [x] uploaded part {at} ({size})",
        "10:{at:02}:00 saved {at}000 samples, {size}",
        "10:{at:02}:00 {at}000 batches - {size}",
        "{at}000 messages: {size}",
    ],
)
def test_sizes_of_things_are_refused(tmp_path: Path, item: str) -> None:
    lines = [item.format(at=at + 1, size=gigabytes(at)) for at in range(N)]
    with pytest.raises(ReadError):
        read_log(tmp_path, ["## Uploads of the replay job", "", *lines, "- [ ] the rest (40 GB)"])
