"""The size of card or container that the run requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memdiag.report.text import numbers, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import paragraphs
from memdiag.values.capacity import Capacity, Memory
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import Role

if TYPE_CHECKING:
    from rich.text import Text

_PLACES = {Memory.DEVICE: "card", Memory.HOST: "container"}


def lines(found: RecordingFinding, screen: Screen) -> list[Text]:
    """A sentence for each memory of which some size is enough."""
    texts = [_sentence(capacity, found, screen) for capacity in found.capacity if _ends(capacity)]
    return paragraphs(texts, screen.measure, lead="Required memory:")


def bounded(found: RecordingFinding, screen: Screen) -> list[str]:
    """The same in short for memory that stops growing, or until the planned end."""
    return [
        f"{_sizes(one)}: {series_names.series(found.series[one.series], screen)} peaks at "
        f"{numbers.size(one.peak_bytes)}{_of_limit(one, screen)}"
        for one in found.capacity
        if _ends(one)
    ]


def exceeded(found: RecordingFinding, screen: Screen) -> list[str]:
    """The limits of the user that a peak lies above."""
    return [
        f"{series_names.series(found.series[one.series], screen)} peaks at "
        f"{numbers.size(one.peak_bytes)}, {numbers.size(-(one.headroom_bytes or 0))} above "
        f"{one.limit} ({numbers.size(one.limit_bytes or 0)})."
        + _counted_again(found.series[one.series])
        * (one.memory is Memory.HOST)
        for one in found.capacity
        if is_exceeded(one)
    ]


def is_exceeded(capacity: Capacity) -> bool:
    """Return True if the peak is above a limit that the user has set."""
    return capacity.limit.startswith("--") and (capacity.headroom_bytes or 0) < 0


def _counted_again(finding: Finding) -> str:
    is_sum = finding.process == "tree" and finding.role is Role.RESIDENT
    return " (RSS counts pages that processes share once for each.)" if is_sum else ""


def _ends(capacity: Capacity) -> bool:
    """Return False for memory that grows without an end: no size is enough."""
    return capacity.is_bounded or capacity.until_x is not None


def _of_limit(capacity: Capacity, screen: Screen) -> str:
    if capacity.limit_bytes is None:
        return ""
    return f" of {numbers.size(capacity.limit_bytes)} ({screen.show(capacity.limit, cells=40)})"


def _sentence(capacity: Capacity, found: RecordingFinding, screen: Screen) -> str:
    finding = found.series[capacity.series]
    name = series_names.opening(finding, screen)
    peak = numbers.size(capacity.peak_bytes)
    when = ""
    if capacity.until_x is not None:
        when = f" by {series_names.place(finding, capacity.until_x)}, if the trend continues"
    return f"{name} peaks at {peak}{when}: {_requires(capacity)}.{_headroom(capacity, screen)}"


def _requires(capacity: Capacity) -> str:
    sizes = _sizes(capacity)
    return sizes if capacity.needs_bytes is None else f"requires {sizes}"


def _sizes(capacity: Capacity) -> str:
    place = _PLACES[capacity.memory]
    if capacity.needs_bytes is None:
        return f"no common {place} is large enough"
    needs = f"a {place} of {_round(capacity.needs_bytes)}"
    if capacity.comfortable_bytes in {None, capacity.needs_bytes}:
        return needs
    return f"{needs}, {_round(capacity.comfortable_bytes or 0)} with a margin"


def _headroom(capacity: Capacity, screen: Screen) -> str:
    if capacity.headroom_bytes is None:
        return ""
    limit = f"{screen.show(capacity.limit, cells=40)} ({numbers.size(capacity.limit_bytes or 0)})"
    if capacity.headroom_bytes < 0:
        return f" It exceeds {limit}."
    return f" The headroom to {limit} is {numbers.size(capacity.headroom_bytes)}."


def _round(size_bytes: int) -> str:
    """`24 GB`, `500 MB`: a size that is given, not measured."""
    number, _, unit = numbers.size(size_bytes).partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"
