"""Readings of a text log that are words, or that end before the log does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from logs import read_log

from memdiag.analysis.diagnose import diagnose
from memdiag.values.verdict import Verdict

ENDS: dict[str, Callable[[int, int], str]] = {
    "in words": lambda n, m: f"step {n} loss 0.5 gpu mem " + (f"{m} MiB" if n < 60 else "n/a"),
    "without the name": lambda n, m: f"step {n} loss 0.5" + (f" gpu mem {m} MiB" * (n < 60)),
}


@pytest.mark.parametrize("form", ENDS)
def test_readings_that_end_long_before_the_steps_do_are_not_stable(
    tmp_path: Path, form: str
) -> None:
    log = "".join(ENDS[form](n, 8000 + n % 3) + "\n" for n in range(200))
    found = diagnose(read_log(tmp_path, log))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "readings of memory end at step 59 of 199" in found.notes


def test_steps_between_readings_and_a_few_after_the_last_do_not_matter(tmp_path: Path) -> None:
    log = "".join(
        f"step {n} loss 0.5" + (f" gpu mem {8000 + n % 3} MiB" * (n % 10 == 0)) + "\n"
        for n in range(2008)
    )
    found = diagnose(read_log(tmp_path, log))
    assert found.verdict is Verdict.STABLE
    assert not any("readings of memory end" in note for note in found.notes)


def test_words_instead_of_numbers_are_reported(tmp_path: Path) -> None:
    log = "".join(
        f"step {n} gpu mem " + ("unknown" if n % 4 == 3 else f"{8000 + n % 3} MiB") + ", lr 0.1\n"
        for n in range(100)
    )
    notes = read_log(tmp_path, log).notes
    assert any("gpu mem" in note and "25% of its readings are words" in note for note in notes)


def test_other_lines_with_a_word_of_memory_are_no_readings(tmp_path: Path) -> None:
    log = "".join(
        f"step {n} gpu mem {8000 + n % 3} MiB\nstep {n} done, gpu mem is fine\n" for n in range(100)
    )
    assert not any("words instead" in note for note in read_log(tmp_path, log).notes)


@pytest.mark.parametrize("reading", ["800..900MB", "800|900MB", "<800|err>MB", "~800-900MB"])
def test_figures_that_cannot_be_read_leave_the_verdict_open(tmp_path: Path, reading: str) -> None:
    log = "".join(
        f"step {n} rss={reading if n % 3 == 0 else f'{800 + n % 2}.5MB'} lr 0.1\n"
        for n in range(300)
    )
    found = diagnose(read_log(tmp_path, log))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any("33% of its readings cannot be read" in note for note in found.notes)


@pytest.mark.parametrize("reading", ["n/a", "5", "5 objects", "(5%)", "5/9,"])
def test_words_and_plain_numbers_in_its_place_do_not(tmp_path: Path, reading: str) -> None:
    log = "".join(
        f"step {n} rss: {reading if n % 3 == 0 else f'{800 + n % 2}.5 MB'}\n" for n in range(600)
    )
    found = diagnose(read_log(tmp_path, log))
    assert not any("cannot be read" in note for note in found.notes)


def test_a_long_name_that_is_not_read_is_shown_whole(tmp_path: Path) -> None:
    name = "CPU Memory consumed at the end of the epoch (last-first)"
    lines = [line for n in range(12) for line in (f"step {n} rss {500 + n} MB", f"{name}: {n % 3}")]
    assert any(name in note for note in read_log(tmp_path, lines).notes)
