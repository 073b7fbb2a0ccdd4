"""Below the tables: evidence, how the run ended, missing metrics, notes."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memdiag.report.sections import exit_cause
from memdiag.report.text import numbers, rates, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import joined, paragraph, paragraphs
from memdiag.values.findings import Evidence, GrowthPart, Leaking, RecordingFinding
from memdiag.values.measurements import AxisKind, Ending, Missing

if TYPE_CHECKING:
    from rich.text import Text

_MISSING = 6
_NOTES = 8
_PARTS = 4


def evidence(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The kind of memory, and a sentence for each piece of evidence."""
    return paragraphs(statements(found, screen), screen.measure)


def statements(found: RecordingFinding, screen: Screen) -> list[str]:
    """The evidence as sentences, each once."""
    kind = "" if found.leaking is None else f"Kind of memory that grows: {leaking(found.leaking)}."
    said = [statement(one, screen) for one in found.evidence]
    return list(dict.fromkeys([*filter(None, [kind]), *parts(found, screen), *said]))


def parts(found: RecordingFinding, screen: Screen) -> list[str]:
    """What makes the growth of the job, if that is more than one thing, or not what decides."""
    finding, growth = found.deciding, found.growth
    if finding is None or growth is None:
        return []
    if {(part.process, part.metric) for part in growth.parts} <= {
        (finding.process, finding.metric)
    }:
        return []
    shown = [
        f"{_part(part, screen)} by "
        f"{rates.rate(part.growth_per_x, finding.axis, finding.unit).brief().lstrip('+')} "
        f"({numbers.share(part.share)})"
        for part in growth.parts[:_PARTS]
    ]
    more = len(growth.parts) - _PARTS
    rest = [series_names.counted(more, "other part")] if more > 0 else []
    return [f"What grows: {joined([*shown, *rest])}."]


def _part(part: GrowthPart, screen: Screen) -> str:
    name = series_names.process(part.process, screen)
    return f"small Python objects of {name}" if part.metric == "python_blocks" else name


def leaking(found: Leaking) -> str:
    """The kind of memory that grows: `small Python objects (97% of the growth)`."""
    share = found.share
    part = "" if share is None else f" ({numbers.share(share)} of the growth)"
    return f"{wording.LEAKING[found.kind]}{part}"


def statement(of: Evidence, screen: Screen) -> str:
    """A piece of evidence as a sentence."""
    return wording.EVIDENCE[of.kind].format(
        subject=series_names.reference(of.subject, screen),
        against=series_names.reference(of.against, screen),
    )


def closing(found: RecordingFinding, screen: Screen) -> list[Text]:
    """How the target ended, what could not be measured, and what the reader decided."""
    lines: list[Text] = []
    if found.ending is not None:
        lines += paragraph(ending(found.ending, screen), screen.measure)
        lines += exit_cause.lines(found, screen)
    return lines + unmeasured(found, screen)


def unmeasured(found: RecordingFinding, screen: Screen) -> list[Text]:
    """What could not be measured, and what the reader decided."""
    missing = [missing_metric(found, one, screen) for one in found.missing[:_MISSING]]
    lines = paragraphs(missing, screen.measure, lead="Missing:")
    lines += _more(len(found.missing) - _MISSING, "missing reading", screen)
    return lines + notes(found.notes, screen)


def notes(texts: Sequence[str], screen: Screen) -> list[Text]:
    """What the reader decided or skipped."""
    shown = [series_names.stopped(note, screen) for note in texts[:_NOTES]]
    lines = paragraphs(shown, screen.measure, lead="Note:")
    return lines + _more(len(texts) - _NOTES, "note", screen)


def ending(how: Ending, screen: Screen) -> str:
    """How the target ended, "" if it ended well or nothing is known."""
    why = f" ({screen.show(how.why)}{how_far(how)})" if how.why else ""
    if how.signal is not None:
        return f"The command was killed by {signal_name(how.signal)}{why}."
    if how.code:
        return f"The command failed with exit status {how.code}{why}."
    ended = f"The recording ended: {how.why}{how_far(how)}"
    return series_names.stopped(ended, screen) if how.why else ""


def how_far(how: Ending) -> str:
    """The memory at the end: ` at 3.98 GB of 4.00 GB`, as far as known."""
    held = "" if how.at_bytes is None else f" at {numbers.size(how.at_bytes)}"
    if how.limit_bytes is None:
        return held
    return f"{held} of {numbers.size(how.limit_bytes)}" if held else ""


def signal_name(number: int) -> str:
    """`SIGKILL`, or `signal 99` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def missing_metric(found: RecordingFinding, missing: Missing, screen: Screen) -> str:
    """What could not be measured, why, and what to try: nothing about steps that are known."""
    name = series_names.metric(missing.metric, screen)
    owner = f" of {series_names.process(missing.process, screen)}" if missing.process else ""
    remedy = f"; {missing.why.remedy}" if missing.why.remedy else ""
    own = [one for one in found.series if one.process == missing.process]
    if missing.metric == "probe_readings" and any(one.axis.kind is AxisKind.STEP for one in own):
        name, remedy = name.removeprefix("steps, "), ""
    reason = missing.why.reason.rstrip(".") if remedy else missing.why.reason
    return f"{name}{owner}: {series_names.stopped(reason + remedy, screen)}"


def _more(number: int, thing: str, screen: Screen) -> list[Text]:
    if number <= 0:
        return []
    return paragraph(f"and {series_names.counted(number, thing)} more", screen.measure)
