"""Error rates over seeded series of known truth (benchmarks/decide.py measures them properly)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from _series import BOUNDED, CUT, FAMILIES, LEAKS, make

from memdiag.analysis.diagnose import diagnose
from memdiag.values.verdict import Verdict

NUMBER = 25
SEED = 4711


@pytest.fixture(scope="module")
def said() -> list[tuple[str, str, Verdict]]:
    made = [make(family, SEED, i) for family in FAMILIES for i in range(NUMBER)]
    return [(m.family, m.truth, diagnose(m.recording()).verdict) for m in made]


def test_bounded_runs_are_hardly_ever_called_leaks(said: list[tuple[str, str, Verdict]]) -> None:
    wrong = [s for s in said if s[0] in BOUNDED and s[2] is Verdict.LEAK]
    assert len(wrong) <= 0.01 * NUMBER * len(BOUNDED), wrong


def test_truncated_warmups_are_hardly_ever_called_leaks(
    said: list[tuple[str, str, Verdict]],
) -> None:
    wrong = [s for s in said if s[0] in CUT and s[2] is Verdict.LEAK]
    assert len(wrong) <= 0.03 * NUMBER * len(CUT), wrong


def test_leaks_are_found_and_hardly_ever_called_stable(
    said: list[tuple[str, str, Verdict]],
) -> None:
    leaks = [s[2] for s in said if s[0] in LEAKS and s[1] == "leak"]
    assert leaks.count(Verdict.LEAK) >= 0.8 * len(leaks)
    assert leaks.count(Verdict.STABLE) + leaks.count(Verdict.WARMUP) <= 0.06 * len(leaks)


def test_bounded_runs_are_rarely_left_open(said: list[tuple[str, str, Verdict]]) -> None:
    left = [s for s in said if s[1] == "bounded" and s[2] is Verdict.INCONCLUSIVE]
    assert len(left) <= 0.1 * NUMBER * len(BOUNDED)
