"""A counter with its total, such as `3/40`: where the run is planned to end."""

from __future__ import annotations

from pathlib import Path

from logs import read_log

from memdiag.analysis.diagnose import diagnose
from memdiag.recording.read_options import parse_x_is


def counted(name: str, last: int = 40, total: int = 40) -> str:
    return "".join(
        f"{name}[{n}/{total}] loss 0.5 host={3.46 + 0.04 * n:.2f}G (37.8s)\n"
        for n in range(1, last + 1)
    )


def test_a_run_is_planned_to_end_at_the_total(tmp_path: Path) -> None:
    recording = read_log(tmp_path, counted("Epoch "))
    assert recording.planned_x == 40
    assert not any("assumed" in note for note in recording.notes)


def test_what_the_log_does_not_name_is_said_to_be_assumed(tmp_path: Path) -> None:
    log = counted("")
    assert any("assumed" in note and "--x-is" in note for note in read_log(tmp_path, log).notes)
    told = read_log(tmp_path, log, x_is=parse_x_is("epoch"))
    assert not any("assumed" in note for note in told.notes)


def test_no_advice_goes_beyond_the_plan(tmp_path: Path) -> None:
    found = diagnose(read_log(tmp_path, counted("")))
    assert found.deciding is not None
    assert found.deciding.need_more is not None
    assert found.deciding.need_more.is_beyond_plan


def test_the_length_of_an_epoch_is_no_plan(tmp_path: Path) -> None:
    log = "".join(f"{n}/100 rss {500 + n} MB\n" for _ in range(3) for n in range(1, 101))
    assert read_log(tmp_path, log).planned_x is None


def test_beside_an_epoch_the_total_of_steps_is_its_length(tmp_path: Path) -> None:
    log = "".join(f"Epoch 0: {n}/100 rss {500 + n} MB\n" for n in range(1, 80))
    assert read_log(tmp_path, log).planned_x is None


def test_different_totals_are_no_plan(tmp_path: Path) -> None:
    log = "".join(f"step {n}/{1000 + n} rss {500 + n} MB\n" for n in range(1, 101))
    log += "".join(f"step {n}/{n} rss {500 + n} MB\n" for n in range(101, 140))
    assert read_log(tmp_path, log).planned_x is None
