"""The user's patterns for the lines of a log."""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memdiag import safe_open
from memdiag.errors import UsageError
from memdiag.values.sanitize import printable
from memdiag.values.units import bytes_per_unit


class TagKind(enum.Enum):
    """The kinds of tags."""

    STEP = "step"  # the job's step
    PHASE = "phase"  # the phase from now on, "" for none
    COUNTER = "counter"  # a number to be recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A pattern of the user.

    expression: the tag is the group named like the kind, else the first group that matched.
    name: of a counter, "" otherwise. factor: multiplies a counter's values. where: the option, for
    messages.
    """

    kind: TagKind
    expression: re.Pattern[str]
    where: str
    name: str = ""
    factor: int = 1

    def tag(self, match: re.Match[str]) -> str | None:
        """The text of the tag; None if the pattern has no group."""
        named = match.groupdict().get(self.kind.value)
        if named is not None:
            return named
        return next((group for group in match.groups() if group is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRequest:
    """The requested tags. patterns: if empty, those of common loggers are used.

    file: the log, None for the target's output.
    """

    patterns: tuple[Pattern, ...]
    file: Path | None

    def promises(self, kind: TagKind) -> bool:
        """Return True if the user has a pattern for this kind."""
        return any(pattern.kind is kind for pattern in self.patterns)


def step_pattern(text: str) -> Pattern:
    """`--step-regex TEXT`. Without a group each match is a step. Raises UsageError."""
    where = f"--step-regex {printable(text)}"
    return Pattern(kind=TagKind.STEP, expression=_compiled("--step-regex", text), where=where)


def phase_pattern(text: str) -> Pattern:
    """`--phase-regex TEXT`. Raises UsageError."""
    expression = _compiled("--phase-regex", text)
    _demand_group("--phase-regex", expression, r"phase: (\w+)")
    where = f"--phase-regex {printable(text)}"
    return Pattern(kind=TagKind.PHASE, expression=expression, where=where)


def counter_pattern(text: str) -> Pattern:
    """`--counter-regex NAME=TEXT`. A name like `vram_mb` makes a size of it. Raises UsageError."""
    name, equals, regex = text.partition("=")
    if not equals or not name.strip() or not regex:
        raise UsageError(
            f"--counter-regex {printable(text)!r} has no name or no pattern",
            remedy=r"write NAME=PATTERN: --counter-regex 'copies=Copies: (\d+)'",
        )
    expression = _compiled("--counter-regex", regex)
    _demand_group("--counter-regex", expression, r"copies=Copies: (\d+)")
    column, factor = _as_size(name.strip())
    return Pattern(
        kind=TagKind.COUNTER,
        expression=expression,
        where=f"--counter-regex {printable(text)}",
        name=column,
        factor=factor,
    )


def request(
    *,
    steps: Sequence[str],
    phases: Sequence[str],
    counters: Sequence[str],
    file: Path | None,
    output: bool,
) -> TagRequest | None:
    """The request of the options, None for none. Raises UsageError.

    file: of `--tags-from`, None if it is absent or means the output. output: search the target's
    output (requested, or there are patterns and no file).
    """
    patterns = (
        *map(step_pattern, steps),
        *map(phase_pattern, phases),
        *map(counter_pattern, counters),
    )
    if file is not None:
        _refuse_unreadable(file)
    return TagRequest(patterns=patterns, file=file) if file or output or patterns else None


def _compiled(option: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"invalid regular expression {printable(text)!r} for {option}: {printable(str(error))}",
            remedy=r"put it in single quotes; escape special characters: \[ \. \|",
        ) from error


def _demand_group(option: str, expression: re.Pattern[str], example: str) -> None:
    if expression.groups == 0:
        raise UsageError(
            f"{option} {printable(expression.pattern)!r} has no group for the tag",
            remedy=f"put the tag in parentheses: {option} '{example}'",
        )


def _as_size(name: str) -> tuple[str, int]:
    """`vram_mb` becomes `vram_bytes` times 10**6; other names stay."""
    stem, _, unit = name.rpartition("_")
    factor = bytes_per_unit(unit) if stem and len(unit) > 1 else None
    return (name, 1) if factor is None else (f"{stem}_bytes", factor)


def _refuse_unreadable(path: Path) -> None:
    """Raise UsageError for an existing path that is not a readable file."""
    shown = printable(str(path))
    try:
        if path.exists() and not path.is_file():
            raise UsageError(
                f"--tags-from {shown} is not a regular file",
                remedy="pass the log of the command",
            )
        if path.exists():
            os.close(safe_open.open_regular(path))
    except OSError as error:
        raise UsageError(
            f"--tags-from {shown} cannot be read: {error.strerror}", remedy="check its permissions"
        ) from error
    if not path.parent.is_dir():
        raise UsageError(
            f"--tags-from: directory not found: {printable(str(path.parent))}",
            remedy="create it first, or pass another log",
        )
