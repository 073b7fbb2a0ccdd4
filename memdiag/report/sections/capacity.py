"""What size of card or container the run takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memdiag.report.text import numbers, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import paragraph
from memdiag.values.capacity import Capacity, Memory
from memdiag.values.findings import RecordingFinding

if TYPE_CHECKING:
    from rich.text import Text

_PLACES = {Memory.DEVICE: "card", Memory.HOST: "container"}
_TOO_LARGE = {Memory.DEVICE: "no card is that large", Memory.HOST: "no usual container is so large"}


def lines(found: RecordingFinding, screen: Screen) -> list[Text]:
    """A sentence for each memory that something can be said of."""
    said: list[Text] = []
    for capacity in found.capacity:
        text = _sentence(capacity, found, screen)
        said += paragraph(text, screen.measure, lead="Room:", hanging=2)
    return said


def _sentence(capacity: Capacity, found: RecordingFinding, screen: Screen) -> str:
    finding = found.series[capacity.series]
    name, place = series_names.opening(finding, screen), _PLACES[capacity.memory]
    peak = numbers.size(capacity.peak_bytes)
    if not capacity.is_bounded and capacity.until_x is None:
        return (
            f"no {place} is large enough for growth without an end; a larger one only lasts longer."
        )
    when = ""
    if capacity.until_x is not None:
        when = f" by {series_names.place(finding, capacity.until_x)}, if it goes on so"
    return f"{name} peaks at {peak}{when}: {_sizes(capacity)}.{_headroom(capacity, screen)}"


def _sizes(capacity: Capacity) -> str:
    place = _PLACES[capacity.memory]
    if capacity.needs_bytes is None:
        return _TOO_LARGE[capacity.memory]
    needs = f"needs a {place} of {_round(capacity.needs_bytes)}"
    if capacity.comfortable_bytes in {None, capacity.needs_bytes}:
        return needs
    return f"{needs}, comfortable in {_round(capacity.comfortable_bytes or 0)}"


def _headroom(capacity: Capacity, screen: Screen) -> str:
    if capacity.headroom_bytes is None:
        return ""
    limit = f"{screen.show(capacity.limit, cells=40)} ({numbers.size(capacity.limit_bytes or 0)})"
    if capacity.headroom_bytes < 0:
        return f" It does not fit into {limit}."
    return f" It leaves {numbers.size(capacity.headroom_bytes)} of {limit}."


def _round(size_bytes: int) -> str:
    """`24 GB`, `500 MB`: a size that is given, not measured."""
    number, _, unit = numbers.size(size_bytes).partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"
