"""How the report says what ended a target."""

from __future__ import annotations

import pytest

from memdiag.model import Ending
from memdiag.report.remarks import ending
from memdiag.report.screen import Screen

OOM = "killed by the kernel's OOM killer"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            Ending(signal=9, why=OOM, at_bytes=3_980_000_000, limit_bytes=4_000_000_000),
            f"The command was killed by SIGKILL ({OOM} at 3.98 GB of 4.00 GB).",
        ),
        (
            Ending(code=137, why=OOM, at_bytes=3_980_000_000),
            f"The command failed with exit status 137 ({OOM} at 3.98 GB).",
        ),
        (
            Ending(signal=9, why=OOM, limit_bytes=4_000_000_000),
            f"The command was killed by SIGKILL ({OOM}).",
        ),
        (Ending(signal=9), "The command was killed by SIGKILL."),
    ],
)
def test_a_kill_for_memory_says_how_far_it_had_come(how: Ending, said: str) -> None:
    assert ending(how, Screen(width=80)) == said
