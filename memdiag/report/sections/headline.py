"""The first lines: the verdict, the series it rests on, and what happened in a sentence or two."""

from __future__ import annotations

import math
import signal
from pathlib import Path

from rich.cells import cell_len
from rich.text import Text

from memdiag.report.sections import budgets, capacity, evidence_and_notes, forecast, phase_table
from memdiag.report.text import argument_text, numbers, rates, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import badge, joined
from memdiag.values.findings import Finding, RecordingFinding, Standing
from memdiag.values.measurements import AxisKind, Cause, Ending, Role, Unit
from memdiag.values.verdict import STABLE_OR_WARMUP, Reason, Verdict

_MEMORY = {
    **dict.fromkeys((Role.RESIDENT, Role.UNIQUE, Role.PROPORTIONAL, Role.IN_USE), "host memory"),
    **dict.fromkeys((Role.DEVICE, Role.DEVICE_RESERVED, Role.DEVICE_ALLOCATED), "GPU memory"),
}
_NUMBER = {"python_blocks": "number of Python objects"}
_PLAIN = frozenset({*_MEMORY.values(), *_NUMBER.values()})
_INTERRUPTED = 128 + signal.SIGINT
# In the directory of a run that was kept.
_RECORDING = "recording.csv"
NOTHING_MEASURED = "nothing was measured"


# A reading within a step is reported from this part above the highest floor on (heuristic).
_HIDDEN = 0.05


