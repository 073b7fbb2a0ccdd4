"""The report as Markdown, for pull requests and CI summaries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from memdiag.report.picture.of_finding import of_finding
from memdiag.report.plotting.plot import draw
from memdiag.report.sections import (
    budgets,
    cause,
    headline,
    in_memory,
    interventions,
    series_table,
)
from memdiag.report.text.screen import Screen
from memdiag.values.findings import Diagnosis, Finding, RecordingFinding, Standing
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

_SCREEN = Screen(width=100)
_ROWS = 8
_CENSUSES = 2
_CHARTS, _COLUMNS = 8, 80
# Characters with a meaning in Markdown or HTML, including those of mentions and references.
_ACTIVE = re.compile(r"([\\`*_{}\[\]()<>#!|~@$&])")
_MARKS = {
    Verdict.LEAK: "❌",
    Verdict.INCONCLUSIVE: "❔",
    Verdict.WARMUP: "✅",
    Verdict.STABLE: "✅",
}
_STANDINGS = {
    Standing.BROKEN: "❌ broken",
    Standing.UNCLEAR: "❔ unclear",
    Standing.KEPT: "✅ kept",
}


_NOT_ANALYZED = "❌ not analyzed: "
# How a report may begin; a file that begins so may be replaced by another report.
BEGINNINGS = (
    f"### {_NOT_ANALYZED}",
    *(f"### {mark} {verdict.name}: " for verdict, mark in _MARKS.items()),
)


def document(diagnosis: Diagnosis, *, picture: str = "") -> str:
    """The whole report; text from outside is escaped. picture: path of a picture to embed, instead
    of charts in characters."""
    blocks = []
    for at, found in enumerate(diagnosis.recordings):
        blocks += _recording(found, has_chart=not picture and at < _CHARTS)
    for failure in diagnosis.failures:
        blocks += [
            f"### {_NOT_ANALYZED}{safe(failure.source)}",
            f"{safe(failure.message)}. Try: {safe(failure.remedy)}",
        ]
    if picture:
        blocks.append(f"![memory over the run]({quote(picture)})")
    return "\n\n".join(blocks) + "\n"


def _recording(found: RecordingFinding, *, has_chart: bool) -> list[str]:
    verdict = f"{_MARKS[found.verdict]} {found.verdict.name}"
    blocks = [f"### {verdict}: {safe(headline.gist(found))}"]
    finding = found.deciding
    source = f"**{safe(found.source)}**"
    if finding is None:
        return [*blocks, f"{source}: {headline.NOTHING_MEASURED}."]
    blocks.append(f"{source}: {safe(headline.story(finding, _SCREEN))}")
    blocks += _chart(finding) if has_chart else []
    if found.budgets:
        rows = [
            [_STANDINGS[h.standing], safe(h.budget.text), safe(budgets.sentence(h, _SCREEN))]
            for h in found.budgets
        ]
        blocks.append(table(("", "budget", "measured"), rows))
    suspects = [f"- {safe(text)}" for text in in_memory.suspect_sentences(found, _SCREEN)]
    if found.cause is not None and found.cause.share_explained is not None:
        texts = cause.sentences(found, _SCREEN, has_places=bool(suspects))
        said = "\n".join(f"- {safe(text)}" for text in texts)
        blocks.append(f"**Cause**\n\n{said}")
    if suspects:
        blocks.append("**Grew most**\n\n" + "\n".join(suspects))
    blocks += _interventions(found)
    for one in found.census[:_CENSUSES]:
        blocks.append(f"**In memory** {safe(in_memory.title(one, _SCREEN))}")
        if one.groups:
            titles = ("size", "growth", "number", "tensors and arrays", "held by")
            rows = [list(map(safe, row)) for row in in_memory.rows(one, _SCREEN, in_words=True)]
            blocks.append(table(titles, rows))
    ranked = series_table.ranked(found)
    rows = [list(map(safe, row)) for row in series_table.rows(ranked[:_ROWS], _SCREEN)]
    blocks.append(table(series_table.TITLES, rows))
    several = [f"… and {len(ranked) - _ROWS} more series"]
    return blocks + several * (len(ranked) > _ROWS)


def _chart(finding: Finding) -> list[str]:
    """The series in characters. A job summary shows no image that is not on the web."""
    # In a browser, the characters of other charts may be of another width.
    lines = [line.plain for line in draw(of_finding(finding, _SCREEN), _COLUMNS, ascii_only=True)]
    return [_code("\n".join(lines))] if lines else []


def _code(text: str) -> str:
    """A block of code, which its text cannot end."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _interventions(found: RecordingFinding) -> list[str]:
    blocks = []
    for process in interventions.processes(found):
        said = [
            f"- `{interventions.name(one)}`: {safe(interventions.sentence(one, _SCREEN))}"
            for one in process
        ]
        blocks.append("**Interventions**\n\n" + "\n".join(said))
        rows = [list(map(safe, row)) for row in interventions.table_rows(process)]
        blocks += [table(interventions.TITLES, rows)] if rows else []
    return blocks


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; its cells are escaped already."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def safe(text: str) -> str:
    """Text from outside, without a meaning in Markdown or HTML."""
    return _ACTIVE.sub(r"\\\1", printable(text))
