"""The tables of docs/method.md and the gate on numbers outside them."""

from __future__ import annotations

import ast
from pathlib import Path

import decision_table
import pytest

import memdiag


def test_docs_are_those_of_the_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["decision_table.py", "--check"])
    assert decision_table.main() == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "line",
    [
        "if share > 0.35: pass",
        "LIMIT = 12",
        "y = x[: len(x) // 3]",
        "half = -0.5 * x",
        "big = 1e30  # no reason given",
    ],
)
def test_number_outside_the_tables_is_refused(line: str) -> None:
    assert list(decision_table.literals(line))


@pytest.mark.parametrize(
    "line",
    [
        "y = x[-1] + 2 * x[0]",
        'share: float = number(0.35, "run", "that is long")',
        "spread = blur / math.sqrt(12)  # exact: of a uniform distribution",
        "slope = a / max(b, 1e-300)",
        "found = True",
    ],
)
def test_plain_and_explained_numbers_are_not(line: str) -> None:
    assert not list(decision_table.literals(line))


def test_every_module_of_the_decision_with_parameters_is_in_the_table() -> None:
    package = Path(memdiag.__file__).parent / "analysis" / "decision"
    with_check = set()
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
        if names & {"CHECK", "PROPOSAL"} and "class Parameters" in text:
            with_check.add(path.stem)
    assert with_check <= decision_table.unique().keys()
