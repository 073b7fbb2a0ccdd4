"""Searches lines for the user's patterns, each within a time limit."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from memdiag.capture.logtags.patterns import Pattern, TagKind

# A line takes microseconds. A pattern that takes this much processor time on several lines has
# catastrophic backtracking, and is disabled. Heuristic.
LIMIT_S = 0.1
_STRIKES = 3
_MAX_NAME = 200
_SIGNAL, _TIMER = signal.SIGVTALRM, signal.ITIMER_VIRTUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A tag in a line. name: of the phase or counter. value: of the step or counter."""

    kind: TagKind
    name: str = ""
    value: float = 0.0


class Search(Protocol):
    """Searches a text for an expression."""

    def __call__(self, expression: re.Pattern[str], text: str) -> re.Match[str] | None:
        """As `expression.search(text)`. Raises TimeoutError if it takes too long."""


class LimitedSearch:
    """Search with a limit of LIMIT_S of processor time. Works only in the main thread: the regular
    expression engine checks for signals, and ends if a handler raises.
    """

    def __init__(self) -> None:
        self._armed = False
        signal.signal(_SIGNAL, self._ring)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {_SIGNAL})

    def __call__(self, expression: re.Pattern[str], text: str) -> re.Match[str] | None:
        """The match, or None. Raises TimeoutError."""
        signal.setitimer(_TIMER, LIMIT_S)
        self._armed = True
        try:
            return expression.search(text)
        finally:
            self._armed = False
            signal.setitimer(_TIMER, 0.0)

    def _ring(self, number: int, frame: object) -> None:
        if self._armed:
            self._armed = False
            raise TimeoutError


class Matcher:
    """Searches every line for all patterns of the user, in their order."""

    def __init__(self, patterns: Sequence[Pattern], search: Search) -> None:
        self._search = search
        self._live = list(patterns)
        self._strikes: dict[str, int] = {}
        self._found: dict[str, int] = {pattern.where: 0 for pattern in patterns}
        self._misread: dict[str, str] = {}
        self._lines = 0
        self._steps = 0
        self.disabled: list[str] = []

    def tags(self, line: str) -> Iterator[Tag]:
        """The tags in the line."""
        self._lines += 1
        for pattern in tuple(self._live):
            try:
                match = self._search(pattern.expression, line)
            except (TimeoutError, RecursionError):
                self._strike(pattern)
                continue
            tag = None if match is None else self._tag(pattern, match)
            if tag is not None:
                yield tag

    def notes(self) -> Iterator[str]:
        """Notes for the user, one sentence each."""
        yield from self.disabled
        for where, count in self._found.items():
            if count == 0 and not any(note.startswith(where) for note in self.disabled):
                lines = f"{self._lines:,} lines" if self._lines != 1 else "1 line"
                yield f"{where} did not match any of {lines}"
        for where, text in self._misread.items():
            yield f"{where} found {text!r}, which is not a number: ignored"

    def _strike(self, pattern: Pattern) -> None:
        strikes = self._strikes[pattern.where] = self._strikes.get(pattern.where, 0) + 1
        if strikes >= _STRIKES:
            self._live.remove(pattern)
            self.disabled.append(
                f"{pattern.where} took more than {LIMIT_S:g} s on each of {strikes} lines "
                f"and was disabled after line {self._lines:,}"
            )

    def _tag(self, pattern: Pattern, match: re.Match[str]) -> Tag | None:
        text = pattern.tag(match)
        self._found[pattern.where] += 1
        if pattern.kind is TagKind.PHASE:
            return Tag(kind=TagKind.PHASE, name=(text or "").strip()[:_MAX_NAME])
        if pattern.kind is TagKind.STEP and text is None:
            self._steps += 1
            return Tag(kind=TagKind.STEP, value=self._steps)
        number = as_number(text or "")
        if number is None or (pattern.kind is TagKind.STEP and not number.is_integer()):
            self._misread.setdefault(pattern.where, (text or "")[:40])
            return None
        return Tag(kind=pattern.kind, name=pattern.name, value=number * pattern.factor)


def as_number(text: str) -> float | None:
    """`14,136`, `1_000`, `2.5e3`; None for anything else, also for infinite numbers."""
    try:
        number = float(text.replace(",", "").strip())
    except ValueError:
        return None
    return number if abs(number) < 2.0**63 else None
