"""The lines that common loggers write, for a log whose patterns nobody has named.

Forms met: `Step 80: ...`, `step=80`, `{"global_step": 80, ...}`, `iter 250: loss`,
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
# "total steps: 1000" and "every step" are no positions, "step: 0.12 s" is none either.
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

    A number is believed to be a step when it is larger than the one that the same form showed
    before: a setting that is printed once is none.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        self._form = ""
        self._seen: dict[str, float] = {}
        self._base = self._last = 0.0
        self._broken = False

    def tags(self, line: str) -> Iterator[Tag]:
        """What the line says."""
        if self._broken:
            return
        try:
            yield from self._tags(line)
        except TimeoutError:  # our own patterns take no such time, but nobody has proved it
            self._broken = True

    def notes(self) -> Iterator[str]:
        """What a person should know about it."""
        if self._broken:
            yield "the log's lines took too long to read and were given up"
        elif not self._form:
            yield "no form of steps that memdiag knows is in the log (see --step-regex)"

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
        """The job's step; None while the form is not trusted, or is another one than that is."""
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
            self._base += self._last  # a bar of its own for each pass
        self._last = value
        return self._base + value
