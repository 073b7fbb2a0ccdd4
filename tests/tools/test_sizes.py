"""The limits on the size of files and functions are checked as they are stated."""

from __future__ import annotations

from pathlib import Path

import pytest
import sizes


@pytest.fixture
def complaints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sizes, "ROOT", tmp_path)

    def about(text: str) -> list[str]:
        path = tmp_path / "module.py"
        path.write_text(text)
        return list(sizes.complaints_about(path))

    return about


def test_a_file_may_have_399_lines(complaints) -> None:
    assert complaints("x = 1\n" * 399) == []
    assert complaints("x = 1\n" * 400) == ["module.py: 400 lines; at most 399"]


@pytest.mark.parametrize("head", ["def f():", "async def f():"])
def test_a_function_may_have_49_lines(complaints, head: str) -> None:
    assert complaints(head + "\n" + "    x = 1\n" * 48) == []
    assert complaints(head + "\n" + "    x = 1\n" * 49) == [
        "module.py:1: f has 50 lines; at most 49"
    ]
