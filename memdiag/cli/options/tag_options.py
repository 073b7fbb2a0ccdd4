"""The options that tell where steps and phases stand in a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memdiag.errors import UsageError

if TYPE_CHECKING:
    from memdiag.capture.logtags.patterns import TagRequest

StepRegex = Annotated[
    list[str] | None,
    typer.Option(
        "--step-regex",
        metavar="REGEX",
        help=r"Take the step from lines of output or log: 'step (\d+)'.",
    ),
]
PhaseRegex = Annotated[
    list[str] | None,
    typer.Option(
        "--phase-regex",
        metavar="REGEX",
        help=r"Take the phase from there: 'phase: (\w+)'.",
    ),
]
CounterRegex = Annotated[
    list[str] | None,
    typer.Option(
        "--counter-regex",
        metavar="NAME=REGEX",
        help=r"Record a number from there: 'copies=Copies: (\d+)'.",
    ),
]
TagsFrom = Annotated[
    str | None,
    typer.Option(
        "--tags-from",
        metavar="FILE",
        help="Read them in FILE, which is being written; - for the output. Without a REGEX, by "
        "what common loggers write.",
    ),
]
TagsFromFile = Annotated[
    str | None,
    typer.Option(
        "--tags-from",
        metavar="FILE",
        help="The log that the process writes. Without a REGEX, steps and phases are read by what "
        "common loggers write.",
    ),
]


def wanted(
    *,
    steps: list[str] | None,
    phases: list[str] | None,
    counters: list[str] | None,
    source: str | None,
    sees_output: bool,
) -> TagRequest | None:
    """What is to be looked for, None for nothing. Raises UsageError.

    sees_output: the target's output can be read, because memdiag starts it.
    """
    regexes = [*(steps or ()), *(phases or ()), *(counters or ())]
    if source is None and not regexes:
        return None  # the usual case, which must not wait for an import
    if not sees_output and source in {None, "-"}:
        raise UsageError(
            "the output of a process that runs already cannot be seen",
            remedy="name the log that it writes: --tags-from train.log",
        )
    from memdiag.capture.logtags.patterns import request

    return request(
        steps=steps or (),
        phases=phases or (),
        counters=counters or (),
        file=None if source in {None, "-"} else Path(source or ""),
        output=source == "-",
    )
