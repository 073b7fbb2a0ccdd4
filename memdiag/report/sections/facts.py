"""The facts of a report that fits on a screen: one label each, in the order of their use."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memdiag.report.sections import (
    advice,
    budgets,
    capacity,
    cause,
    evidence_and_notes,
    exit_cause,
    forecast,
    headline,
    in_memory,
    series_table,
    threshold_events,
)
from memdiag.report.text import argument_text, rates, series_names, text_layout, wording
from memdiag.report.text.screen import Screen
from memdiag.values.findings import EvidenceKind, Finding, RecordingFinding, Standing
from memdiag.values.measurements import NOT_READ
from memdiag.values.verdict import STABLE_OR_WARMUP, Verdict

if TYPE_CHECKING:
    from rich.text import Text

# Evidence that is something to act on although memory does not leak.
_NOTABLE = frozenset({EvidenceKind.COUNT_GROWS, EvidenceKind.UNSHARED, EvidenceKind.OOMS_RISE})
_GROWING = frozenset({Verdict.LEAK, Verdict.INCONCLUSIVE})
_ENDING = {"Last error": "error", "Last readings": "last", "Forecast": "forecast"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A part of the report. rank: which facts are left out first if not all fit, the highest.

    lines: as they are shown. is_block: a blank line is above and below it.
    """

    lines: Sequence[Text]
    rank: int
    is_block: bool = False


def of(
    found: RecordingFinding,
    screen: Screen,
    *,
    picture: Sequence[Text] = (),
    is_alone: bool = True,
) -> list[Fact]:
    """The facts on one recording. picture: what is drawn of it; the shape of a leak explains less
    than its numbers, so they come first. is_alone: the details are not shown.
    """
    values, after = (
        [
            Fact(lines=text_layout.labeled(label, text, screen.measure, most_lines=most), rank=rank)
            for rank, label, text, most in part
            if text
        ]
        for part in (_labeled(found, screen), _after(found, screen, is_alone=is_alone))
    )
    is_drawn = picture and not advice.failed_at_once(found)
    drawn = [Fact(lines=picture, rank=Rank.PICTURE, is_block=True)] if is_drawn else []
    if found.verdict is Verdict.LEAK or in_memory.is_killed(found):
        return [*values, *drawn, *after]
    return [*drawn, *values, *after]


class Rank:
    """What is left out last has the lowest number; the order on the screen is another."""

    ASKED = 0  # what the user has asked for, and what has ended the run
    CAUSE = 1
    NEXT = 2
    VALUE = 3
    LIMIT = 4
    WHY = 5
    PICTURE = 6
    NOTE = 7


def _labeled(found: RecordingFinding, screen: Screen) -> Iterator[tuple[int, str, str, int]]:
    """Rank, label, text and the most lines of each fact."""
    finding = found.deciding
    how = found.ending
    if how is not None and how.why and not headline.ended(found, screen)[0]:
        yield Rank.ASKED, "ended", series_names.stopped(how.why, screen), 2
    is_killed = in_memory.is_killed(found)
    said = [(_ENDING[title], text) for title, text in exit_cause.sentences(found, screen)]
    errors = [one for one in said if one[0] == "error"]
    for label, text in errors:
        yield Rank.ASKED, label, text, 3
    if is_killed:
        yield from _cause(found, screen)
    for label, text in said[len(errors) :]:
        yield Rank.ASKED, label, text, 3
    for text in _budgets(found, screen):
        yield Rank.ASKED, "budget", text, 2
    for text in capacity.exceeded(found, screen):
        yield Rank.ASKED, "limit", text, 3
    for mark in found.marks[:2]:
        yield Rank.ASKED, mark.level.value, threshold_events.sentence(mark, screen), 3
    if not is_killed:
        yield from _cause(found, screen)
    if finding is not None and not advice.failed_at_once(found):
        yield from _values(found, finding, screen)


