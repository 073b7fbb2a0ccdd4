"""Logs as people paste them: what must be judged, what must be said of the rest, and the verdict.

`fixtures/documents/pasted/expected.toml` says what a careful reader finds in each file, and what
of that memdiag does not find yet. A mark that no longer holds fails, so that it is removed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memdiag.analysis.diagnose import diagnose
from memdiag.errors import ReadError
from memdiag.recording.read import read
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import Recording, Series
from memdiag.values.verdict import Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PASTED = Path(__file__).parents[1] / "fixtures" / "documents" / "pasted"
LOGS: list[dict[str, Any]] = tomllib.loads((PASTED / "expected.toml").read_text("utf-8"))["log"]
# Figures are printed rounded, and a monitor's prints need not be exact multiples.
ROUNDED = 0.002
# What memdiag took, said in one note; all other notes are about what it decided or left out.
TAKEN = "read as "

# What the marks may be about, and the expectations of which each speaks.
ASPECTS = {
    "reading": {"judged"},
    "axis": {"axis", "span_s"},
    "verdict": {"verdict"},
    "like": {"like"},
    "unread": {"unread"},
    "error": {"error"},
}


@cache
def found(name: str) -> tuple[Recording, RecordingFinding]:
    recording = read(str(PASTED / name))
    return recording, diagnose(recording)


def fails_today(log: dict[str, Any], aspect: str) -> list[pytest.MarkDecorator]:
    why = log.get("fails", {}).get(aspect)
    wrong = (AssertionError, ReadError)  # anything else is a crash
    return [pytest.mark.xfail(reason=why, strict=True, raises=wrong)] if why else []


def cases(aspect: str) -> list[Any]:
    """The files of which something is expected in this respect, marked where it fails today."""
    return [
        pytest.param(log, id=log["file"], marks=fails_today(log, aspect))
        for log in LOGS
        if ASPECTS[aspect] & log.keys()
    ]


def refusal(name: str) -> ReadError | None:
    try:
        found(name)
    except ReadError as error:
        return error
    return None


def readable(log: dict[str, Any]) -> tuple[Recording, RecordingFinding] | None:
    """None where refusing the file is right as well, and it was refused."""
    if "error" in log and refusal(log["file"]) is not None:
        return None
    return found(log["file"])


def ends(series: Series) -> tuple[float, float]:
    """The readings at the first and the last position."""
    there = np.isfinite(series.y) & np.isfinite(series.x)
    order = np.argsort(series.x[there], kind="stable")
    y = series.y[there][order]
    return float(y[0]), float(y[-1])


def is_one_of(value: float, expected: Iterable[float]) -> bool:
    return any(value == pytest.approx(one, rel=ROUNDED) for one in expected)


def is_named(wanted: dict[str, Any], one: Series | Finding) -> bool:
    return bool(
        (re.search(wanted["column"], one.column) or re.search(wanted["column"], one.metric))
        and re.search(wanted.get("process", ""), one.process)
    )


def is_meant(wanted: dict[str, Any], one: Series) -> bool:
    first, last = ends(one)
    return (
        is_named(wanted, one)
        and is_one_of(first, wanted["first"])
        and is_one_of(last, wanted["last"])
        and wanted.get("unit", "bytes") in {"any", one.unit.value}
        and wanted.get("falling", one.falling) == one.falling
    )


def with_readings(recording: Recording) -> list[Series]:
    return [
        one for one in recording.series if bool((np.isfinite(one.y) & np.isfinite(one.x)).any())
    ]


def told(recording: Recording) -> str:
    ends_in = ", ".join(
        f"{one.process} {one.column} over {one.axis.name}: {ends(one)}"
        for one in with_readings(recording)
    )
    return f"{ends_in}; {recording.notes}"


def test_every_log_has_its_expectation_and_every_expectation_its_log() -> None:
    names = [log["file"] for log in LOGS]
    assert len(set(names)) == len(names)
    assert {path.name for path in PASTED.iterdir()} - {"expected.toml"} == set(names)


def test_every_mark_is_about_something_that_is_expected() -> None:
    for log in LOGS:
        for aspect in log.get("fails", {}):
            assert ASPECTS[aspect] & log.keys(), log["file"]


@pytest.mark.parametrize("log", cases("reading"))
def test_what_is_memory_is_read_with_its_first_and_last_value(log: dict[str, Any]) -> None:
    if (read_ := readable(log)) is None:
        return
    recording, _ = read_
    series = with_readings(recording)
    for wanted in log["judged"]:
        assert any(is_meant(wanted, one) for one in series), f"{wanted}: {told(recording)}"
    for name in log.get("not_judged", []):
        wrong = [s.column for s in series if re.search(name, s.column) or re.search(name, s.metric)]
        assert not wrong, f"{wrong} is no memory in use: {told(recording)}"
    highest = max(float(np.nanmax(one.y)) for one in series)
    assert highest <= log.get("peak_at_most", highest), told(recording)
    lowest = min(float(np.nanmin(one.y)) for one in series)
    assert lowest >= log.get("low_at_least", lowest), told(recording)


@pytest.mark.parametrize("log", cases("axis"))
def test_axis_is_what_a_reader_would_take(log: dict[str, Any]) -> None:
    if (read_ := readable(log)) is None:
        return
    recording, _ = read_
    for one in with_readings(recording):
        if "axis" in log:
            assert re.search(log["axis"], one.axis.name), told(recording)
        if "span_s" in log:
            span = float(np.nanmax(one.x) - np.nanmin(one.x))
            assert span == pytest.approx(log["span_s"], rel=0.01), told(recording)


@pytest.mark.parametrize("log", cases("verdict"))
def test_verdict_is_one_that_a_careful_reader_accepts(log: dict[str, Any]) -> None:
    if (read_ := readable(log)) is None:
        return
    recording, finding = read_
    verdict = finding.verdict.value
    assert verdict in log["verdict"], [(s.column, s.verdict, s.reason) for s in finding.series]
    assert finding.confidence < log.get("sure_below", {}).get(verdict, 1.01)
    if finding.deciding is not None and finding.deciding.verdict is not Verdict.STABLE:
        assert any(is_named(wanted, finding.deciding) for wanted in log["judged"])
    for wanted in log["judged"]:
        if "verdict" not in wanted:
            continue
        verdicts = {
            f.verdict.value
            for f in finding.series
            if is_named(wanted, f)
            and any(
                (s.metric, s.process) == (f.metric, f.process) and is_meant(wanted, s)
                for s in with_readings(recording)
            )
        }
        assert verdicts & set(wanted["verdict"]), f"{wanted}: {verdicts}"


@pytest.mark.parametrize("log", cases("like"))
def test_same_values_get_the_same_verdict(log: dict[str, Any]) -> None:
    assert found(log["file"])[1].verdict is found(log["like"])[1].verdict


@pytest.mark.parametrize("log", cases("unread"))
def test_what_was_not_read_is_reported(log: dict[str, Any]) -> None:
    if (read_ := readable(log)) is None:
        return
    recording, finding = read_
    said = [note for note in finding.notes if not note.startswith(TAKEN)]
    said += [f"{one.metric}: {one.why.reason}" for one in recording.missing]
    for wanted in log["unread"]:
        assert any(re.search(wanted, note) for note in said), f"{wanted} is in none of {said}"


@pytest.mark.parametrize("log", cases("error"))
def test_what_tells_nothing_of_memory_over_time_is_refused_with_a_way_out(
    log: dict[str, Any],
) -> None:
    refused = refusal(log["file"])
    if refused is None:
        assert "verdict" in log, told(found(log["file"])[0])
        return
    assert re.search(log["error"], refused.message), refused.message
    assert re.search(log.get("remedy", ""), refused.remedy), refused.remedy
