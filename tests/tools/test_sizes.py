"""The report of long files, and the count of lines of code."""

from __future__ import annotations

from pathlib import Path

import pytest
import sizes


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sizes, "ROOT", tmp_path)
    return tmp_path / "code.py"


def test_long_file_is_listed(source: Path) -> None:
    source.write_text("x = 1\n" * 399)
    assert list(sizes.long_parts(source)) == []
    source.write_text("x = 1\n" * 400)
    assert list(sizes.long_parts(source)) == ["code.py: 400 lines"]


@pytest.mark.parametrize("head", ["def f():", "async def f():"])
def test_long_function_is_listed(source: Path, head: str) -> None:
    source.write_text(head + "\n    x = 1" * 48)
    assert list(sizes.long_parts(source)) == []
    source.write_text(head + "\n    x = 1" * 49)
    assert list(sizes.long_parts(source)) == ["code.py:1: f has 50 lines"]


def test_comments_docstrings_and_blank_lines_are_not_code(source: Path) -> None:
    source.write_text(
        '"""Two\nlines."""\n\n# a comment\nx = 1\n\n\ndef f():\n    """One."""\n    return "a"\n'
    )
    assert sizes.code_lines(source) == 3
