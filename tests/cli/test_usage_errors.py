"""Wrong usages, one by one: what is printed for each is in `usage_errors.txt`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli.draw_usage_errors import printed, rows, workplace

ROWS = rows()


@pytest.fixture(scope="module", autouse=True)
def _directory() -> Iterator[None]:
    with workplace():
        yield


@pytest.mark.parametrize("command", ROWS)
def test_wrong_usage_gets_one_line_and_hints(command: str) -> None:
    assert printed(command) == ROWS[command]


@pytest.mark.parametrize("command", ROWS)
def test_expected_errors_have_one_form(command: str) -> None:
    *lines, code = ROWS[command].split("\n")
    assert code in {"[2]", "[4]", "[126]", "[127]"}
    assert lines[0].startswith("memdiag: error: ")
    assert all(line.startswith("  hint: ") for line in lines[1:])
    assert len(lines) <= 3
    assert not lines[0].endswith(".")
