"""Budgets in words: which are broken and by how much, which are unclear, which are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memdiag.report.text import numbers, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import INDENT, paragraph
from memdiag.values.budgets import BudgetKind, Stretch
from memdiag.values.findings import BudgetFinding, Interval, RecordingFinding, Standing
from memdiag.values.measurements import Axis, AxisKind, Unit

if TYPE_CHECKING:
    from rich.text import Text

# In the order of the report: word and style.
STANDINGS = {
    Standing.BROKEN: ("BROKEN", "bold red"),
    Standing.UNCLEAR: ("UNCLEAR", "magenta"),
    Standing.KEPT: ("kept", "green"),
}


def lines(found: RecordingFinding, screen: Screen, *, open_only: bool = False) -> list[Text]:
    """A line or two for each budget, the broken ones first. open_only: not those that are kept."""
    order = list(STANDINGS)
    shown: list[Text] = []
    for held in sorted(found.budgets, key=lambda h: order.index(h.standing)):
        if open_only and held.standing is Standing.KEPT:
            continue
        word, style = STANDINGS[held.standing]
        text = f"{word} {screen.show(held.budget.text)}: {sentence(held, screen)}"
        entry = paragraph(text, screen.measure, hanging=2)
        entry[0].stylize(style, INDENT, INDENT + len(word))
        shown += entry
    return shown


def of_many(recordings: Sequence[RecordingFinding], screen: Screen) -> list[Text]:
    """For a list of recordings: those with budgets that are not kept, each under its name."""
    shown: list[Text] = []
    for found in recordings:
        entries = lines(found, screen, open_only=True)
        if entries:
            name = screen.show(found.source, cells=screen.measure - INDENT)
            shown += [*paragraph(name, screen.measure), *entries]
    return shown


def sentence(held: BudgetFinding, screen: Screen) -> str:
    """`RSS of main grew by 1.40 ± 0.12 GB per 50 steps, 0.40 GB too much.`"""
    if not held.metric:
        return series_names.stopped(held.why, screen)
    name = series_names.opening(held, screen)
    if held.measured is None or held.unit is None:
        return f"{name}: {series_names.stopped(held.why, screen)}"
    text = f"{name} {_measured(held, held.measured, held.unit, screen)}"
    if held.standing is Standing.BROKEN:
        excess = held.measured.value - held.budget.amount
        text += f", {numbers.quantity(excess, held.unit)} too much"
    if held.standing is Standing.UNCLEAR:
        text += f"; {screen.show(held.why)}"
    return f"{text}."


def _measured(held: BudgetFinding, value: Interval, unit: Unit, screen: Screen) -> str:
    budget = held.budget
    match budget.kind:
        case BudgetKind.GROWTH:
            amount = numbers.estimate(value, unit, screen.plus_minus)
            per = "" if budget.per is None else f" per {_per(budget.per)}"
            return f"{'changed' if value.value < 0 else 'grew'} by {amount.removeprefix('+')}{per}"
        case BudgetKind.PEAK:
            return f"peaked at {numbers.quantity(value.value, unit)}"
        case BudgetKind.VARIATION:
            since = "" if budget.since is None else f" from {_position(budget.since)} on"
            return f"varied by {numbers.quantity(value.value, unit)}{since}"


def _per(stretch: Stretch) -> str:
    if stretch.axis is AxisKind.SECONDS:
        return numbers.duration(stretch.length).removeprefix("1 ")
    word = wording.axis(Axis(name="", kind=stretch.axis), stretch.length)
    return word if stretch.length == 1 else f"{numbers.count(stretch.length)} {word}"


def _position(stretch: Stretch) -> str:
    at = numbers.position(stretch.length, stretch.axis)
    if stretch.axis is AxisKind.SECONDS:
        return at
    return f"{wording.axis(Axis(name='', kind=stretch.axis))} {at}"
