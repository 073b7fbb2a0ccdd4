"""What was recorded on a real GPU is judged as it should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memdiag

GPU = Path(__file__).resolve().parents[2] / "fixtures" / "gpu"
EXPECTED = json.loads((GPU / "expected.json").read_text(encoding="utf-8"))


def test_every_recording_has_an_expectation() -> None:
    assert {path.name for path in GPU.glob("*.csv")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_judged_as_expected(name: str) -> None:
    expected = EXPECTED[name]
    found = memdiag.analyze(GPU / name).recording
    assert found.deciding is not None
    assert (found.verdict.value, found.deciding.metric) == (expected["verdict"], expected["metric"])
    culprits = [] if found.cause is None else found.cause.culprits
    assert [one.line for one in culprits[:1]] == ([expected["line"]] if "line" in expected else [])
    cause = None if found.ending is None else found.ending.cause
    assert (None if cause is None else cause.value) == expected.get("ending")