def _after(
    found: RecordingFinding, screen: Screen, *, is_alone: bool
) -> Iterator[tuple[int, str, str, int]]:
    """What to do, and what else there is."""
    for one in found.missing[:1] if is_alone else ():
        yield Rank.NOTE, "missing", evidence_and_notes.missing_metric(found, one, screen), 2
    if is_alone and (text := shown_note(found)):
        label = "unread" if text.startswith(NOT_READ) else "note"
        rank = Rank.LIMIT if _may_hide_a_leak(found) else Rank.NOTE
        yield rank, label, series_names.stopped(text.removeprefix(NOT_READ), screen), 2
    sized = bool(capacity.bounded(found, screen))  # (a fact of its own)
    said = (text for text in advice.texts(found, screen) if not (sized and advice.SIZE in text))
    for at, text in enumerate(said):
        yield (Rank.NOTE if at and not is_notable(found) else Rank.NEXT), "next", text, 4
    if is_alone and (more := hidden(found)):
        yield Rank.VALUE, "more", f"{more} (-v)", 1


def _budgets(found: RecordingFinding, screen: Screen) -> Iterator[str]:
    kept = []
    order = list(budgets.STANDINGS)
    for held in sorted(found.budgets, key=lambda one: order.index(one.standing)):
        if held.standing is Standing.KEPT:
            kept.append(screen.show(held.budget.text))
        else:
            word = budgets.STANDINGS[held.standing][0]
            yield f"{word} {screen.show(held.budget.text)}: {budgets.sentence(held, screen)}"
    if kept:
        yield f"kept: {text_layout.joined(dict.fromkeys(kept))}"


def _cause(found: RecordingFinding, screen: Screen) -> Iterator[tuple[int, str, str, int]]:
    suspects = list(in_memory.suspect_sentences(found, screen))
    if found.cause is not None:
        for text in cause.sentences(found, screen, has_places=bool(suspects)):
            label, _, rest = text.partition(cause.FIX)
            yield (Rank.CAUSE, "fix", rest, 3) if not label else (Rank.CAUSE, "cause", text, 5)
    for text in suspects:
        yield Rank.CAUSE, "grew", text, 4


def _values(
    found: RecordingFinding, finding: Finding, screen: Screen
) -> Iterator[tuple[int, str, str, int]]:
    """What was measured, what it will lead to, and why the verdict is that."""
    yield from _memory(found, finding, screen)
    growing = found.verdict in _GROWING and bool(finding.segments)
    yield Rank.VALUE, "rate", _rate(found, finding, screen) if growing else "", 2
    yield Rank.VALUE, "kind", _kind(found, screen) if growing else "", 2
    if not exit_cause.is_out_of_memory(found):
        yield from _ahead(found, finding, screen)
    if finding.peaks_grow:
        yield Rank.CAUSE, "warning", forecast.PEAKS_GROW, 2
    for one in found.evidence:
        if found.verdict is not Verdict.LEAK and one.kind in _NOTABLE:
            yield Rank.LIMIT, "also", evidence_and_notes.statement(one, screen), 2
    by = argument_text.decisive(finding)
    if not (found.verdict is Verdict.WARMUP and finding.plateau) and by is not None:
        yield Rank.WHY, "why", argument_text.sentence(by, finding), 3


def _memory(
    found: RecordingFinding, finding: Finding, screen: Screen
) -> Iterator[tuple[int, str, str, int]]:
    """How much memory there was, or which memory leaks."""
    name = series_names.opening(finding, screen)
    peaks = "".join(f" {text}" for text in headline.between(finding)).replace(" (dotted)", "")
    match found.verdict:
        case Verdict.STABLE:
            yield Rank.VALUE, "memory", f"{headline.held(finding, name)}{peaks}", 2
        case Verdict.WARMUP if finding.plateau:
            yield Rank.VALUE, "plateau", f"{headline.stabilized(finding, name)}{peaks}", 2
        case Verdict.WARMUP:
            yield Rank.VALUE, "memory", f"{headline.rise(finding, name)}.{peaks}", 2
        case Verdict.LEAK:
            yield Rank.VALUE, "where", _where(found, finding, screen), 3
        case Verdict.INCONCLUSIVE if not finding.segments:  # too few readings for a rate
            yield Rank.VALUE, "memory", f"{headline.course(finding)}.", 2
        case Verdict.INCONCLUSIVE:
            pass


