"""The arguments about the deciding series, in groups, with their numbers (`analyze --why`)."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from memdiag.report.sections import evidence_and_notes
from memdiag.report.sections.series_table import ranked
from memdiag.report.text import argument_text, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import INDENT, joined, paragraph
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.verdict import Argument, Side, Verdict

_GROUPS = {
    Side.FOR_LEAK: "For LEAK",
    Side.AGAINST_LEAK: "Against LEAK",
    Side.FOR_STABLE: "For STABLE or WARMUP",
    Side.AGAINST_STABLE: "Against STABLE or WARMUP",
    Side.ACROSS: "Other series",
    Side.NOT_CONSIDERED: "Found no growth",
}
_DECIDES = "This decides."
# What an argument was made without.
_WITHOUT = {"last_hundredth": " without the last readings", "last_reading": " without the last one"}
_OTHERS = 6
_OPEN = (Verdict.LEAK, Verdict.INCONCLUSIVE)
# Series with the same reason that are named; the others are counted.
_NAMED = 3
_GROWTH = "growth_rate"


def blocks(found: RecordingFinding, screen: Screen) -> list[list[Text]]:
    """A block for each group of arguments, and one for other series that leak or may leak."""
    finding = found.deciding
    if finding is None:
        return []
    shown = [_title(finding, screen)]
    was_empty = False
    for side in _sides(finding):
        group = _group(side, finding, screen)
        is_empty = len(group) == 1
        if is_empty and was_empty:
            shown[-1] += group
        else:
            shown.append(group)
        was_empty = is_empty
    shown.append(_across(found, finding, screen))
    if _of_side(finding, Side.NOT_CONSIDERED):
        shown.append(_group(Side.NOT_CONSIDERED, finding, screen))
    return [*shown, _others(found, screen)]


def _title(finding: Finding, screen: Screen) -> list[Text]:
    verdict = f"Why {finding.verdict.name}"
    title = f"{verdict}: arguments about {series_names.series(finding, screen)}"
    lines = paragraph(title, screen.measure, hanging=2)
    lines[0].stylize(f"bold {wording.STYLES[finding.verdict]}", INDENT, INDENT + len(verdict))
    return lines


def _sides(finding: Finding) -> Iterator[Side]:
    """The groups that are shown even if they are empty: for a leak, against it if one was proposed,
    and for and against stable if that was considered."""
    said = {argument.side for argument in finding.trail}
    yield Side.FOR_LEAK
    if {Side.FOR_LEAK, Side.AGAINST_LEAK} & said:
        yield Side.AGAINST_LEAK
    if finding.verdict is not Verdict.LEAK or {Side.FOR_STABLE, Side.AGAINST_STABLE} & said:
        yield Side.FOR_STABLE
        yield Side.AGAINST_STABLE


def _of_side(finding: Finding, side: Side) -> list[Argument]:
    """The arguments of one side, the decisive one first. Those made without the last readings are
    left out unless the decisive one is among them."""
    by = argument_text.decisive(finding)
    looks = {"", "" if by is None else by.look}
    said = [one for one in finding.trail if one.side is side and one.look in looks]
    return sorted(said, key=lambda argument: argument is not by)


def _group(side: Side, finding: Finding, screen: Screen) -> list[Text]:
    """The arguments of one side; equal ones share a line."""
    by = argument_text.decisive(finding)
    alike: dict[tuple[str, str], list[Argument]] = {}
    for argument in _of_side(finding, side):
        of = _rate(argument, finding) if side is Side.FOR_LEAK else argument.check
        alike.setdefault((of, argument_text.sentence(argument, finding)), []).append(argument)
    others = side is Side.AGAINST_LEAK and finding.verdict is Verdict.LEAK
    lines = _heading(
        side, "none" if not alike else "only about growth that does not decide" if others else ""
    )
    for (of, text), said in alike.items():
        checks = joined(dict.fromkeys(argument_text.name(one.check) for one in said))
        windows = [*dict.fromkeys(argument_text.name(one.window) for one in said if one.window)]
        of_others = windows and windows != [argument_text.name(one.check) for one in said]
        lead = f"{checks} (on {joined(windows)})" if of_others else checks
        lead += _WITHOUT.get(said[0].look, "")
        lead += f" ({screen.show(said[0].against)})" if said[0].against else ""
        lead += f", {of}" if of and side is Side.FOR_LEAK else ""
        lines += _item(lead, text, finding.verdict if by in said else None, screen)
    return lines


def _heading(side: Side, text: str = "") -> list[Text]:
    line = Text(" " * INDENT)
    line.append(_GROUPS[side], "bold")
    line.append(f": {text}" if text else "")
    return [line]


def _rate(argument: Argument, finding: Finding) -> str:
    """`12.0 KB per step`, or ""."""
    known = _GROWTH in argument.numbers
    return argument_text.clause(f"{{{_GROWTH}}}", argument, finding) if known else ""


def _item(lead: str, text: str, decides: Verdict | None, screen: Screen) -> list[Text]:
    whole = text if decides is None else f"{text} {_DECIDES}"
    lines = paragraph(whole, screen.measure - INDENT, lead=lead and f"{lead}:", hanging=2)
    lines = [Text(" " * INDENT) + line for line in lines]
    if decides is not None:
        end = next(end for end in (_DECIDES, "decides.") if lines[-1].plain.endswith(end))
        lines[-1].stylize(f"bold {wording.STYLES[decides]}", len(lines[-1].plain) - len(end))
    return lines


def _across(found: RecordingFinding, finding: Finding, screen: Screen) -> list[Text]:
    """Arguments from other series, which may have changed the verdict."""
    lines = _group(Side.ACROSS, finding, screen)[1:]
    for text in evidence_and_notes.statements(found, screen):
        lines += _item("", text, None, screen)
    return [*_heading(Side.ACROSS), *lines] if lines else []


def _others(found: RecordingFinding, screen: Screen) -> list[Text]:
    """Other series that leak or may leak; those with the same reason share a line."""
    alike: dict[tuple[Verdict, str], list[str]] = {}
    for finding in ranked(found):
        if finding is not found.deciding and finding.verdict in _OPEN:
            key = finding.verdict, argument_text.grounds(finding)
            alike.setdefault(key, []).append(series_names.series(finding, screen))
    lines: list[Text] = []
    for (verdict, grounds), names in [*alike.items()][:_OTHERS]:
        if len(names) > _NAMED + 1:
            names[_NAMED:] = [f"{len(names) - _NAMED} more"]
        lines += paragraph(grounds, screen.measure, lead=f"{joined(names)}, {verdict.name}:")
    rest = sum(len(names) for names in [*alike.values()][_OTHERS:])
    if rest > 0:
        lines += paragraph(f"and {rest:,} more that leak or may leak", screen.measure)
    return lines
