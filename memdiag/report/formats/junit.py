"""The report as JUnit XML, as CI servers show it: a test case for each series and each budget.

A leak and a broken budget are failures, a doubt is an error (or skipped, where it passes), a
source that could not be read is an error.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from xml.sax.saxutils import escape, quoteattr

from memdiag.report.sections import budgets, headline
from memdiag.report.text import rates, wording
from memdiag.report.text.screen import Screen
from memdiag.values.findings import BudgetFinding, Diagnosis, Failure, Finding, Standing
from memdiag.values.findings import RecordingFinding as Found
from memdiag.values.verdict import Verdict

# Characters that XML 1.0 can't hold, not even escaped ("Char" of section 2.2).
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SCREEN = Screen(width=100)


# How every report begins, by which one is known again.
BEGINNING = '<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="memdiag">'


def document(diagnosis: Diagnosis, *, failing: Collection[Verdict | Standing]) -> str:
    """The XML text. failing: verdicts and standings that fail the command; others pass."""
    suites = [_suite(found, failing) for found in diagnosis.recordings]
    suites += [_failed(failure) for failure in diagnosis.failures]
    return f"{BEGINNING}\n{''.join(suites)}</testsuites>\n"


def _suite(found: Found, failing: Collection[Verdict | Standing]) -> str:
    cases = [_series(found, finding, failing) for finding in found.series]
    cases += [_budget(found, held, failing) for held in found.budgets]
    if not cases:
        cases = [_case(found.source, "memory", _outcome("error", headline.NOTHING_MEASURED, ""))]
    counts = {kind: sum(f"<{kind} " in case for case in cases) for kind in _KINDS}
    return (
        f'<testsuite name={_attribute(found.source)} tests="{len(cases)}"'
        f' failures="{counts["failure"]}" errors="{counts["error"]}"'
        f' skipped="{counts["skipped"]}">\n{"".join(cases)}</testsuite>\n'
    )


_KINDS = ("failure", "error", "skipped")


def _series(found: Found, finding: Finding, failing: Collection[Verdict | Standing]) -> str:
    """Only the series that the recording's verdict rests on can fail, so that a doubt about one
    that does not count fails nothing."""
    name = _name(finding.metric, finding.process)
    rate = rates.of(finding)
    growth = "" if rate is None else f", {rate.full(_SCREEN.plus_minus)}"
    message = f"{wording.VERDICTS[finding.verdict]}: {wording.REASONS[finding.reason]}{growth}"
    story = headline.story(finding, _SCREEN)
    decides = finding is found.deciding or finding.verdict is Verdict.LEAK
    if finding.verdict is Verdict.INCONCLUSIVE:
        kind = "error" if decides and finding.verdict in failing else "skipped"
        return _case(found.source, name, _outcome(kind, message, story))
    if decides and finding.verdict in failing:
        return _case(found.source, name, _outcome("failure", message, story))
    return _case(found.source, name, f"<system-out>{_text(story)}</system-out>\n")


def _budget(found: Found, held: BudgetFinding, failing: Collection[Verdict | Standing]) -> str:
    name = f"{held.budget.text} ({_name(held.metric, held.process)})"
    sentence = budgets.sentence(held, _SCREEN)
    match held.standing:
        case Standing.KEPT:
            inner = f"<system-out>{_text(sentence)}</system-out>\n"
        case Standing.BROKEN:
            inner = _outcome("failure" if held.standing in failing else "skipped", sentence, "")
        case Standing.UNCLEAR:
            inner = _outcome("error" if held.standing in failing else "skipped", sentence, "")
    return _case(found.source, name, inner)


def _failed(failure: Failure) -> str:
    inner = _outcome("error", failure.message, failure.remedy)
    case = _case(failure.source, "read", inner)
    return (
        f'<testsuite name={_attribute(failure.source)} tests="1" failures="0" errors="1"'
        f' skipped="0">\n{case}</testsuite>\n'
    )


def _name(metric: str, process: str) -> str:
    return f"{metric} {process}".strip() or "memory"


def _case(source: str, name: str, inner: str) -> str:
    return (
        f"<testcase classname={_attribute('memdiag.' + source)} name={_attribute(name)}>\n"
        f"{inner}</testcase>\n"
    )


def _outcome(kind: str, message: str, text: str) -> str:
    return f"<{kind} message={_attribute(message)}>{_text(text)}</{kind}>\n"


def _attribute(text: str) -> str:
    return quoteattr(_legal(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _text(text: str) -> str:
    return escape(_legal(text))


def _legal(text: str) -> str:
    """What XML can't hold is shown as an escape."""
    return _ILLEGAL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
