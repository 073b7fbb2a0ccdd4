"""The comparisons in fixtures/comparisons, through the command line, against their table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commandline import called
from jsonschema import Draft202012Validator

from memdiag.report.formats.json_documents import schema_text

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXPECTED = json.loads((FIXTURES / "comparisons" / "expected.json").read_text())
SIDES = {"base": "--before", "candidate": "--after"}
VALIDATOR = Draft202012Validator(json.loads(schema_text("comparison")))


def compared(expected: dict[str, Any], *more: str) -> tuple[int, str]:
    named = [(flag, FIXTURES / name) for side, flag in SIDES.items() for name in expected[side]]
    ended = called("compare", *more, *(word for pair in named for word in pair))
    assert ended.stderr == ""
    return ended.returncode, ended.stdout


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda e: f"{e['base'][0]}-{e['effect']}")
def test_change_has_the_effect_that_its_document_tells(expected: dict[str, Any]) -> None:
    code, text = compared(expected, "--json")
    document = json.loads(text)
    VALIDATOR.validate(document)
    assert document["effect"] == expected["effect"]
    assert code == document["exit_code"] == expected["exit_code"]
    series = document["series"][document["decided_by"]]
    for key, measure in expected["measures"].items():
        for path, (low, high) in measure.items():
            value: Any = next(one for one in series["differences"] if one["measure"] == key)
            for part in path.split("."):
                value = value[part]
            assert low <= value <= high, f"{key} {path}"
    if "need_more_x" in expected:
        low, high = expected["need_more_x"]
        assert low <= series["need_more_x"] <= high


def test_report_names_the_effect_first_and_draws_both_runs() -> None:
    code, text = compared(EXPECTED[0], "-v", "--width", "80")
    assert code == 0
    assert text.split()[3:7] == ["FIXED", "the", "leak", "of"]
    assert "··· before" in text
