"""Recognizes the lines of common loggers, for a log without patterns of the user.

Known forms: `Step 80: ...`, `step=80`, `{"global_step": 80, ...}`, `iter 250: loss`,
`iteration 10/500000`, `[Iter 40]`, mmengine's `Epoch(train) [1][ 50/1000]`, the bars of tqdm,
Lightning and Keras, `Phase transition: Predict -> Correct`, `Epoch 3/10`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memdiag.capture.logtags.match_patterns import Search, Tag, as_number
from memdiag.capture.logtags.patterns import TagKind

_NUMBER = r"\d[\d,_]*"
_BARS = (
    re.compile(
        rf"^(?P<bar>[^|]{{0,80}}?)\s*\d{{1,3}}%\|[^|]*\|\s*(?P<step>{_NUMBER})/(?P<total>{_NUMBER})"
    ),
    re.compile(rf"^\s*(?P<step>{_NUMBER})/(?P<total>{_NUMBER})\s+(?:\[[=>. ]+\]|\u2501)"),
    re.compile(rf"\bEpoch\(train\)\s+\[\d+\]\s*\[\s*(?P<step>{_NUMBER})/(?P<total>{_NUMBER})\]"),
)
# "total steps: 1000", "every step" and "step: 0.12 s" are not positions.
_STEP = re.compile(
    r"(?:^|(?<=[\s\[({,|;\"'>-]))"
    r"(?<!total\s)(?<!max\s)(?<!per\s)(?<!every\s)(?<!each\s)(?<!warmup\s)(?<!last\s)"
    r"(?:(?:global|train|training|optimizer|current)[_\s-]?)?(?:step|iter|iteration)"
    r"(?:\(train\))?[\"']?\s*(?:[:=\#]\s*)?[\[(]?\s*"
    rf"(?P<step>{_NUMBER})(?!\.?\d)(?!\s*(?:ms|s|sec|seconds|it/s|steps?)\b)(?!%)",
    re.IGNORECASE,
)
_PHASES = (
    re.compile(
        r"\bphase(?: transition| change)?\b\W*(?:\w+\s*(?:->|→|=>)\s*)?(?P<phase>[A-Za-z_][\w-]*)",
        re.IGNORECASE,
    ),
    re.compile(r"\b(?:stage|split)\s*[:=]\s*\W?(?P<phase>[A-Za-z_][\w-]*)", re.IGNORECASE),
)
_EPOCH = re.compile(
    r"\bepoch\b(?:\(train\))?[\"']?\s*[:=#]?\s*\[?\s*(?P<epoch>\d+(?:\.\d+)?)\b", re.IGNORECASE
)
_NO_TRAINING = re.compile(
    r"valid|eval|test|predict|sanity|load|download|token|map\b", re.IGNORECASE
)


class LoggerLines:
    """Finds steps, phases and epochs in lines of unknown loggers.

    A number is accepted as a step if it is larger than the previous one in the same form, which
    excludes settings that are printed once.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._form = ""
        self._seen: dict[str, float] = {}
        self._base = self._last = 0.0
        self._broken = False

    def tags(self, line: str) -> Iterator[Tag]:
        """The tags in the line."""
        if self._broken:
            return
        try:
            yield from self._tags(line)
        except TimeoutError:  # not expected of these patterns, but not proved
            self._broken = True

    def notes(self) -> Iterator[str]:
        """Notes for the user."""
        if self._broken:
            yield "the log's lines took too long to search, so the search was stopped"
        elif not self._form:
            yield "memdiag found no steps in a known form in the log (see --step-regex)"

    def _tags(self, line: str) -> Iterator[Tag]:
        step = self._step(line)
        if step is not None:
            yield Tag(kind=TagKind.STEP, value=step)
        for pattern in _PHASES:
            found = self._search(pattern, line)
            if found is not None:
                yield Tag(kind=TagKind.PHASE, name=found["phase"])
                break
        epoch = self._search(_EPOCH, line)
        if epoch is not None:
            yield Tag(kind=TagKind.COUNTER, name="epoch", value=float(epoch["epoch"]))

    def _step(self, line: str) -> float | None:
        for number, bar in enumerate(_BARS):
            match = self._search(bar, line)
            if match is not None:
                title = match.groupdict().get("bar") or ""
                if _NO_TRAINING.search(title):
                    return None
                title = re.sub(r"\d+", "", title)
                return self._moved(f"bar {number} {title} {match['total']}", match["step"], True)
        match = self._search(_STEP, line)
        return None if match is None else self._moved("step", match["step"], False)

    def _moved(self, form: str, text: str, starts_again: bool) -> float | None:
        """The job's step; None if the form is not trusted yet, or another one is."""
        value = as_number(text)
        if value is None or (self._form and form != self._form):
            return None
        if not self._form:
            before = self._seen.get(form, value)
            self._seen[form] = value
            if value <= before:
                return None
            self._form = form
        elif starts_again and value < self._last:
            self._base += self._last  # each pass has a new bar
        self._last = value
        return self._base + value
