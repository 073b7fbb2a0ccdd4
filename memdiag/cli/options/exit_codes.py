"""The exit code of a command: pure functions from what was found to a number.

Precedence, first match wins (the README's table says the same):

1. Interrupted by Ctrl-C: 130.
2. `run` only, unless `--exit-code verdict`, and unless memdiag itself ended the command
   (`--stop-on leak`, `--duration`): a COMMAND that failed decides, with its own status, or
   128 + N when signal N killed it. (One that could not be started raises CannotStart instead,
   which carries 126 or 127.)
3. A source could not be analysed: 2. As with grep, an error outranks what the other sources
   showed, because the answer is not about all that was asked for.
4. A leak, or a broken budget: 1.
5. Nothing was measured, in one recording or in all: 4.
6. Inconclusive, or a budget that could not be held: 3, or 0 with `--inconclusive pass`.
7. Stable or warm-up: 0.

Where memdiag fails after COMMAND has ended well (no memory is left to judge the recording, a bug),
COMMAND's status stands, and a line on stderr says so. It is 4 where a verdict was asked for: with
`--exit-code verdict`, or with a budget.

`--fail-on` chooses which of 4 and 6 count: what is not named does not fail. `never` leaves 1 to 3.
"""

from __future__ import annotations

import enum
from collections.abc import Collection

from memdiag.errors import Exit
from memdiag.values.comparison import BAD, Comparison, Effect
from memdiag.values.findings import Diagnosis, Standing
from memdiag.values.measurements import Ending
from memdiag.values.verdict import Verdict


class Inconclusive(enum.Enum):
    """What `--inconclusive` makes of a doubt."""

    FAIL = "fail"
    PASS = "pass"


class FailOn(enum.Enum):
    """What `--fail-on` lets a command fail on."""

    LEAK = "leak"
    WARMUP = "warmup"  # for jobs that must be flat from the start
    BUDGET = "budget"
    INCONCLUSIVE = "inconclusive"
    NEVER = "never"


DEFAULT_FAIL_ON = frozenset({FailOn.LEAK, FailOn.BUDGET, FailOn.INCONCLUSIVE})


class Decider(enum.Enum):
    """What `--exit-code` lets decide under `run`."""

    COMMAND = "command"
    VERDICT = "verdict"


def exit_code(
    diagnosis: Diagnosis,
    *,
    inconclusive: Inconclusive = Inconclusive.FAIL,
    fail_on: Collection[FailOn] = DEFAULT_FAIL_ON,
) -> int:
    """The exit code, 0..255, by the precedence above, from 3 on.

    inconclusive: whether doubts fail, of those that `fail_on` names: of verdicts by
        `inconclusive`, of budgets by `budget`.
    """
    return _of_findings(diagnosis, fail_on, inconclusive)


def before_findings(
    *,
    decider: Decider = Decider.COMMAND,
    command: Ending | None = None,
    stopped_by_us: bool = False,
    interrupted: bool = False,
) -> int | None:
    """The exit code where something else than the findings decides, by the precedence above;
    None where they do.

    command: how `run`'s command ended; None for `watch`, whose target is not ours.
    stopped_by_us: memdiag ended the command, so that its status says nothing about it.
    interrupted: the person pressed Ctrl-C.
    """
    if interrupted:
        return Exit.INTERRUPTED
    if command is not None and decider is Decider.COMMAND and not stopped_by_us:
        return shell_status(command) or None
    return None


def shell_status(ending: Ending) -> int:
    """The status a shell would show: 128 + N for signal N, else the code; 0 if unknown."""
    if ending.signal is not None:
        return 128 + ending.signal
    return ending.code or 0


def _of_findings(
    diagnosis: Diagnosis, fail_on: Collection[FailOn], inconclusive: Inconclusive
) -> int:
    if diagnosis.failures:
        return Exit.USAGE
    verdicts = {found.verdict for found in diagnosis.recordings}
    standings = {held.standing for held in diagnosis.budgets}
    if (
        (FailOn.LEAK in fail_on and Verdict.LEAK in verdicts)
        or (FailOn.WARMUP in fail_on and Verdict.WARMUP in verdicts)
        or (FailOn.BUDGET in fail_on and Standing.BROKEN in standings)
    ):
        return Exit.LEAK
    if not diagnosis.recordings or any(not found.series for found in diagnosis.recordings):
        return Exit.CANNOT_MEASURE
    doubtful = (FailOn.INCONCLUSIVE in fail_on and Verdict.INCONCLUSIVE in verdicts) or (
        FailOn.BUDGET in fail_on and Standing.UNCLEAR in standings
    )
    if doubtful and inconclusive is Inconclusive.FAIL:
        return Exit.INCONCLUSIVE
    return Exit.NO_LEAK


def of_comparison(compared: Comparison, inconclusive: Inconclusive = Inconclusive.FAIL) -> int:
    """The exit code of `compare`: 2 for unread sources, 1 worse or a new leak, 3 can't tell, 0."""
    if compared.failures:
        return Exit.USAGE
    if compared.effect in BAD:
        return Exit.LEAK
    if compared.effect is Effect.INCONCLUSIVE and inconclusive is Inconclusive.FAIL:
        return Exit.INCONCLUSIVE
    return Exit.NO_LEAK
