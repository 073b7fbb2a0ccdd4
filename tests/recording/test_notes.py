"""What people write down: lists of readings in a line, counts in thousands, tables of wikis."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log

from memdiag.errors import ReadError
from memdiag.values.measurements import AxisKind

GB, MB = 1e9, 1e6
READINGS = [1820, 1821, 2057, 2242, 2243, 2241, 2252, 2244, 2250]


def joined(mark: str, unit: str = "") -> str:
    return mark.join(f"{one}{unit}" for one in READINGS)


@pytest.mark.parametrize(
    "line",
    [
        f"RSS (MB): {joined(' -> ')}",
        f"RSS: {joined(' → ', ' MB')}",
        f"RSS: {joined('=>')} MB",
        f"Ran it for 12 epochs, loss 2.1. RSS (MB) after each epoch: {joined(' --> ')}. Fine.",
        f"RSS in MB after each epoch: {joined(', ')}",
        f"- **RSS per epoch (MB)**: [{joined(', ')}]",
        f"RSS after every step, in MB:\n  {joined(' -> ').replace('2242 ->', '2242 ->' + chr(10))}",
        f"RSS at the step: {joined(', ', 'MB')}",
        f"RSS: {joined(' (2 h) -> ', ' MB')} MB (at the end)",
        f"rss_mb: {joined(' -> ')}",
    ],
)
def test_readings_that_a_line_lists_are_read(tmp_path: Path, line: str) -> None:
    recording = read_log(tmp_path, f"Looked again today.\n{line}\nI close the ticket.\n")
    (series,) = recording.series
    assert series.metric == "rss_bytes"
    assert series.y.tolist() == [one * MB for one in READINGS]


@pytest.mark.parametrize(
    "line",
    [
        f"Loss after each epoch: {joined(' -> ')}",
        f"Tokens per step: {joined(', ')}",
        f"Memory limit (MB): {joined(' -> ')}",
        f"Memory growth (MB) after each epoch: {joined(' -> ')}",
        f"RSS (MB): {joined(', ')}",  # perhaps of several workers
        f"RSS (MB) per model: {joined(', ')}",
        f"Memory (MB) per batch size: {joined(', ')}",
        f"Memory at step: {joined(', ')}",  # these are the steps
        f"RSS every epoch: {joined(' -> ')}",
        f"Tensors alive: {joined(' -> ')}",
        "RSS (MB): 812 -> 813 -> 900",
        f"RSS (MB): {joined(' -> ')}\nVRAM (MB): {joined(' -> ')}",
        f"RAM use: {joined(' -> ', '%')}",
    ],
)
def test_other_lists_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ReadError):
        read_log(tmp_path, f"Looked again today.\n{line}\nI close the ticket.\n")


@pytest.mark.parametrize(
    "item",
    [
        "- {k}k steps, loss 2.4, {gb} GB",
        "   {n}. {k}k steps, loss 2.4, {gb} GB",
        "{n}. {k}000 steps, loss 2.4, {gb} GB",
        "{n}) {k}K steps: mem {gb} GB",
        "* after {k}k steps: mem {gb} GB",
        "- step {k}k, loss 2.4, {gb} GB",
        "step: {k}K | mem {gb} GB",
        "mem {gb} GB after {k}k steps",
    ],
)
def test_steps_in_thousands_are_positions(tmp_path: Path, item: str) -> None:
    readings = [22.4 + at % 3 / 10 for at in range(12)]
    items = [item.format(n=at + 1, k=41 + at, gb=gb) for at, gb in enumerate(readings)]
    around = ["# Day 3", "1. restarted from 40k", "2. memory after every 1k steps:"]
    (series,) = read_log(tmp_path, [*around, *items, "3. TODO: ask for 80 GB"]).series
    assert series.y.tolist() == pytest.approx([gb * GB for gb in readings])
    assert series.axis.kind is AxisKind.STEP
    assert series.x.tolist() == [1000 * (41 + at) for at in range(12)]


def test_millions_of_steps_are_positions_and_sizes_in_letters_are_sizes(tmp_path: Path) -> None:
    lines = [f"1.{at}M steps, rss 8{at}0M requests 40" for at in range(1, 9)]
    (series,) = read_log(tmp_path, lines).series
    assert series.x.tolist() == pytest.approx([1e6 + 1e5 * at for at in range(1, 9)])
    assert series.y.tolist() == [(800 + 10 * at) * MB for at in range(1, 9)]


def test_a_size_for_each_step_is_no_position(tmp_path: Path) -> None:
    lines = [f"rss {800 + at} MB, allocated per step 41k" for at in range(9)]
    (series,) = read_log(tmp_path, lines).series
    assert series.axis.kind is not AxisKind.STEP


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("||step||loss||RSS MB||", "|{x}|1.9|{y}|"),
        ("|| *step* || loss || RSS MB ||", "| {x} |  | {{color:red}}*{y}*{{color}} |"),
        ("|| step || loss || RSS MB ||", "|| {x} || 1.9 || {y} ||"),  # MoinMoin
        ("||= step =||= loss =||= RSS MB =||", "|| {x} || 1.9 || {y} ||"),  # Trac
        ("||step||loss||RSS MB||", "|{x}||{y}|"),
    ],
)
def test_tables_with_two_bars_are_read_among_prose(tmp_path: Path, header: str, row: str) -> None:
    rows = [row.format(x=1000 * at, y=800 + at) for at in range(1, 13)]
    around = ["Reproduced on node 7.", "", "h3. Measurements", ""]
    below = ["", "{quote}Is that with 2 workers?{quote}", "Yes, workers=2."]
    (series,) = read_log(tmp_path, [*around, header, *rows, *below]).series
    assert series.y.tolist() == [(800 + at) * MB for at in range(1, 13)]
    assert series.x.tolist() == [1000 * at for at in range(1, 13)]


def test_of_several_tables_with_two_bars_one_is_to_be_chosen(tmp_path: Path) -> None:
    table = ["||step||RSS MB||", *(f"|{at}|{800 + at}|" for at in range(8))]
    lines = [*table, "", "On the other node:", *table[:-1]]
    with pytest.raises(ReadError, match="2 of its 2 tables"):
        read_log(tmp_path, lines)
    (series,) = read_log(tmp_path, lines, table=2).series
    assert len(series.y) == 7
