"""Finds the steps that a program prints into a file, for a recording that has none.

The output itself is not touched: a terminal or a pipe cannot be read without standing in its way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from memdiag.capture.logtags.match_patterns import as_number
from memdiag.capture.logtags.tail_file import LineDecoder
from memdiag.safe_open import open_regular

_TAIL_BYTES = 256 << 10
_LINES_AT_LEAST = 3
_NUMBER = r"[0-9]+(?:,[0-9]{3})*"
# "step 80:", "Iter: [ 40/500]", "'global_step': 80"; not "0.5 s/it", "batch 0.25".
_NAMED = re.compile(
    r"(?<![A-Za-z0-9])((?:[a-z]+_)?(?:steps?|iter(?:ation)?s?|it|batch(?:es)?|updates?|episodes?|"
    rf"rounds?)[\"']?\s*[:=#]?\s*[\[(]?\s*)({_NUMBER})(?![0-9]*[.%])",
    re.IGNORECASE,
)


class PrintedSteps:
    """The files that a program's output goes to, from now on."""

    def __init__(self, process: int | str) -> None:
        """process: a pid, or "self" for a program that has memdiag's output."""
        self._files: list[tuple[int, int, str]] = []
        for number in (1, 2):
            name = Path(f"/proc/{process}/fd/{number}")
            try:
                path = "" if process == "self" else f"--tags-from {name.readlink()} "
                file = open_regular(name)
            except OSError:  # no file, or not ours to read
                continue
            self._files.append((file, os.fstat(file).st_size, path))

    def note(self) -> str:
        """The option that would have recorded the steps, "" if the output names none."""
        for file, begun, path in self._files:
            at = max(begun, os.fstat(file).st_size - _TAIL_BYTES)
            tail = os.pread(file, _TAIL_BYTES, at)
            if regex := regex_of_steps([line for _, line in LineDecoder().feed(0.0, tail)]):
                return f"the output names steps: {path}--step-regex '{regex}'"
        return ""

    def close(self) -> None:
        """Close the files."""
        for file, _, _ in self._files:
            os.close(file)
        self._files.clear()


def regex_of_steps(lines: Sequence[str]) -> str:
    """A regular expression for the steps that most of these lines name, "" if they name none.

    It stands between single quotes in a shell as it is. Steps only rise.
    """
    seen: dict[str, int] = {}
    for line in lines:
        for found in _NAMED.finditer(line):
            regex = _regex(found[1], found[2])
            seen[regex] = seen.get(regex, 0) + 1
    for regex in sorted(seen, key=lambda one: -seen[one]):
        steps = list(_numbers(re.compile(regex), lines))
        if len(steps) >= _LINES_AT_LEAST and all(a < b for a, b in pairwise(steps)):
            return regex
    return ""


def _regex(prefix: str, number: str) -> str:
    """A pattern for such a number after these words, with any blanks and quotes between."""
    pieces = re.findall(r"\s+|[\"']|[^\s\"']+", prefix)
    plain = (
        r"\s+" if piece.isspace() else "." if piece in {'"', "'"} else re.escape(piece)
        for piece in pieces
    )
    digits = r"([\d,]+)" if "," in number else r"(\d+)"
    return rf"\b{''.join(plain)}{digits}"


def _numbers(expression: re.Pattern[str], lines: Sequence[str]) -> Iterator[float]:
    for line in lines:
        if (found := expression.search(line)) is not None and (
            number := as_number(found[1])
        ) is not None:
            yield number
