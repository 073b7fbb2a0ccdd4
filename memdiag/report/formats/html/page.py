"""One HTML file: the verdict first, then charts, tables, and how it was decided.

The page loads nothing. Its Content-Security-Policy allows the scripts and the style in it by their
checksums and nothing else, so text from outside could not act even if it were not escaped, and
Jinja2 escapes all of it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import memdiag
from memdiag.report.formats import comparison_wording, json_documents
from memdiag.report.formats.html import facts
from memdiag.report.formats.html.charts import chart
from memdiag.report.formats.html.facts import SCREEN, Table
from memdiag.report.picture.of_comparison import difference, of_comparison
from memdiag.report.picture.of_history import of_history
from memdiag.report.sections.recordings_table import shared_directory
from memdiag.report.sections.series_table import ORDER
from memdiag.report.text import history_words, numbers, series_names
from memdiag.values.comparison import Comparison, SeriesComparison
from memdiag.values.findings import Diagnosis, Failure
from memdiag.values.history import History, Trend

if TYPE_CHECKING:
    from jinja2 import Environment

_HISTORY_CHARTS, _HISTORY_ROWS = 24, 1000
# How a page begins; a file that begins so may be replaced by another report.
BEGINNING = "<!DOCTYPE html>\n<!-- memdiag report -->\n"


def diagnosis(found: Diagnosis, exit_code: int | None = None) -> str:
    """The page of a diagnosis: of one recording, or a table of them with a page each behind it.

    exit_code: of the command; None without one.
    """
    order = sorted(found.recordings, key=lambda one: ORDER.index(one.verdict))
    pages = [facts.page(one) for one in order]
    return _rendered(
        "diagnosis.html.j2",
        title=_title(found, pages),
        verdict=found.verdict.value if found.recordings else "inconclusive",
        pages=pages,
        shared=SCREEN.show(shared_directory([one.source for one in order])),
        failures=_failures(found.failures),
        data={
            "charts": [one.charts for one in pages],
            "document": json_documents.diagnosis(found, exit_code),
        },
    )


def comparison(compared: Comparison, exit_code: int | None = None) -> str:
    """The page of a comparison: both runs over each other, and their difference."""
    found = compared.deciding
    drawn = [] if found is None else [of_comparison(found), difference(found)]
    return _rendered(
        "comparison.html.j2",
        title=f"{comparison_wording.name(compared.effect)}: memdiag comparison",
        verdict=compared.effect.value,
        effect=comparison_wording.name(compared.effect),
        gist="no series in common" if found is None else comparison_wording.gist(found),
        grounds="" if found is None else comparison_wording.GROUNDS[found.why],
        smallest="" if found is None else comparison_wording.smallest_detectable(found),
        series="" if found is None else series_names.opening(found, SCREEN),
        before=[SCREEN.show(name) for name in compared.base],
        after=[SCREEN.show(name) for name in compared.candidate],
        next_step=comparison_wording.next_step(compared),
        tables=[] if found is None else [_measures(found), _all_series(compared)],
        notes=[series_names.stopped(note, SCREEN) for note in compared.notes],
        failures=_failures(compared.failures),
        data={
            "charts": [[chart(one) for one in drawn]],
            "document": json_documents.comparison(compared, exit_code),
        },
    )


def history(found: History, exit_code: int | None = None) -> str:
    """The page of a history: a chart for each series, those that have changed first."""
    trends = sorted(found.trends, key=lambda one: not one.changes)
    last = [trend.changes[-1].is_increase for trend in trends if trend.changes]
    verdict, effect = "no_effect", "NO CHANGE"
    if last:
        verdict, effect = ("worse", "INCREASE") if any(last) else ("improved", "DECREASE")
    drawn = trends[:_HISTORY_CHARTS]
    return _rendered(
        "history.html.j2",
        title=f"{effect}: memdiag history",
        verdict=verdict,
        effect=effect,
        gist=history_words.overall(found),
        changes=[
            f"{_group(trend)}{history_words.sentence(trend, change, SCREEN)}"
            for trend in drawn
            for change in trend.changes
        ],
        names=[f"{_group(trend)}{history_words.quantity(trend, SCREEN)}" for trend in drawn],
        left_out=len(trends) - len(drawn),
        table=_changes(trends),
        data={
            "charts": [[chart(of_history(trend, SCREEN)) for trend in drawn]],
            "document": json_documents.summary(found, exit_code),
        },
    )


def _group(trend: Trend) -> str:
    return f"{SCREEN.show(trend.group)}: " if trend.group else ""


def _changes(trends: Sequence[Trend]) -> Table:
    """A row for each change, and one for each series without."""
    rows = []
    for trend in trends:
        head = (SCREEN.show(trend.group), history_words.quantity(trend, SCREEN))
        rows += [
            (
                *head,
                history_words.amount(trend, change),
                history_words.since(change.since, SCREEN),
                f"{history_words.level(trend, change.before)} ({change.runs_before:,})",
                f"{history_words.level(trend, change.after)} ({change.runs_after:,})",
                numbers.probability(change.p_value),
                history_words.path(change.since, SCREEN),
            )
            for change in trend.changes
        ] or [(*head, "none", "", f"{len(trend.runs):,} runs", "", "", "")]
    titles = ("group", "series", "change", "since", "before (runs)", "after (runs)", "p", "first")
    return Table(title="All series", titles=titles, rows=rows[:_HISTORY_ROWS])


def _title(found: Diagnosis, pages: Sequence[facts.Page]) -> str:
    if len(pages) == 1:
        return f"{pages[0].verdict.upper()}: {pages[0].name}"
    verdict = found.verdict.name if pages else "no verdict"
    return f"{verdict}: {len(pages)} recordings"


def _failures(failed: Sequence[Failure]) -> list[dict[str, str]]:
    return [{key: SCREEN.show(text) for key, text in asdict(one).items()} for one in failed]


def _measures(found: SeriesComparison) -> Table:
    rows = [
        (
            comparison_wording.measure(found, by),
            *(
                comparison_wording.estimate(found, by, one, SCREEN, margin=True)
                for one in (by.base, by.candidate, by.change)
            ),
            comparison_wording.shown(found, by, by.smallest_effect),
        )
        for by in found.differences
    ]
    titles = ("measure", "before", "after", "change", "smallest detectable change")
    return Table(titles=titles, rows=rows)


def _all_series(compared: Comparison) -> Table:
    rows = [
        (
            series_names.series(one, SCREEN),
            ", ".join(dict.fromkeys(verdict.name for verdict in one.base_verdicts)),
            ", ".join(dict.fromkeys(verdict.name for verdict in one.candidate_verdicts)),
            comparison_wording.name(one.effect),
        )
        for one in compared.series
    ]
    return Table(title="All series", titles=("series", "before", "after", "effect"), rows=rows)


def _rendered(template: str, *, data: dict[str, Any], **values: Any) -> str:
    scripts = [_text("uplot/uPlot.iife.min.js"), _text("templates/page.js")]
    style = _text("uplot/uPlot.min.css") + _text("templates/page.css")
    policy = (
        "default-src 'none'; "
        f"script-src {' '.join(map(_checksum, scripts))}; style-src {_checksum(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template(template)
        .render(
            **values,
            policy=policy,
            scripts=scripts,
            style=style,
            data=_inert(data),
            version=memdiag.__version__,
        )
    )


def _inert(data: dict[str, Any]) -> str:
    """JSON that cannot end its element, whatever texts it holds."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _checksum(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _text(name: str) -> str:
    """A file of this package, with the line ends that a browser reads."""
    return resources.files("memdiag.report.formats.html").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(lambda name: _text(f"templates/{name}")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
