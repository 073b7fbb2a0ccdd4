"""COMMAND's status is memdiag's: all 256 of them, and all deaths by signals."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

from .campaign import Case, Ground, Result, inject
from .effects import UNGATED
from .running import MEMDIAG, blamed, complaints, environ, run

# What memdiag means by these without the options that leave the status to COMMAND.
_OWN_CODES = (1, 2, 3, 4, 126, 127, 130, 141, 255)
# The process does not end by these, or a shell cannot raise them.
_NOT_DEADLY = {
    signal.SIGCHLD,
    signal.SIGCONT,
    signal.SIGURG,
    signal.SIGWINCH,
    signal.SIGSTOP,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
}


def statuses(ground: Ground) -> Result:
    """`sh -c 'exit N'` for every N, `sh -c 'kill -N $$'` for every signal."""
    cases = [_case(f"exit {n}", f"exit {n}", n, UNGATED) for n in range(256)]
    for n in _OWN_CODES:
        cases.append(_case(f"exit {n}, no options", f"exit {n}", n, ()))
        cases.append(_case(f"exit {n} when measured", f"sleep 0.3; exit {n}", n, UNGATED))
    deadly = [number for number in signal.valid_signals() if number not in _NOT_DEADLY]
    for number in sorted(deadly):
        # glibc keeps 32 and 33 for itself.
        if number not in (32, 33):
            script = f"kill -{int(number)} $$; sleep 9"
            cases.append(_case(f"death by {int(number)}", script, 128 + number, UNGATED))
    return inject("statuses", ground, cases)


def _case(name: str, script: str, wanted: int, options: tuple[str, ...]) -> Case:
    return Case(name=name, run=partial(_kept, script=script, wanted=wanted, options=options))


def _kept(place: Path, *, script: str, wanted: int, options: tuple[str, ...]) -> list[str]:
    command = [*MEMDIAG, "run", "-q", "-o", str(place / "r.csv"), *options, "--", "sh", "-c"]
    within = "ulimit -c 0; " + script
    ended = run([*command, within], cwd=place, env=environ(place), grace_s=2.0)
    found = complaints(ended)
    if not ended.hang and ended.status != wanted:
        found.append(f"the status is {ended.status}, alone {wanted}")
    return blamed(ended, found)
