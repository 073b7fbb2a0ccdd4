"""Every combination of what was found, how the command ended and what was asked for."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from report import diagnoses

from memdiag.cli.options import exit_codes
from memdiag.cli.options.actions import Level
from memdiag.cli.options.exit_codes import (
    Decider,
    Inconclusive,
    before_findings,
    exit_code,
    failing_outcomes,
    shell_status,
)
from memdiag.values.findings import Diagnosis
from memdiag.values.measurements import Ending

_LEAK = diagnoses.leak_with_phases().recordings[0]
_DOUBT = diagnoses.inconclusive().recordings[0]
_WARMUP = diagnoses.warmup().recordings[0]
_STABLE = diagnoses.stable().recordings[0]
_NOTHING = diagnoses.nothing_measured().recordings[0]
_FAILED = diagnoses.failure().failures

# What was found -> its code when a doubt fails, and when it passes.
FOUND = {
    "leak": (diagnoses.of(_LEAK), 1, 1),
    "warm-up": (diagnoses.of(_WARMUP), 0, 0),
    "stable": (diagnoses.of(_STABLE), 0, 0),
    "inconclusive": (diagnoses.of(_DOUBT), 3, 0),
    "nothing measured": (diagnoses.of(_NOTHING), 4, 4),
    "no recording": (diagnoses.of(), 4, 4),
    "failure": (diagnoses.of(failures=_FAILED), 2, 2),
    "failure and leak": (diagnoses.of(_LEAK, failures=_FAILED), 2, 2),
    "failure and stable": (diagnoses.of(_STABLE, failures=_FAILED), 2, 2),
    "failure and nothing": (diagnoses.of(_NOTHING, failures=_FAILED), 2, 2),
    "leak and doubt": (diagnoses.of(_DOUBT, _LEAK), 1, 1),
    "leak and nothing": (diagnoses.of(_NOTHING, _LEAK), 1, 1),
    "nothing and doubt": (diagnoses.of(_DOUBT, _NOTHING), 4, 4),
    "nothing and stable": (diagnoses.of(_STABLE, _NOTHING), 4, 4),
    "doubt and stable": (diagnoses.of(_STABLE, _DOUBT), 3, 0),
    "stable and warm-up": (diagnoses.of(_STABLE, _WARMUP), 0, 0),
}
# How the command ended -> the status a shell shows.
ENDED = {
    "well": (Ending(code=0), 0),
    "with 7": (Ending(code=7), 7),
    "with 255": (Ending(code=255), 255),
    "by SIGKILL": (Ending(signal=9), 137),
    "by SIGINT": (Ending(signal=2), 130),
    "nobody knows how": (Ending(), 0),
}
COMBINATIONS = list(
    itertools.product(FOUND, [*ENDED, None], Inconclusive, Decider, [False, True], [False, True])
)


def expected(
    found: str,
    ended: str | None,
    inconclusive: Inconclusive,
    decider: Decider,
    stopped: bool,
    interrupted: bool,
) -> int:
    """The README's table, written once more and independently."""
    _, failing, passing = FOUND[found]
    verdict = failing if inconclusive is Inconclusive.FAIL else passing
    status = 0 if ended is None else ENDED[ended][1]
    command_decides = decider is Decider.COMMAND and not stopped and status != 0
    return 130 if interrupted else status if command_decides else verdict


def test_every_combination_has_its_code() -> None:
    wrong = {}
    for combination in COMBINATIONS:
        found, ended, inconclusive, decider, stopped, interrupted = combination
        code = before_findings(
            decider=decider,
            command=None if ended is None else ENDED[ended][0],
            stopped_by_us=stopped,
            interrupted=interrupted,
        )
        if code is None:
            code = exit_code(FOUND[found][0], failing_outcomes(inconclusive=inconclusive))
        if code != expected(*combination):
            wrong[combination] = code
    assert wrong == {}


@pytest.mark.parametrize(
    ("diagnosis", "code"), [(found, code) for found, code, _ in FOUND.values()], ids=FOUND
)
def test_order_of_recordings_does_not_matter(diagnosis: Diagnosis, code: int) -> None:
    turned = replace(diagnosis, recordings=diagnosis.recordings[::-1])
    assert exit_code(diagnosis) == exit_code(turned) == code


@pytest.mark.parametrize(("ending", "status"), ENDED.values(), ids=ENDED)
def test_a_commands_status_is_what_a_shell_shows(ending: Ending, status: int) -> None:
    assert shell_status(ending) == status


@pytest.mark.parametrize(
    ("level", "decider", "code"),
    [
        (Level.CRITICAL, Decider.COMMAND, 5),
        (Level.WARN, Decider.COMMAND, 5),
        (Level.LEAK, Decider.COMMAND, None),  # the verdict's
        (Level.CRITICAL, Decider.VERDICT, None),
    ],
)
def test_job_that_was_stopped_at_a_level_has_its_own_code(
    level: Level, decider: Decider, code: int | None
) -> None:
    ending = Ending(signal=15)
    given = {"decider": decider, "command": ending, "stopped_by_us": True, "stopped_at": level}
    assert before_findings(**given) == code
    assert before_findings(**given, interrupted=True) == 130


def test_status_of_a_command_is_kept() -> None:
    for code in range(256):
        assert before_findings(command=Ending(code=code)) == (code or None)


def test_the_documented_precedence_has_no_gap() -> None:
    numbers = re.findall(r"^(\d)\. ", exit_codes.__doc__ or "", re.M)
    assert numbers == [str(at) for at in range(1, len(numbers) + 1)]
