"""Below the tables: evidence, how the run ended, missing metrics, notes."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memdiag.report.sections import exit_cause
from memdiag.report.text import numbers, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import paragraph, paragraphs
from memdiag.values.findings import Evidence, Leaking, RecordingFinding
from memdiag.values.measurements import Ending, Missing

if TYPE_CHECKING:
    from rich.text import Text

_MISSING = 6
_NOTES = 8


def evidence(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The kind of memory, and a sentence for each piece of evidence."""
    return paragraphs(statements(found, screen), screen.measure)


def statements(found: RecordingFinding, screen: Screen) -> list[str]:
    """The evidence as sentences, each once."""
    leaking = [] if found.leaking is None else [_leaking(found.leaking)]
    said = [_statement(statement, screen) for statement in found.evidence]
    return list(dict.fromkeys([*leaking, *said]))


def _leaking(leaking: Leaking) -> str:
    share = leaking.share
    part = "" if share is None else f" ({numbers.share(share)} of the growth)"
    return f"Kind of memory that grows: {wording.LEAKING[leaking.kind]}{part}."


def _statement(statement: Evidence, screen: Screen) -> str:
    return wording.EVIDENCE[statement.kind].format(
        subject=series_names.reference(statement.subject, screen),
        against=series_names.reference(statement.against, screen),
    )


def closing(found: RecordingFinding, screen: Screen) -> list[Text]:
    """How the target ended, what could not be measured, and what the reader decided."""
    lines: list[Text] = []
    if found.ending is not None:
        lines += paragraph(ending(found.ending, screen), screen.measure)
        lines += exit_cause.lines(found, screen)
    missing = [_missing(one, screen) for one in found.missing[:_MISSING]]
    lines += paragraphs(missing, screen.measure, lead="Missing:")
    lines += _more(len(found.missing) - _MISSING, "missing reading", screen)
    return lines + notes(found.notes, screen)


def notes(texts: Sequence[str], screen: Screen) -> list[Text]:
    """What the reader decided or skipped."""
    shown = [series_names.stopped(note, screen) for note in texts[:_NOTES]]
    lines = paragraphs(shown, screen.measure, lead="Note:")
    return lines + _more(len(texts) - _NOTES, "note", screen)


def ending(how: Ending, screen: Screen) -> str:
    """How the target ended, "" if it ended well or nothing is known."""
    why = f" ({screen.show(how.why)}{_how_far(how)})" if how.why else ""
    if how.signal is not None:
        return f"The command was killed by {_signal_name(how.signal)}{why}."
    if how.code:
        return f"The command failed with exit status {how.code}{why}."
    ended = f"The recording ended: {how.why}{_how_far(how)}"
    return series_names.stopped(ended, screen) if how.why else ""


def _how_far(how: Ending) -> str:
    """` at 3.98 GB of 4.00 GB`, as far as known."""
    held = "" if how.at_bytes is None else f" at {numbers.size(how.at_bytes)}"
    if how.limit_bytes is None:
        return held
    return f"{held} of {numbers.size(how.limit_bytes)}" if held else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _missing(missing: Missing, screen: Screen) -> str:
    name = series_names.metric(missing.metric, screen)
    owner = f" of {series_names.process(missing.process, screen)}" if missing.process else ""
    remedy = f"; {missing.why.remedy}" if missing.why.remedy else ""
    reason = missing.why.reason.rstrip(".") if remedy else missing.why.reason
    return f"{name}{owner}: {series_names.stopped(reason + remedy, screen)}"


def _more(number: int, thing: str, screen: Screen) -> list[Text]:
    if number <= 0:
        return []
    return paragraph(f"and {series_names.counted(number, thing)} more", screen.measure)
