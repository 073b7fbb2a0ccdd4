"""The exit code of a command: pure functions from what was found to a number.

Precedence, first match wins (the README's table says the same):

1. Interrupted by Ctrl-C: 130.
2. memdiag has stopped the job at a level (`--on warn=stop`, `--on critical=stop`): 5, unless
   `--exit-code verdict`. A job that was stopped because of a leak has the code of its verdict.
3. `run` only, unless `--exit-code verdict`, and unless memdiag itself ended the command
   (`--stop-on leak`, `--on`, `--duration`): a COMMAND that failed decides, with its own status, or
   128 + N when signal N killed it. (One that could not be started raises CannotStart instead,
   which carries 126 or 127.)
4. A source could not be analyzed: 2. As with grep, an error outranks the results of the other
   sources, because the answer does not cover everything that was asked for.
5. A leak, or a broken budget: 1.
6. Nothing was measured, in one recording or in all: 4.
7. Inconclusive, or a budget without a clear result: 3, or 0 with `--inconclusive pass`.
8. Stable or warm-up: 0.

If memdiag fails after COMMAND has succeeded (no memory is left to judge the recording, a bug), the
exit code is COMMAND's, and a line on stderr reports the failure. It is 4 if a verdict was asked
for: with `--exit-code verdict`, or with a budget.

`--fail-on` chooses which of 5 and 7 count: what it does not name does not fail. `never` leaves 1
to 4.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping

from memdiag.cli.options.actions import Level
from memdiag.errors import Exit
from memdiag.values.comparison import BAD, Comparison, Effect
from memdiag.values.findings import Diagnosis, Standing
from memdiag.values.measurements import Ending
from memdiag.values.verdict import Verdict


class Inconclusive(enum.Enum):
    """What `--inconclusive` does with an inconclusive outcome."""

    FAIL = "fail"
    PASS = "pass"


class FailOn(enum.Enum):
    """The outcomes that `--fail-on` names."""

    LEAK = "leak"
    WARMUP = "warmup"  # for jobs that must be flat from the start
    BUDGET = "budget"
    INCONCLUSIVE = "inconclusive"
    NEVER = "never"


Outcome = Verdict | Standing
DEFAULT_FAIL_ON = frozenset({FailOn.LEAK, FailOn.BUDGET, FailOn.INCONCLUSIVE})
_CERTAIN: dict[FailOn, Outcome] = {
    FailOn.LEAK: Verdict.LEAK,
    FailOn.WARMUP: Verdict.WARMUP,
    FailOn.BUDGET: Standing.BROKEN,
}
_UNCLEAR: dict[FailOn, Outcome] = {
    FailOn.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    FailOn.BUDGET: Standing.UNCLEAR,
}


class Decider(enum.Enum):
    """What decides the exit code of `run` (`--exit-code`)."""

    COMMAND = "command"
    VERDICT = "verdict"


def failing_outcomes(
    fail_on: Collection[FailOn] = DEFAULT_FAIL_ON, inconclusive: Inconclusive = Inconclusive.FAIL
) -> frozenset[Outcome]:
    """The outcomes that fail a command, by `--fail-on` and `--inconclusive`.

    `fail_on` names verdicts by `inconclusive`, and budgets without a clear result by `budget`.
    """
    failing: set[Outcome] = {outcome for name, outcome in _CERTAIN.items() if name in fail_on}
    if inconclusive is Inconclusive.FAIL:
        failing |= {outcome for name, outcome in _UNCLEAR.items() if name in fail_on}
    return frozenset(failing)


def exit_code(diagnosis: Diagnosis, failing: Collection[Outcome] = failing_outcomes()) -> int:
    """The exit code, 0..255, by the precedence above, from 4 on."""
    if diagnosis.failures:
        return Exit.USAGE
    outcomes: set[Outcome] = {found.verdict for found in diagnosis.recordings}
    found = (outcomes | {held.standing for held in diagnosis.budgets}) & set(failing)
    if found & set(_CERTAIN.values()):
        return Exit.LEAK
    if not diagnosis.recordings or any(not found.series for found in diagnosis.recordings):
        return Exit.CANNOT_MEASURE
    return Exit.INCONCLUSIVE if found else Exit.NO_LEAK


def of_counts(counts: Mapping[str, int], failing: Collection[Outcome] = failing_outcomes()) -> int:
    """The exit code for so many recordings of each verdict, or "error", by the same precedence."""
    if counts.get("error"):
        return Exit.USAGE
    found = {verdict for verdict in Verdict if counts.get(verdict.value)} & set(failing)
    if found & set(_CERTAIN.values()):
        return Exit.LEAK
    if not any(counts.values()):
        return Exit.CANNOT_MEASURE
    return Exit.INCONCLUSIVE if found else Exit.NO_LEAK


def before_findings(
    *,
    decider: Decider = Decider.COMMAND,
    command: Ending | None = None,
    stopped_by_us: bool = False,
    interrupted: bool = False,
    stopped_at: Level | None = None,
) -> int | None:
    """The exit code if something other than the findings decides, by the precedence above; None if
    they do.

    command: how `run`'s command ended; None for `watch`, which did not start its target.
    stopped_by_us: memdiag ended the command, so that its status has no meaning.
    interrupted: the user pressed Ctrl-C. stopped_at: the level at which `--on` has ended the job.
    """
    if interrupted:
        return Exit.INTERRUPTED
    if stopped_at in {Level.WARN, Level.CRITICAL} and decider is Decider.COMMAND:
        return Exit.STOPPED
    if command is not None and decider is Decider.COMMAND and not stopped_by_us:
        return shell_status(command) or None
    return None


def shell_status(ending: Ending) -> int:
    """The status a shell would show: 128 + N for signal N, else the code; 0 if unknown."""
    if ending.signal is not None:
        return 128 + ending.signal
    return ending.code or 0


def of_comparison(compared: Comparison, inconclusive: Inconclusive = Inconclusive.FAIL) -> int:
    """The exit code of `compare`: 2 for unread sources, 1 worse or a new leak, 3 can't tell, 0."""
    if compared.failures:
        return Exit.USAGE
    if compared.effect in BAD:
        return Exit.LEAK
    if compared.effect is Effect.INCONCLUSIVE and inconclusive is Inconclusive.FAIL:
        return Exit.INCONCLUSIVE
    return Exit.NO_LEAK
