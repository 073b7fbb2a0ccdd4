"""Thresholds that were crossed: the message at the moment, and the lines of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memdiag.report.text import numbers, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import paragraph
from memdiag.values.findings import RecordingFinding
from memdiag.values.measurements import Mark

if TYPE_CHECKING:
    from rich.text import Text


def sentence(mark: Mark, screen: Screen) -> str:
    """`RSS of all processes passed --warn-at 80% of cgroup memory.max (9.6 GB) at step 120, ...`"""
    of = f" of {screen.show(mark.limit, cells=40)}" if mark.limit else ""
    when = f"{numbers.duration(mark.at_s)} after the start"
    if mark.step is not None:
        when = f"step {mark.step:,}, {when}"
    phase = f", in phase {screen.show(mark.phase, cells=30)}" if mark.phase else ""
    if mark.left_s is not None:
        return (
            f"{series_names.series(mark, screen)} will reach {screen.show(mark.limit, cells=40)}"
            f" ({numbers.size(mark.threshold_bytes)}) in {numbers.duration(mark.left_s)} at this"
            f" rate ({screen.show(mark.threshold, cells=40)}), with"
            f" {numbers.size(mark.value_bytes)} at {when}{phase}."
        )
    return (
        f"{series_names.series(mark, screen)} passed {screen.show(mark.threshold, cells=40)}{of}"
        f" ({numbers.size(mark.threshold_bytes)}) with {numbers.size(mark.value_bytes)}"
        f" at {when}{phase}."
    )


def live(mark: Mark, screen: Screen) -> str:
    """The message for the moment when it happens."""
    return f"{mark.level.value}: {sentence(mark, screen)}"


def lines(found: RecordingFinding, screen: Screen) -> list[Text]:
    """A paragraph for each threshold that was crossed, in the order of time."""
    said: list[Text] = []
    for mark in found.marks:
        lead = f"{mark.level.value.title()}:"
        said += paragraph(sentence(mark, screen), screen.measure, lead=lead)
    return said
