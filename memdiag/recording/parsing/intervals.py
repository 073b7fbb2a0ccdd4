"""How far apart readings are, where the command that took them or a sentence above them says it."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = r"([0-9]{1,6}(?:\.[0-9]{1,3})?)"
_PAUSE = re.compile(
    r"(?:(?<!await )(?<!Thread\.)\bsleep|\bStart-Sleep(?: -s\w*)?|\bwatch -n)"
    rf"(?: |\(|(?<=n)){_NUMBER}([smhd]?)\b|\b(?:sleep|Start-Sleep|watch)\b"
)
_LOOP = re.compile(r"\b(?:while|until|for|watch)\b")
# Of a shell: a program that waits between its own steps is something else.
_OF_LOOP = re.compile(rf"(?<![\w.])(?:sleep|watch -n) ?{_NUMBER}([smhd]?)\b")
_OPTION = re.compile(rf"\bnvidia-smi\b[^\n|;]{{0,300}}\s(?:-l|--loop)[ =]{_NUMBER}\b")
_IN_WORDS = re.compile(
    r"(?i)\b(?:every|each|(?:once|one \w+|one|samples?|snapshots?|readings?) (?:an?|per|every)) (?:"
    rf"{_NUMBER} ?(s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?)"
    r"|(minute|hour|day))\b"
)


def pause_s(command: str) -> float | None:
    """Seconds that a command waits in each turn of its loop, NaN if it waits for an unknown time,
    None if it does not wait.
    """
    found = _PAUSE.search(command)
    if found is None:
        return None
    return float("nan") if found[1] is None else float(found[1]) * _SECONDS[found[2] or "s"]


def interval_s(text: str) -> float | None:
    """Seconds between readings, None if the text does not say them, or names several."""
    found = set(_intervals(text))
    return found.pop() if len(found) == 1 else None


def _intervals(text: str) -> Iterator[float]:
    if _LOOP.search(text) is not None:
        for number, unit in _OF_LOOP.findall(text):
            yield float(number) * _SECONDS[unit or "s"]
    for number in _OPTION.findall(text):
        yield float(number)
    for number, unit, word in _IN_WORDS.findall(text):
        yield float(number or 1) * _SECONDS[(unit or word)[0].lower()]
