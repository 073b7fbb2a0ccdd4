"""The report as Markdown, for pull requests and CI summaries."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memdiag.report.sections import budgets, headline
from memdiag.report.sections.series_table import latest, ranked
from memdiag.report.text import numbers, rates, series_names, wording
from memdiag.report.text.screen import Screen
from memdiag.values.findings import Diagnosis, Finding, RecordingFinding, Standing
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

_SCREEN = Screen(width=100)
_ROWS = 8
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


def document(diagnosis: Diagnosis) -> str:
    """The whole report; text from outside is escaped."""
    blocks = [line for found in diagnosis.recordings for line in _recording(found)]
    for failure in diagnosis.failures:
        blocks += [
            f"### {_NOT_ANALYZED}{_safe(failure.source)}",
            f"{_safe(failure.message)}. Try: {_safe(failure.remedy)}",
        ]
    return "\n\n".join(blocks) + "\n"


def _recording(found: RecordingFinding) -> list[str]:
    verdict = f"{_MARKS[found.verdict]} {found.verdict.name}"
    blocks = [f"### {verdict}: {_safe(headline.gist(found))}"]
    finding = found.deciding
    source = f"**{_safe(found.source)}**"
    if finding is None:
        return [*blocks, f"{source}: {headline.NOTHING_MEASURED}."]
    blocks.append(f"{source}: {_safe(headline.story(finding, _SCREEN))}")
    if found.budgets:
        rows = [
            [_STANDINGS[h.standing], _safe(h.budget.text), _safe(budgets.sentence(h, _SCREEN))]
            for h in found.budgets
        ]
        blocks.append(_table(("", "budget", "measured"), rows))
    shown = ranked(found)[:_ROWS]
    several = [f"… and {len(found.series) - _ROWS} more series"]
    blocks.append(_table(("series", "now", "peak", "growth", "verdict"), _rows(shown)))
    return blocks + several * (len(found.series) > _ROWS)


def _rows(findings: Sequence[Finding]) -> list[list[str]]:
    rows = []
    for finding in findings:
        rate = rates.of(finding)
        rows.append(
            [
                _safe(series_names.series(finding, _SCREEN)),
                latest(finding, findings),
                numbers.quantity(finding.peak_value, finding.unit),
                "" if rate is None else _safe(rate.full(_SCREEN.plus_minus)),
                f"{finding.verdict.name}, {wording.REASONS[finding.reason]}",
            ]
        )
    return rows


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _safe(text: str) -> str:
    return _ACTIVE.sub(r"\\\1", printable(text))
