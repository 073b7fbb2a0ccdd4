"""What the axis counts: assumed and reported, or set by the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdiag.errors import UsageError
from memdiag.recording.read import read
from memdiag.recording.read_options import X_KINDS, ReadOptions, parse_x_is
from memdiag.values.measurements import AxisKind

ROWS = "".join(f"{1000 + n}\n" for n in range(10))


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "log.csv"
    path.write_text(text)
    return str(path)


OVERRIDES = "--x-is overrides that (step, epoch, second, sample, operation, request)"


@pytest.mark.parametrize(
    ("text", "assumed"),
    [
        ("rss_mb\n" + ROWS, "row is assumed to count samples or whole operations"),
        (ROWS, "row is assumed to count samples or whole operations"),
        (f"[{', '.join(ROWS.split())}]", "row is assumed to count samples or whole operations"),
        (
            "".join(f"{n}: rss {800 + n} MB\n" for n in range(10)),
            "index is assumed to count samples or whole operations",
        ),
        (
            "i,rss_mb\n" + "".join(f"{n},{800 + n}\n" for n in range(10)),
            "i is assumed to count samples or whole operations",
        ),
        (
            ",rss_mb\n" + "".join(f"{n},{800 + n}\n" for n in range(10)),
            "the first column is assumed to count samples or whole operations",
        ),
        (
            "  PID   RSS COMMAND\n 100 800 python\n" * 10,
            "tick is assumed to count samples at an unknown interval",
        ),
    ],
)
def test_what_is_assumed_of_an_axis_is_told(tmp_path: Path, text: str, assumed: str) -> None:
    assert f"{assumed}; {OVERRIDES}" in read(written(tmp_path, text)).notes


@pytest.mark.parametrize("name", ["step", "epoch", "time_s", "sample", "run", "sample_no"])
def test_nothing_is_told_of_an_axis_whose_name_says_what_it_counts(
    tmp_path: Path, name: str
) -> None:
    rows = "".join(f"{n},{800 + n}\n" for n in range(10))
    assert read(written(tmp_path, f"{name},rss_mb\n{rows}")).notes == ()


def test_an_operation_is_what_a_column_of_runs_counts(tmp_path: Path) -> None:
    rows = "".join(f"{n},{800 + n}\n" for n in range(10))
    (series,) = read(written(tmp_path, f"run,rss_mb\n{rows}")).series
    assert series.axis.kind is parse_x_is("operation")


@pytest.mark.parametrize("name", X_KINDS)
def test_the_user_says_what_rows_are(tmp_path: Path, name: str) -> None:
    source = written(tmp_path, "rss_mb\n" + ROWS)
    recording = read(source, ReadOptions(x_is=parse_x_is(name)))
    (series,) = recording.series
    assert series.axis.kind is X_KINDS[name]
    assert any("set by --x-is" in note for note in recording.notes)
    assert not any("assumed" in note for note in recording.notes)


def test_rows_with_only_a_clock_are_counted_as_what_the_user_says(tmp_path: Path) -> None:
    rows = "".join(f"{n * 30},{1000 + n}\n" for n in range(10))
    source = written(tmp_path, "time_s,rss_mb\n" + rows)
    (series,) = read(source, ReadOptions(x_is=AxisKind.STEP)).series
    assert series.x.tolist() == list(range(10))
    assert series.at_s is not None


def test_an_unknown_unit_of_the_axis_is_refused() -> None:
    with pytest.raises(UsageError, match="--x-is"):
        parse_x_is("parsec")


def test_steps_that_are_too_few_to_judge_by_are_told(tmp_path: Path) -> None:
    """A line each hundred steps beside a reading each second."""
    rows = "".join(f"{n},{100 * (n // 10)},{1000 + n}\n" for n in range(50))
    recording = read(written(tmp_path, "time_s,step,rss_mb\n" + rows))
    assert recording.series[0].axis.kind is AxisKind.SECONDS
    assert any("5 different steps are too few" in note for note in recording.notes)


@pytest.mark.parametrize(("stepping_s", "kind"), [(80, AxisKind.STEP), (20, AxisKind.SECONDS)])
def test_steps_of_a_part_of_the_run_are_not_its_axis(
    tmp_path: Path, stepping_s: int, kind: AxisKind
) -> None:
    rows = "".join(f"{n},{min(n, stepping_s)},{1000 + n}\n" for n in range(100))
    recording = read(written(tmp_path, "time_s,step,rss_mb\n" + rows))
    (series,) = recording.series
    assert series.axis.kind is kind
    is_noted = any("ends long before the readings" in note for note in recording.notes)
    assert is_noted is (kind is AxisKind.SECONDS)