def _ahead(
    found: RecordingFinding, finding: Finding, screen: Screen
) -> Iterator[tuple[int, str, str, int]]:
    """What comes next; nothing for steps that nobody has planned."""
    if found.verdict in _GROWING and finding.segments:
        yield Rank.LIMIT, "limit", forecast.first_limit(found, screen), 3
    if finding.planned and finding.forecasts:
        yield Rank.LIMIT, "plan", f"{forecast.forecasts(finding)}, if the trend continues.", 2
    needs = "; ".join(capacity.bounded(found, screen))
    yield Rank.LIMIT, "needs", needs[:1].upper() + needs[1:] + "." * bool(needs), 2


def _where(found: RecordingFinding, finding: Finding, screen: Screen) -> str:
    name = f"{series_names.opening(finding, screen)} ({wording.ROLES[finding.role]})"
    parts = evidence_and_notes.parts(found, screen)
    phases = headline.in_phases(finding, screen)
    alone = [
        evidence_and_notes.statement(one, screen)
        for one in found.evidence
        if one.kind is EvidenceKind.ONE_PROCESS and not parts
    ]
    return " ".join([f"{name}.", *phases, *parts, *alone])


def _rate(found: RecordingFinding, finding: Finding, screen: Screen) -> str:
    rate, epoch = rates.whole(found), rates.per_epoch(finding)
    shown = "" if rate is None else rate.full(screen.plus_minus)
    shown += "" if epoch is None else f" ({epoch.brief()})"
    return f"{shown}: {headline.course(finding)}." if shown else f"{headline.course(finding)}."


def _kind(found: RecordingFinding, screen: Screen) -> str:
    if found.leaking is not None:
        return evidence_and_notes.leaking(found.leaking)
    said = [one for one in found.evidence if one.kind is not EvidenceKind.ONE_PROCESS]
    return evidence_and_notes.statement(said[0], screen) if said else ""


def hidden(found: RecordingFinding) -> str:
    """What `-v` adds: `6 series, 2 notes`; "" if nothing."""
    series = len(series_table.ranked(found)) - 1
    parts = [f"{series:,} more series"] if series > 0 else []
    if len(found.notes) > 1:
        parts.append(series_names.counted(len(found.notes) - 1, "note"))
    if len(found.missing) > 1:
        parts.append(series_names.counted(len(found.missing) - 1, "missing metric"))
    return text_layout.joined(parts) if parts else ""


def shown_note(found: RecordingFinding) -> str:
    """The one that is shown without `-v`, "" for none: what was not read may be what leaks."""
    return min(found.notes, key=lambda text: not text.startswith(NOT_READ), default="")


def is_notable(found: RecordingFinding) -> bool:
    """Return True if something else than the memory that was read needs attention."""
    return _may_hide_a_leak(found) or any(one.kind in _NOTABLE for one in found.evidence)


def _may_hide_a_leak(found: RecordingFinding) -> bool:
    """Return True if sizes were not read beside a verdict that finds no leak."""
    return found.verdict in STABLE_OR_WARMUP and shown_note(found).startswith(NOT_READ)


def fitting(facts: Sequence[Fact], most_lines: int) -> list[list[Text]]:
    """Blocks of the facts that fit into so many lines, those of the lowest rank first."""
    chosen: list[int] = []
    for at in sorted(range(len(facts)), key=lambda at: facts[at].rank):
        tried = in_blocks([facts[one] for one in sorted([*chosen, at])])
        if sum(map(len, tried)) + len(tried) - 1 <= most_lines:
            chosen.append(at)
    return in_blocks([facts[at] for at in sorted(chosen)])


def in_blocks(facts: Iterable[Fact]) -> list[list[Text]]:
    """The lines of the facts; those that are no blocks by themselves stand together."""
    blocks: list[list[Text]] = []
    for is_block, together in itertools.groupby(facts, key=lambda fact: fact.is_block):
        lines = [[*fact.lines] for fact in together]
        blocks += lines if is_block else [[*itertools.chain.from_iterable(lines)]]
    return blocks