def line(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The verdict line; the confidence ends it, or is below if both do not fit."""
    style = wording.STYLES[found.verdict]
    text, given = announcement(found, screen), basis(found)
    brief = given.partition(", ")[0]
    forms = (
        badge(found.verdict.name, style, text, screen.measure, right=right)
        for right in (given, brief)
    )
    return min(forms, key=len)


def announcement(found: RecordingFinding, screen: Screen) -> str:
    """The verdict in a few words, with the memory that it is about."""
    finding = found.deciding
    if finding is None:
        return _unmeasured(found)
    name, reason = _memory(finding, screen), _reason(finding)
    rate = rates.whole(found)
    match found.verdict:
        case Verdict.LEAK if rate is not None and finding.falling:
            brief = rate.brief().removeprefix("-")
            return f"{name}{_of_process(finding, screen)} falls {brief}{_since(finding)}"
        case Verdict.LEAK if rate is not None and rate.growth.value > 0 and name in _PLAIN:
            brief = rate.brief().removeprefix("+")
            return f"{name}{_of_process(finding, screen)} grows {brief}{_since(finding)}"
        case Verdict.LEAK:
            return f"{name}{_of_process(finding, screen)}: {gist(found)}"
        case Verdict.WARMUP if finding.plateau and finding.reason is not Reason.BOUNDED_CYCLES:
            since = series_names.place(finding, finding.plateau.since_x.value)
            if to_come(finding):
                return f"{name}{_of_process(finding, screen)} is leveling off"
            grew = "fell" if finding.falling else "grew"
            return f"{name}{_of_process(finding, screen)} {grew} until {since}, then stopped"
        case Verdict.STABLE if finding.reason is Reason.FLAT:
            latest = numbers.quantity(finding.latest_value, finding.unit)
            return f"{name}{_of_process(finding, screen)} is flat at {latest}"
        case _:
            return f"{name}{_of_process(finding, screen)}: {reason}"


def _memory(finding: Finding, screen: Screen) -> str:
    """`host memory`, `GPU memory`, `number of Python objects`, or the name of another metric."""
    memory = _MEMORY.get(finding.role) if finding.unit is Unit.BYTES else None
    if memory is not None and finding.falling:
        memory = f"free {memory}"
    known = memory or _NUMBER.get(finding.metric)
    return known or series_names.metric(finding.metric, screen)


def _of_process(finding: Finding, screen: Screen) -> str:
    is_main = finding.process in {"", "main"}
    return "" if is_main else f" of {series_names.process(finding.process, screen)}"


def _since(finding: Finding) -> str:
    onset = finding.onset_x
    return "" if onset is None else f" since {series_names.place(finding, onset.value)}"


def is_interrupted(how: Ending) -> bool:
    """Return True if Ctrl-C has ended the target."""
    return not how.why and (how.signal == signal.SIGINT or how.code == _INTERRUPTED)


def ended(found: RecordingFinding, screen: Screen) -> tuple[str, str]:
    """How a target that did not end well has ended, in a word and a clause; ("", "") for others."""
    how = found.ending
    if how is None or (not how.code and how.signal is None and how.cause is None):
        return "", ""
    by = f"exit status {how.code}"
    if how.signal is not None:
        by = f"by {evidence_and_notes.signal_name(how.signal)}"
    why = f"{screen.show(how.why)}{evidence_and_notes.how_far(how)}"
    if how.cause not in {None, Cause.OOM_KILLER_NEAR}:
        return "OUT OF MEMORY", f"{why} ({by})"
    if how.cause is not None:
        return "KILLED", f"{by} ({why})"
    if how.why:
        return "STOPPED", why.removeprefix("ended ")
    if is_interrupted(how):
        return "INTERRUPTED", f"by Ctrl-C{_came(found)}"
    return ("FAILED", f"with {by}{_came(found)}") if how.signal is None else ("KILLED", by)


def _came(found: RecordingFinding) -> str:
    """How far the run came: ` after 224 steps`."""
    finding = found.deciding
    if finding is None or not finding.last_x > finding.first_x:
        return ""
    return f" after {series_names.extent(finding)}"


def ending_line(found: RecordingFinding, screen: Screen) -> list[Text]:
    """How a target that did not end well has ended; [] for others."""
    word, text = ended(found, screen)
    style = "magenta" if word in {"STOPPED", "INTERRUPTED"} else "red"
    return badge(word, style, text, screen.measure) if word else []


def last_line(found: RecordingFinding, screen: Screen) -> Text:
    """The last line of a report: the verdict again, and the place of the recording.

    The path is never cut: a terminal wraps it.
    """
    dot = " - " if screen.ascii_only else " · "
    word, text = ended(found, screen)
    broken = [
        f"{budgets.STANDINGS[held.standing][0]} {screen.show(held.budget.text)}"
        for held in found.budgets
        if held.standing is not Standing.KEPT
    ]
    broken += [f"above {one.limit}" for one in found.capacity if capacity.is_exceeded(one)]
    where = screen.show(place(found))
    after = "".join(f"{dot}{part}" for part in [*dict.fromkeys(broken), where] if part)
    before = f"{word.lower()} {text}{dot}" if word else ""
    if cell_len(before + after) > screen.measure // 2:
        before = f"{word.lower()}{dot}"
    before = f"memdiag: {before if word else ''}"
    said, given = announcement(found, screen), basis(found)
    rate = rates.whole(found) if found.verdict is Verdict.LEAK else None
    forms = [f" {said} ({given})" if given else f" {said}", f" {said}"]
    forms += [f" {gist(found)}"] + ([f" {rate.brief()}"] if rate is not None else [])
    finding = found.deciding
    need = None if finding is None else finding.need_more
    if finding is not None and need is not None and not need.is_beyond_plan:
        forms.insert(2, f": run {forecast.brief(finding, need)}")
    verdict = found.verdict.name
    room = screen.measure - cell_len(before + verdict + after)
    shortest = "" if rate is None else forms[-1]
    form = next((form for form in forms if cell_len(form) <= room), shortest)
    line = Text(before)
    line.append(verdict, f"bold {wording.STYLES[found.verdict]}")
    return line.append(form + after)


def place(found: RecordingFinding) -> str:
    """Where the recording is: the directory of a run that was kept, else its file; "" for a run of
    which nothing was recorded, which is not kept.
    """
    path = Path(found.source)
    if found.is_empty and path.name == _RECORDING:
        return ""
    return str(path.parent) if path.name == _RECORDING and path.parent.name else found.source


def plain(found: RecordingFinding) -> str:
    """The verdict line as text: `LEAK  +291 MB per step since step 0 (97% confident, 90 steps)`."""
    given = basis(found)
    return f"{found.verdict.name}  {summary(found)}" + (f" ({given})" if given else "")


def summary(found: RecordingFinding) -> str:
    """The verdict in a few words, for a reader who sees only this line."""
    match found.verdict:
        case Verdict.WARMUP:
            return f"not a leak: {gist(found)}"
        case Verdict.STABLE:
            return f"no leak: {gist(found)}"
        case Verdict.LEAK | Verdict.INCONCLUSIVE:
            return gist(found)


def gist(found: RecordingFinding) -> str:
    """The finding in a few words, beside its verdict."""
    finding = found.deciding
    if finding is None:
        return _unmeasured(found)
    reason = _reason(finding)
    if found.verdict is Verdict.LEAK:
        return _leak(found, finding)
    if found.verdict is Verdict.WARMUP and finding.plateau is not None:
        return f"{reason} since {series_names.place(finding, finding.plateau.since_x.value)}"
    if finding.reason is Reason.FLAT:
        return f"{reason} at {numbers.quantity(finding.latest_value, finding.unit)}"
    return reason


def _reason(finding: Finding) -> str:
    if finding.reason is Reason.OVERRULED and finding.verdict in STABLE_OR_WARMUP:
        return "a more exact metric does not grow"
    return wording.REASONS[finding.reason]


def _unmeasured(found: RecordingFinding) -> str:
    if found.unmeasured is not None:
        return found.unmeasured.reason
    is_ours = found.ending is not None
    return "it ended before memory could be measured" if is_ours else NOTHING_MEASURED


def _leak(found: RecordingFinding, finding: Finding) -> str:
    rate = rates.whole(found)
    growth = wording.REASONS[finding.reason] if rate is None else rate.brief()
    if finding.onset_x is None:
        return growth
    return f"{growth} since {series_names.place(finding, finding.onset_x.value)}"


def basis(found: RecordingFinding) -> str:
    """What the verdict rests on: `85% confident, 150 steps`."""
    finding = found.deciding
    if finding is None:
        return ""
    confidence = f"{numbers.confidence(found.confidence)} confident, "
    extent = series_names.extent(finding)
    return extent if found.verdict is Verdict.INCONCLUSIVE else confidence + extent


def subject(found: RecordingFinding, screen: Screen) -> str:
    """What the verdict rests on: `hybrid.csv: VRAM of rank0 (GPU memory), 9 samples`."""
    source = screen.show(found.source, cells=screen.measure // 2)
    finding = found.deciding
    if finding is None:
        return source
    name, role = series_names.series(finding, screen), wording.ROLES[finding.role]
    return f"{source}: {name} ({role}), {series_names.counted(finding.samples, 'sample')}"


def story(finding: Finding, screen: Screen) -> str:
    """What happened, in a few sentences."""
    name = series_names.opening(finding, screen)
    grounds = argument_text.grounds(finding)
    match finding.verdict:
        case Verdict.LEAK:
            hits = [forecast.limit(hit, finding, screen) for hit in finding.limit_hits[:1]]
            grew = rise(finding, name) + _rate(finding, screen)
            said = [f"{grew}.", *in_phases(finding, screen), grounds, *hits]
        case Verdict.WARMUP:
            said = [stabilized(finding, name) or f"{rise(finding, name)}. {grounds}"]
        case Verdict.STABLE:
            said = [held(finding, name), grounds]
        case Verdict.INCONCLUSIVE:
            said = [f"{rise(finding, name)}.", grounds]
    return " ".join([*said, *between(finding)])


def between(finding: Finding) -> list[str]:
    """The peak between the readings that the plot shows, if it is worth reporting."""
    if not is_higher_between(finding):
        return []
    highest = numbers.quantity(max(value for _, value in finding.tops), finding.unit)
    if finding.axis.kind is AxisKind.SECONDS:
        return [f"Between these readings it reaches {highest} (dotted)."]
    return [f"Within {wording.one(finding.axis)} it reaches {highest} (dotted)."]


def is_higher_between(finding: Finding) -> bool:
    """Return True if readings within a step are so high that a plot of the steps hides them."""
    shown = [value for _, value in finding.trace if math.isfinite(value)]
    highest = max((value for _, value in finding.tops), default=-math.inf)
    return bool(shown) and highest > max(shown) + _HIDDEN * abs(max(shown))


def rise(finding: Finding, name: str) -> str:
    """`VRAM grew from 4.18 GB at step 15 to 14.1 GB at step 49`."""
    start, end, first, last = _course(finding)
    show = numbers.quantity
    if first == last:
        return f"{name} was {show(end, finding.unit)} at {last}"
    if show(start, finding.unit) == show(end, finding.unit) and end > start:
        grown = f"{show(end - start, finding.unit)} between {first} and {last}"
        return f"{name} grew by {grown}, to {show(end, finding.unit)}"
    return (
        f"{name} {'grew' if end > start else 'went'} from {show(start, finding.unit)}"
        f" at {first} to {show(end, finding.unit)} at {last}"
    )


def course(finding: Finding) -> str:
    """The same in short: `4.18 GB at step 15, 14.1 GB at step 49`."""
    start, end, first, last = _course(finding)
    shown = [numbers.quantity(value, finding.unit) for value in (start, end)]
    if first != last and shown[0] == shown[1] and end > start:
        more = numbers.quantity(end - start, finding.unit)
        return f"{more} more at {last} than at {first}"
    return f"{shown[0]} at {first}, {shown[1]} at {last}"


def _course(finding: Finding) -> tuple[float, float, str, str]:
    """Values at the start and the end of the growth, and where that is."""
    start_x = finding.first_x if finding.onset_x is None else finding.onset_x.value
    start = series_names.value_at(finding, start_x)
    end_x, end = _end_of_rise(finding, start)
    return start, end, series_names.place(finding, start_x), series_names.place(finding, end_x)


def _end_of_rise(finding: Finding, start: float) -> tuple[float, float]:
    """Where the rise ends: at the last reading, or one before if the last has lost most of it, as
    at the end of a program.
    """
    last = finding.last_x, finding.latest_value
    if finding.verdict is not Verdict.LEAK or len(finding.trace) < 3:
        return last
    x, before = finding.trace[-2]
    return (x, before) if before - last[1] > (before - start) / 2 > 0 else last


def _rate(finding: Finding, screen: Screen) -> str:
    rate, epoch = rates.of(finding), rates.per_epoch(finding)
    beside = f" ({epoch.brief()})" if epoch is not None else ""
    return "" if rate is None else f", {rate.full(screen.plus_minus)}{beside}"


def in_phases(finding: Finding, screen: Screen) -> list[str]:
    """The phases in which it grows, and by how much."""
    growing = [phase for phase in finding.phases if phase.is_attributed]
    if not growing:
        alike = finding.recurring
        return [] if alike is None else [phase_table.recurring(alike, finding, screen)]
    names = joined(screen.show(phase.phase, cells=30) for phase in growing)
    growths = [phase.growth_per_event.value for phase in growing]
    amount = numbers.between(min(growths), max(growths), finding.unit)
    which = "phase" if len(growing) == 1 else "phases"
    return [f"It grows in {which} {names}, by {amount} per event."]


def stabilized(finding: Finding, name: str) -> str:
    """When it stopped growing, and the plateau; "" without one."""
    plateau = finding.plateau
    if plateau is None:
        return ""
    level = numbers.between(plateau.low_value, plateau.high_value, finding.unit)
    if finding.reason is Reason.BOUNDED_CYCLES:
        return f"{name} goes up and down within {level}."
    since = series_names.place(finding, plateau.since_x.value)
    lasted = series_names.stretch(finding, plateau.lasted_x)
    rose = "fell" if finding.falling else "rose"
    if more := to_come(finding):
        latest = numbers.quantity(finding.latest_value, finding.unit)
        left = numbers.quantity(more, finding.unit)
        return f"{name} {rose} to {latest} and is leveling off; about {left} of growth is left."
    return f"{name} {rose} until {since}, then stayed at {level} for {lasted}."


def to_come(finding: Finding) -> float:
    """What a curve that levels off leaves of growth, if that is more than its plateau spans; 0 of
    others."""
    by, plateau = argument_text.decisive(finding), finding.plateau
    left = 0.0 if by is None else by.numbers.get("left_y", 0.0)
    spans = math.inf if plateau is None else plateau.high_value - plateau.low_value
    return left if left > spans else 0.0


def held(finding: Finding, name: str) -> str:
    """The range of the readings."""
    values = [value for _, value in finding.trace if math.isfinite(value)]
    low, high = (min(values), max(values)) if values else (finding.start_value, finding.peak_value)
    counted = finding.axis.kind in {AxisKind.INDEX, AxisKind.TICK}
    over = "" if counted else f" over {series_names.extent(finding)}"
    return f"{name} stayed at {numbers.between(low, high, finding.unit)}{over}."
