"""What was argued about the series that decides: for and against, in groups, with numbers."""

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
    Side.FOR_CALM: "For STABLE or WARMUP",
    Side.AGAINST_CALM: "Against STABLE or WARMUP",
    Side.ACROSS: "Other series",
    Side.NOT_CONSIDERED: "Found no growth",
}
_DECIDES = "This decides."
# What an argument leaves out.
_WITHOUT = {"last_hundredth": " without the last readings", "last_reading": " without the last one"}
_OTHERS = 6
# Of series that say the same, so many are named.
_NAMED = 3
_GROWTH = "growth_rate"


def blocks(found: RecordingFinding, screen: Screen) -> list[list[Text]]:
    """A block for each group of arguments, and one for the other series that are not calm."""
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
    verdict = f"Why {wording.VERDICTS[finding.verdict]}"
    told = f"{verdict}: arguments about {series_names.series(finding, screen)}"
    lines = paragraph(told, screen.measure, hanging=2)
    lines[0].stylize(f"bold {wording.STYLES[finding.verdict]}", INDENT, INDENT + len(verdict))
    return lines


def _sides(finding: Finding) -> Iterator[Side]:
    """The groups that matter, though they be empty: what speaks for a leak, what against it where
    there is one to object to, and calm where it was asked for."""
    said = {argument.side for argument in finding.trail}
    yield Side.FOR_LEAK
    if {Side.FOR_LEAK, Side.AGAINST_LEAK} & said:
        yield Side.AGAINST_LEAK
    if finding.verdict is not Verdict.LEAK or {Side.FOR_CALM, Side.AGAINST_CALM} & said:
        yield Side.FOR_CALM
        yield Side.AGAINST_CALM


def _of_side(finding: Finding, side: Side) -> list[Argument]:
    """The arguments of one side, the one that decides first; of a look without the last readings
    only where that one decides."""
    by = argument_text.decisive(finding)
    looks = {"", "" if by is None else by.look}
    said = [one for one in finding.trail if one.side is side and one.look in looks]
    return sorted(said, key=lambda argument: argument is not by)


def _group(side: Side, finding: Finding, screen: Screen) -> list[Text]:
    """The arguments of one side; those that say the same in one line."""
    by = argument_text.decisive(finding)
    alike: dict[tuple[str, str], list[Argument]] = {}
    for argument in _of_side(finding, side):
        of = _rate(argument, finding) if side is Side.FOR_LEAK else argument.check
        alike.setdefault((of, argument_text.sentence(argument, finding)), []).append(argument)
    others = side is Side.AGAINST_LEAK and finding.verdict is Verdict.LEAK
    lines = _heading(
        side, "none" if not alike else "only about growth that does not decide" if others else ""
    )
    for (of, told), said in alike.items():
        checks = joined(dict.fromkeys(argument_text.name(one.check) for one in said))
        windows = [*dict.fromkeys(argument_text.name(one.window) for one in said if one.window)]
        of_others = windows and windows != [argument_text.name(one.check) for one in said]
        lead = f"{checks} (on {joined(windows)})" if of_others else checks
        lead += _WITHOUT.get(said[0].look, "")
        lead += f" ({screen.show(said[0].against)})" if said[0].against else ""
        lead += f", {of}" if of and side is Side.FOR_LEAK else ""
        lines += _item(lead, told, finding.verdict if by in said else None, screen)
    return lines


def _heading(side: Side, told: str = "") -> list[Text]:
    line = Text(" " * INDENT)
    line.append(_GROUPS[side], "bold")
    line.append(f": {told}" if told else "")
    return [line]


def _rate(argument: Argument, finding: Finding) -> str:
    """`12.0 KB per step`, "" where there is none."""
    known = _GROWTH in argument.numbers
    return argument_text.clause(f"{{{_GROWTH}}}", argument, finding) if known else ""


def _item(lead: str, told: str, decides: Verdict | None, screen: Screen) -> list[Text]:
    whole = told if decides is None else f"{told} {_DECIDES}"
    lines = paragraph(whole, screen.measure - INDENT, lead=f"{lead}:" if lead else "", hanging=2)
    lines = [Text(" " * INDENT) + line for line in lines]
    if decides is not None:
        end = next(end for end in (_DECIDES, "decides.") if lines[-1].plain.endswith(end))
        lines[-1].stylize(f"bold {wording.STYLES[decides]}", len(lines[-1].plain) - len(end))
    return lines


def _across(found: RecordingFinding, finding: Finding, screen: Screen) -> list[Text]:
    """What other series say, and whether that has changed the verdict."""
    lines = _group(Side.ACROSS, finding, screen)[1:]
    for told in evidence_and_notes.statements(found, screen):
        lines += _item("", told, None, screen)
    return [*_heading(Side.ACROSS), *lines] if lines else []


def _others(found: RecordingFinding, screen: Screen) -> list[Text]:
    """The other series that leak or may leak, a line for those that say the same."""
    alike: dict[tuple[Verdict, str], list[str]] = {}
    for finding in ranked(found):
        if finding is not found.deciding and _is_open(finding):
            key = finding.verdict, argument_text.grounds(finding)
            alike.setdefault(key, []).append(series_names.series(finding, screen))
    lines: list[Text] = []
    for (verdict, grounds), names in [*alike.items()][:_OTHERS]:
        if len(names) > _NAMED + 1:
            names[_NAMED:] = [f"{len(names) - _NAMED} more"]
        lead = f"{joined(names)}, {wording.VERDICTS[verdict]}:"
        lines += paragraph(grounds, screen.measure, lead=lead, hanging=2)
    rest = sum(len(names) for names in [*alike.values()][_OTHERS:])
    if rest > 0:
        lines += paragraph(f"and {rest:,} more that leak or may leak", screen.measure)
    return lines


def _is_open(finding: Finding) -> bool:
    return finding.verdict in (Verdict.LEAK, Verdict.INCONCLUSIVE)
