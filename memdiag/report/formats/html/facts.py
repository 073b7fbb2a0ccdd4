"""What a page says of one recording: the words and tables of the other reports, as plain text.

The templates escape all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memdiag.report.formats.html import charts
from memdiag.report.picture.model import Picture
from memdiag.report.picture.of_finding import of_recording
from memdiag.report.sections import (
    advice,
    arguments,
    budgets,
    capacity,
    cause,
    evidence_and_notes,
    exit_cause,
    forecast,
    headline,
    in_memory,
    interventions,
    phase_table,
    process_tree,
    series_table,
    threshold_events,
)
from memdiag.report.text import numbers, rates, series_names
from memdiag.report.text.screen import Screen
from memdiag.report.text.text_layout import INDENT
from memdiag.values.findings import Finding, RecordingFinding
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.verdict import STABLE_OR_WARMUP

if TYPE_CHECKING:
    from rich.text import Text

SCREEN = Screen(width=100, is_page=True)
_SERIES = 200
_CENSUSES = 4
_SPARK = (120, 28)
# Of `about`, in this order; the rest follows.
_FIRST = ("command", "started_at", "host", "system", "memdiag", "python", "interval_s")
_ENVIRONMENT, _DEEPEST, _CELLS = 60, 4, 2000
_NOT_ENVIRONMENT = frozenset({"processes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table. title: above it. titles: of its columns. numeric: columns aligned at their end."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page below the charts. is_open: its text is shown without a click."""

    title: str
    paragraphs: Sequence[str] = ()
    groups: Sequence[tuple[str, Sequence[str]]] = ()
    tables: Sequence[Table] = ()
    is_open: bool = True

    @property
    def is_empty(self) -> bool:
        return not (self.paragraphs or self.groups or any(table.rows for table in self.tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One recording.

    facts: names and values of the summary. chart_names: what each chart shows; their data are in
    `charts`. spark: the drawing of the deciding series.
    """

    name: str
    verdict: str
    summary: str
    basis: str
    subject: str
    story: str
    facts: Sequence[tuple[str, str]]
    leads: Sequence[Section]
    chart_names: Sequence[str]
    charts: Sequence[dict[str, Any]]
    sections: Sequence[Section]
    spark: str
    growth_per_s: float
    growth: str
    peak: float
    peak_text: str


def page(found: RecordingFinding) -> Page:
    """What the page says of a recording."""
    finding = found.deciding
    pictures = of_recording(found, SCREEN)
    rate = growth = None
    if finding is not None and found.verdict not in STABLE_OR_WARMUP:
        rate, growth = rates.whole(found), finding.growth_per_s or finding.growth_per_x
    return Page(
        name=SCREEN.show(found.source),
        verdict=found.verdict.value,
        summary=headline.summary(found),
        basis=headline.basis(found),
        subject=headline.subject(found, SCREEN),
        story="" if finding is None else headline.story(finding, SCREEN).replace(" (dotted)", ""),
        facts=list(_facts(found)),
        leads=[section for section in _leads(found) if not section.is_empty],
        chart_names=[_chart_name(picture) for picture in pictures],
        charts=[charts.chart(picture) for picture in pictures],
        sections=[section for section in _sections(found) if not section.is_empty],
        spark=charts.sparkline(pictures[0], *_SPARK) if pictures else "",
        growth_per_s=0.0 if growth is None else growth.value,
        growth="" if rate is None else rate.brief(),
        peak=0.0 if finding is None else finding.peak_value,
        peak_text="" if finding is None else numbers.quantity(finding.peak_value, finding.unit),
    )


_SHOWN = {Unit.BYTES: "Memory", Unit.COUNT: "Counts", Unit.PERCENT: "Shares"}


def _chart_name(picture: Picture) -> str:
    by = "over time" if picture.axis is AxisKind.SECONDS else f"by {picture.axis_word}"
    return f"{_SHOWN[picture.unit]} {by}"


def _facts(found: RecordingFinding) -> Iterator[tuple[str, str]]:
    """The numbers that most readers look for."""
    finding = found.deciding
    if finding is None:
        return
    if found.verdict not in STABLE_OR_WARMUP:
        yield from _growth(found, finding)
    if finding.onset_x is not None:
        yield "growing since", series_names.place(finding, finding.onset_x.value)
    if finding.plateau is not None:
        yield "plateau since", series_names.place(finding, finding.plateau.since_x.value)
        low, high = finding.plateau.low_value, finding.plateau.high_value
        yield "plateau", numbers.between(low, high, finding.unit)
    yield "now", numbers.quantity(finding.latest_value, finding.unit)
    yield "peak", numbers.quantity(finding.peak_value, finding.unit)
    yield "length", series_names.extent(finding)
    first = found.first_limit
    if first is not None and not exit_cause.is_out_of_memory(found):
        place = series_names.place(found.series[first.series], first.at_x.value)
        yield f"{SCREEN.show(first.limit, cells=40)} is full", f"at {place}"


def _growth(found: RecordingFinding, finding: Finding) -> Iterator[tuple[str, str]]:
    rate, epoch = rates.whole(found), rates.per_epoch(finding)
    if rate is not None:
        yield "growth", rate.full(SCREEN.plus_minus)
    if epoch is not None:
        yield "per epoch", epoch.brief()
    if finding.growth_per_s is not None and finding.growth_per_s.value:
        hourly = finding.growth_per_s.value * 3600
        yield "per hour", numbers.signed(hourly, finding.unit)


def said(lines: Iterable[Text], lead: str = "") -> list[str]:
    """Paragraphs as text, without the lead that a heading says already."""
    return [line.plain.strip().removeprefix(lead).strip() for line in lines if line.plain.strip()]


def _leads(found: RecordingFinding) -> Iterator[Section]:
    """What comes before the charts: what ended the run, why it grows, and what to do."""
    if in_memory.is_killed(found):
        alone = replace(found, missing=(), notes=())
        lines = evidence_and_notes.closing(alone, SCREEN)
        yield Section(title="How it ended", paragraphs=said(lines))
    yield Section(title="Cause", paragraphs=said(cause.lines(found, SCREEN), "Cause:"))
    yield Section(title="Grew most", paragraphs=said(in_memory.suspects(found, SCREEN)))
    yield Section(title="Budgets", paragraphs=said(budgets.lines(found, SCREEN)))
    yield Section(title="Next", paragraphs=said(advice.lines(found, SCREEN), "Next:"))


def _sections(found: RecordingFinding) -> Iterator[Section]:
    finding = found.deciding
    if finding is not None:
        yield _series(found)
        yield _phases(finding)
        yield _jumps(finding)
        yield _processes(found)
        yield _limits(found, finding)
    yield Section(title="Evidence", paragraphs=said(evidence_and_notes.evidence(found, SCREEN)))
    yield Section(title="Thresholds", paragraphs=said(threshold_events.lines(found, SCREEN)))
    yield _interventions(found)
    yield _in_memory(found)
    yield _decision(found)
    yield _environment(found)
    rest = replace(found, ending=None) if in_memory.is_killed(found) else found
    yield Section(title="Notes", paragraphs=said(evidence_and_notes.closing(rest, SCREEN)))


def _series(found: RecordingFinding) -> Section:
    ranked = series_table.ranked(found)
    rows = series_table.rows(ranked[:_SERIES], SCREEN)
    more = len(ranked) - _SERIES
    left_out = [f"and {more:,} more series"] if more > 0 else []
    table = Table(titles=series_table.TITLES, rows=rows, numeric=frozenset({1, 2}))
    return Section(title="Series", tables=[table], paragraphs=left_out)


def _phases(finding: Finding) -> Section:
    grown = phase_table.growing(finding)
    if not grown:
        return Section(title="Growth per phase")
    return Section(
        title="Growth per phase",
        paragraphs=phase_table.sentences(finding, SCREEN),
        tables=[
            Table(
                titles=phase_table.TITLES,
                rows=phase_table.rows(grown, finding, SCREEN, cells=80),
                numeric=frozenset({1, 3}),
            )
        ],
    )


def _jumps(finding: Finding) -> Section:
    """The segments with their slopes, and what the series gained or lost between two of them."""
    rows, before = [], None
    for segment in finding.segments:
        gained = "" if before is None else segment.start_value - before.end_value
        slope = rates.rate(segment.slope_per_x, finding.axis, finding.unit)
        rows.append(
            (
                series_names.place(finding, segment.start_x),
                series_names.place(finding, segment.end_x),
                numbers.quantity(segment.start_value, finding.unit),
                numbers.quantity(segment.end_value, finding.unit),
                slope.full(SCREEN.plus_minus),
                "" if gained == "" else numbers.signed(float(gained), finding.unit),
            )
        )
        before = segment
    titles = ("from", "to", "value", "value at the end", "growth", "jump before")
    return Section(
        title="Segments and jumps",
        tables=[Table(titles=titles, rows=rows, numeric=frozenset({2, 3, 5}))],
        is_open=len(rows) <= 12,
    )


def _processes(found: RecordingFinding) -> Section:
    """A row for each process: the whole job first, then each process below its parent."""
    of_process: dict[str, list[Finding]] = {}
    for finding in found.series:
        of_process.setdefault(finding.process, []).append(finding)
    if set(of_process) <= {""}:
        return Section(title="Processes")
    about = {} if found.readings is None else found.readings.about
    known = {str(one.get("label") or "main"): one for one in _dictionaries(about.get("processes"))}
    rows = []
    for process, depth in process_tree.ordered([*of_process], known).items():
        resident = [f for f in of_process[process] if f.metric == "rss_bytes"][:1]
        facts = known.get(process, {})
        role = facts.get("role") or ("" if facts.get("rank") is None else f"rank {facts['rank']}")
        name = process_tree.indented(series_names.process(process, SCREEN), depth)
        cells = [name, SCREEN.show(str(role))]
        if resident:
            finding = resident[0]
            rate = rates.of(finding)
            cells += [numbers.size(finding.latest_value), numbers.size(finding.peak_value)]
            cells += ["" if rate is None else rate.brief(), finding.verdict.name]
        rows.append((*cells, *[""] * (6 - len(cells))))
    titles = ("process", "role", "RSS", "peak", "growth", "verdict")
    table = Table(titles=titles, rows=rows[:_SERIES], numeric=frozenset({2, 3}))
    return Section(title="Processes", tables=[table])


def _dictionaries(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _limits(found: RecordingFinding, finding: Finding) -> Section:
    is_over = exit_cause.is_out_of_memory(found)
    texts = said(forecast.lines(finding, SCREEN, is_over=is_over))
    texts += [] if is_over else said(forecast.first_elsewhere(found, SCREEN))
    texts += said(capacity.lines(found, SCREEN))
    limits = () if found.readings is None else found.readings.limits
    rows = []
    for limit in limits:
        peaks = [
            one.peak_value
            for one in found.series
            if one.role in limit.roles and limit.holds_for(one.metric, one.process)
        ]
        used = numbers.share(max(peaks) / limit.value_bytes) if peaks and limit.value_bytes else ""
        rows.append((SCREEN.show(limit.name), numbers.size(limit.value_bytes), used))
    table = Table(titles=("limit", "size", "peak of it"), rows=rows, numeric=frozenset({1, 2}))
    return Section(title="Limits and forecast", paragraphs=texts, tables=[table])


def _interventions(found: RecordingFinding) -> Section:
    texts, tables = [], []
    for process in interventions.processes(found):
        texts += [f"{interventions.name(o)}: {interventions.sentence(o, SCREEN)}" for o in process]
        tables.append(Table(titles=interventions.TITLES, rows=[*interventions.table_rows(process)]))
    return Section(title="When memory was freed", paragraphs=texts, tables=tables)


def _in_memory(found: RecordingFinding) -> Section:
    titles = ("size", "growth", "number", "tensors and arrays", "held by")
    tables = [
        Table(
            title=in_memory.title(one, SCREEN),
            titles=titles,
            rows=in_memory.rows(one, SCREEN, in_words=True),
            numeric=frozenset({0, 1, 2}),
        )
        for one in found.census[:_CENSUSES]
    ]
    return Section(title="In memory", tables=tables)


def _decision(found: RecordingFinding) -> Section:
    """The arguments for and against, with their numbers."""
    groups: list[tuple[str, list[str]]] = []
    for block in arguments.blocks(found, SCREEN):
        for line in block:
            text = line.plain.strip()
            if line.plain.startswith(" " * (INDENT + 1)) and groups:
                groups[-1][1].append(text)
            else:
                groups.append((text, []))
    return Section(title="How it was decided", groups=groups, is_open=False)


def _environment(found: RecordingFinding) -> Section:
    about = {} if found.readings is None else found.readings.about
    known = [key for key in _FIRST if key in about]
    order = [*known, *(key for key in about if key not in {*known, *_NOT_ENVIRONMENT})]
    rows = [row for key in order for row in _flat(key, about[key])]
    more = len(rows) - _ENVIRONMENT
    left_out = [f"and {more:,} more entries"] if more > 0 else []
    table = Table(titles=("name", "value"), rows=rows[:_ENVIRONMENT])
    return Section(title="Environment", tables=[table], paragraphs=left_out, is_open=False)


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    """The entries of a value, each with its name; those of lists in lists are only counted."""
    if isinstance(value, dict):
        if name.count(".") > _DEEPEST:
            yield SCREEN.show(name), f"{len(value):,} entries"
            return
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
        return
    if not isinstance(value, list):
        text = str(value)
    elif any(isinstance(one, (dict, list)) for one in value):
        text = f"{len(value):,} entries"
    else:
        text = " ".join(map(str, value))
    yield SCREEN.show(name, cells=_CELLS), SCREEN.show(text, cells=_CELLS)
