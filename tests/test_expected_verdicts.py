"""The recordings in fixtures/runs, through the command line, against their expected table."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
EXPECTED = json.loads((RUNS / "expected.json").read_text())
KEYED_BY = {"phases": "phase", "forecasts": "at_x", "limit_hits": "limit"}


def _analyzed(*names: str) -> tuple[int, dict[str, Any]]:
    options = EXPECTED["options"]
    command = [sys.executable, "-m", "memdiag", "analyze", "--json"]
    command += ["--planned-steps", str(options["planned_steps"]), "--limit", options["limit"]]
    done = subprocess.run(
        [*command, *(str(RUNS / name) for name in names)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    """What is found in each file, all in one call."""
    _, document = _analyzed(*EXPECTED["runs"])
    return {Path(r["source"]).name: r for r in document["recordings"]}


def test_every_recording_has_an_expectation() -> None:
    assert {path.name for path in RUNS.glob("*.csv")} == set(EXPECTED["runs"])


@pytest.mark.parametrize("name", EXPECTED["runs"])
def test_recording_is_judged_as_expected(name: str, found: dict[str, dict[str, Any]]) -> None:
    expected, recording = EXPECTED["runs"][name], found[name]
    _compare(recording["verdict"], expected["verdict"], name)
    series = {s["metric"]: s for s in recording["series"]}
    assert set(series) == set(expected["series"])
    for metric, wanted in expected["series"].items():
        for key, value in wanted.items():
            _compare(_at(series[metric], key), value, f"{name} {metric} {key}")
    kinds = {evidence["kind"] for evidence in recording["evidence"]}
    assert set(expected.get("evidence", ())) <= kinds
    if "same_rate_as" in expected:
        other = found[expected["same_rate_as"]]["series"][0]
        assert recording["series"][0]["growth_per_x"] == other["growth_per_x"]


@pytest.mark.parametrize("name", ["vision_run1.csv", "vision_run2.csv", "burn_hybrid.csv"])
def test_exit_code_is_the_verdicts(name: str) -> None:
    code, document = _analyzed(name)
    assert code == EXPECTED["runs"][name]["exit_code"] == document["exit_code"]


def _at(found: Mapping[str, Any], key: str) -> Any:
    """The value at `growth.value`; lists of objects become a mapping by their key."""
    value: Any = found
    for part in key.split("."):
        value = value[part]
    if key in KEYED_BY:
        return {_label(entry[KEYED_BY[key]]): entry for entry in value}
    return value


def _label(key: Any) -> str:
    return f"{key:g}" if isinstance(key, float) else str(key)


def _compare(found: Any, expected: Any, where: str) -> None:
    """A text is equal, a list of texts holds it, a pair of numbers encloses it."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            nested = found[key] if key in found else _at(found, key)
            _compare(nested, value, f"{where} {key}")
    elif isinstance(expected, list) and not isinstance(expected[0], str):
        low, high = expected
        assert low <= found <= high, where
    elif isinstance(expected, list):
        assert found in expected, where
    else:
        assert found == expected, where
