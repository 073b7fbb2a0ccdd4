"""Dates in figures at the start of lines of a log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log

HOUR_S, DAY_S = 3600.0, 86400.0


@pytest.mark.parametrize(
    "form",
    [
        "{day:02}/05/2025 {hour:02}:00  Memory used : {mb} MB  (limit 8192 MB)  CPU 5 %",
        "{day:02}.05.2025 {hour:02}:00 rss {mb} MB",
        "{day:02}-05-2025, {hour:02}:00:00 rss: {mb} MB",
        "[{day}/5/25, {hour}:00] Ann: rss {mb} MB",
        "5/{day}/2025 {twelve}:00 {half} rss {mb} MB",
        "25/05/{day:02} {hour:02}:00:00 INFO BlockManager: rss {mb} MB",
        "{day:02}-05 {hour:02}:00 scheduler[77]: rss={mb}MB",
        "05/{day:02} {hour:02}:00 rss={mb}MB",
        "> {day:02}.05. {hour:02}:00 rss={mb}MB",
    ],
)
def test_they_are_times_and_no_steps(tmp_path: Path, form: str) -> None:
    lines = []
    for at in range(40):
        hour = at % 24
        half = "PM" if hour >= 12 else "AM"
        place = {"day": 4 + at // 24, "hour": hour, "twelve": hour % 12 or 12, "half": half}
        lines.append(form.format(mb=1239 + 50 * at, **place))
    (series,) = read_log(tmp_path, lines).series
    assert (series.axis.name, series.y[0]) == ("timestamp", 1239e6)
    assert series.x.tolist() == [HOUR_S * at for at in range(40)]


@pytest.mark.parametrize(
    "form",
    [
        "{day:02}.06.2025 - {mb} MB",
        "{day:02}/06/2025 rss {mb} MB",
        "2025-06-{day:02}: {mb} MB",
        "On 2025-06-{day:02} its rss was {mb} MB",
    ],
)
def test_a_day_is_a_time_too(tmp_path: Path, form: str) -> None:
    days = [1, 2, 3, 4, 5, 9, 10, 11, 13, 16, 17, 19, 24]
    lines = [form.format(day=day, mb=900 + 7 * day) for day in days]
    (series,) = read_log(tmp_path, lines).series
    assert series.x.tolist() == [DAY_S * (day - 1) for day in days]


def test_figures_that_are_no_dates_stay_as_they_are(tmp_path: Path) -> None:
    lines = [f"{at}/40/2000 loss 0.5 mem {900 + at} MB" for at in range(1, 41)]
    (series,) = read_log(tmp_path, lines).series
    assert series.x.tolist() == list(range(1, 41))


def test_a_position_behind_a_word_is_no_date_without_a_year(tmp_path: Path) -> None:
    lines = [f"epoch {at}/10 00:{at:02} loss 0.5 mem {900 + at} MB" for at in range(1, 11)]
    (series,) = read_log(tmp_path, lines).series
    assert series.axis.name == "epoch"


def test_a_word_and_wide_gaps_may_stand_between_a_date_and_its_time(tmp_path: Path) -> None:
    forms = "{day}.6.2025 klo {hour:02}.00  {mb} MB", "{day}/6/2025     {hour}:00  {mb} MB"
    for form in forms:
        lines = [form.format(day=4 + at // 24, hour=at % 24, mb=900 + at) for at in range(40)]
        (series,) = read_log(tmp_path, lines).series
        assert series.x.tolist() == [HOUR_S * at for at in range(40)]


def test_the_times_of_org_are_times(tmp_path: Path) -> None:
    rows = [f"| [2025-03-04 Tue {9 + at:02d}:20] | {842 + 9 * at} |" for at in range(12)]
    rows += [f"| <2025-03-05 mié {at:02d}:20> | {990 + 9 * at} |" for at in range(8)]
    table = ["| when | rss MB |", "|------+--------|", *rows]
    (series,) = read_log(tmp_path, ["* TODO watch it", "  CLOSED: [2025-03-04 Tue]", *table]).series
    hours = [*range(12), *range(15, 23)]
    assert series.x[np.isfinite(series.y)].tolist() == [HOUR_S * hour for hour in hours]


def test_a_time_above_lines_without_one_applies_to_them(tmp_path: Path) -> None:
    """Of two metrics, one has times in its lines."""
    lines = []
    for at in range(30):
        lines += [f"[1] Killer: Consuming {500 + at}.25 mb with 4 workers."] if at else []
        lines.append(
            f"I, [2025-02-03T09:{at:02d}:00 #23] Completed 200 OK (Allocations: {2000 + at % 3})"
        )
    series = {one.column: one for one in read_log(tmp_path, lines).series}
    memory = next(one for name, one in series.items() if "Consuming" in name)
    there = np.isfinite(memory.y)
    assert memory.x[there].tolist() == [60.0 * at for at in range(29)]
    assert memory.y[there].tolist() == [(500.25 + at) * 1e6 for at in range(1, 30)]
