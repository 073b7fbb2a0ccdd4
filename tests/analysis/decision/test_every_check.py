"""Every window, check and end of the decision has a name and a test file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdiag.analysis.decision import decide, ends
from memdiag.analysis.decision.across import decide as across

FILES = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
# Some are asked at two places.
ALL = list(
    {id(one): one for one in (*decide.everything(), *ends.ENDS, *across.everything())}.values()
)
NAMES = [one.name for one in ALL]


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_test_file(name: str) -> None:
    assert name in FILES


def test_names_are_unique() -> None:
    assert sorted(NAMES) == sorted(set(NAMES))


def test_no_test_file_is_of_a_check_that_is_gone() -> None:
    assert FILES - set(NAMES) == {"every_check"}
