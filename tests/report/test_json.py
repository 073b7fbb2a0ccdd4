"""The JSON document: valid, raw, deterministic, and the same answer as the Diagnosis."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import Enum
from typing import Any

import pytest
import schemas
from jsonschema import Draft202012Validator
from report import diagnoses
from report.draw_screens import PAGE, documented

from memdiag.report.formats.json_documents import diagnosis as document
from memdiag.report.formats.json_documents import schema_text, text
from memdiag.values.capacity import Capacity, EarlyForecast, Memory
from memdiag.values.findings import EvidenceKind, Finding, FirstLimit, Interval
from memdiag.values.measurements import Axis, AxisKind, Cause, Ending, Mark, MarkLevel, Role, Unit
from memdiag.values.verdict import Reason, Side

SCHEMA = json.loads(schema_text("diagnosis"))
VALIDATOR = Draft202012Validator(SCHEMA)


def first_series(finding: Finding) -> dict[str, Any]:
    values = document(diagnoses.of(diagnoses.recording("a.csv", finding)), 1)
    VALIDATOR.validate(values)
    series: dict[str, Any] = values["recordings"][0]["series"][0]
    return series


def test_the_documented_example_is_what_memdiag_writes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert documented(page) == page


def test_schema_is_itself_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", diagnoses.SCREENS)
def test_every_document_obeys_the_schema(name: str) -> None:
    values = document(diagnoses.SCREENS[name](), 1)
    VALIDATOR.validate(json.loads(text(values)))


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("kind", AxisKind)
def test_keys_are_fixed_and_unit_and_axis_stand_beside_them(unit: Unit, kind: AxisKind) -> None:
    series = first_series(
        replace(
            diagnoses.leak(),
            unit=unit,
            axis=Axis(name="x", kind=kind),
            plateau=diagnoses.warmup().recordings[0].series[0].plateau,
            need_more=diagnoses.inconclusive().recordings[0].series[0].need_more,
        )
    )
    assert (series["unit"], series["axis"]) == (unit.value, {"name": "x", "kind": kind.value})
    assert series["latest_value"] == 14136e6
    assert series["growth_per_x"]["value"] is not None
    assert series["onset_x"] == {"value": 15, "low": 13, "high": 18}
    assert series["segments"][0]["end_x"] == 15
    assert series["plateau"]["since_x"]["value"] == 90


def test_points_for_plots_are_left_out() -> None:
    assert not {"trace", "tops"} & first_series(diagnoses.leak()).keys()


@pytest.mark.parametrize(
    ("definition", "members"),
    [
        ("Role", Role),
        ("Reason", Reason),
        ("EvidenceKind", EvidenceKind),
        ("Side", Side),
        ("Cause", Cause),
    ],
)
def test_every_member_is_in_the_schema(definition: str, members: type[Enum]) -> None:
    assert set(SCHEMA["$defs"][definition]["enum"]) == {member.value for member in members}


def test_the_schemas_are_generated_from_the_types() -> None:
    for path, schema in schemas.texts().items():
        assert path.read_text(encoding="utf-8") == schema


def test_an_unknown_key_breaks_the_schema() -> None:
    values = document(diagnoses.leak_with_phases(), 1)
    values["recordings"][0]["series"][0]["surprise"] = 1
    assert not VALIDATOR.is_valid(values)


def test_a_lacking_reading_breaks_the_schema() -> None:
    values = document(diagnoses.leak_with_phases(), 1)
    del values["recordings"][0]["series"][0]["growth_per_x"]
    assert not VALIDATOR.is_valid(values)


def test_every_key_of_the_schema_is_described() -> None:
    def undescribed(part: Any, path: str) -> list[str]:
        if not isinstance(part, dict):
            return []
        found = []
        for group in ("properties", "patternProperties"):
            for key, value in part.get(group, {}).items():
                if not {"description", "$ref"} & value.keys():
                    found.append(f"{path}/{key}")
        for name, definition in part.get("$defs", {}).items():
            found += undescribed(definition, f"{path}/{name}")
        return found

    assert undescribed(SCHEMA, "") == []


def test_what_is_not_finite_is_null() -> None:
    nowhere = Interval(value=float("nan"), low=float("-inf"), high=float("inf"))
    series = first_series(
        replace(diagnoses.leak(), growth_per_x=nowhere, latest_value=float("nan"))
    )
    assert series["latest_value"] is None
    assert series["growth_per_x"] == {"value": None, "low": None, "high": None}


def test_verdicts_and_exit_code_are_those_of_the_diagnosis() -> None:
    diagnosis = diagnoses.many_recordings()
    values = document(diagnosis, 2)
    assert (values["schema_version"], values["verdict"], values["exit_code"]) == (2, "leak", 2)
    assert [r["verdict"] for r in values["recordings"]] == [
        r.verdict.value for r in diagnosis.recordings
    ]
    assert [f["source"] for f in values["failures"]] == ["runs/empty.csv"]


def test_the_text_is_the_same_each_time_and_pure_ascii() -> None:
    texts = {text(document(diagnoses.hostile(), 1)) for _ in range(3)}
    assert len(texts) == 1
    written = texts.pop()
    assert written.isascii()
    assert "\x1b" not in written
    assert json.loads(written)["recordings"][0]["source"] == diagnoses.HOSTILE


def test_growth_per_epoch_is_there_where_it_is_known() -> None:
    assert first_series(diagnoses.leak())["growth_per_epoch"] is None
    known = replace(diagnoses.leak(), growth_per_epoch=Interval(value=7e6, low=6e6, high=8e6))
    series = first_series(known)
    assert series["growth_per_epoch"] == {"value": 7e6, "low": 6e6, "high": 8e6}


def test_arguments_are_sentences_with_their_numbers() -> None:
    finding = diagnoses.leak()
    finding = replace(
        finding,
        trail=(*finding.trail, replace(finding.trail[1], numbers={"rise_y": float("inf")})),
    )
    absent, argument, unknown = first_series(finding)["trail"]
    assert (absent["verdict"], absent["reason"], absent["numbers"]) == (None, None, {})
    assert set(argument["numbers"]) == {"length_x", "growth_rate", "growth_p", "longer_share"}
    assert "34 steps" in argument["text"]
    assert unknown["numbers"] == {"rise_y": None}
    assert [one["is_decisive"] for one in (absent, argument, unknown)] == [False, False, True]


def test_room_first_limit_marks_and_a_bad_end_obey_the_schema() -> None:
    nowhere = Interval(value=1.0, low=0.5, high=float("inf"))
    found = replace(
        diagnoses.recording("a.csv", diagnoses.leak()),
        capacity=(
            Capacity(memory=Memory.DEVICE, series=0, is_bounded=False, peak_bytes=5.0),
            Capacity(memory=Memory.HOST, series=0, is_bounded=True, peak_bytes=5.0, limit_bytes=9),
        ),
        early_forecast=EarlyForecast(
            series=0,
            limit_bytes=9,
            seen_until_x=5.0,
            at_x=10.0,
            low_x=9.0,
            high_x=float("inf"),
            confidence=None,
        ),
        first_limit=FirstLimit(
            limit="GPU 0", limit_bytes=9, series=0, at_x=nowhere, left_s=None, confidence=None
        ),
        marks=(
            Mark(
                level=MarkLevel.WARNING,
                threshold="--warn-at 80%",
                threshold_bytes=4,
                at_s=1.5,
                metric="vram_bytes",
                process="tree",
                value_bytes=5,
            ),
        ),
        ending=Ending(code=1, why="main ran out of GPU memory", cause=Cause.DEVICE_MEMORY),
    )
    values = document(diagnoses.of(found), 1)
    VALIDATOR.validate(json.loads(text(values)))
    (shown,) = values["recordings"]
    assert shown["capacity"][1]["headroom_bytes"] == 4
    assert shown["first_limit"]["at_x"]["high"] is None
    assert (shown["early_forecast"]["at_x"], shown["early_forecast"]["high_x"]) == (10.0, None)
    assert shown["ending"]["cause"] == "device_memory"
