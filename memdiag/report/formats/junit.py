"""The report as JUnit XML: a test case for each series and each budget.

A leak and a broken budget are failures. An inconclusive verdict is an error (skipped if the gate
lets it pass), and so is a source that could not be read.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from memdiag.report.sections import budgets, headline
from memdiag.report.text import rates, wording
from memdiag.report.text.screen import Screen
from memdiag.values.findings import BudgetFinding, Diagnosis, Finding, RecordingFinding, Standing
from memdiag.values.verdict import Verdict

# Characters that XML 1.0 cannot contain, not even escaped ("Char" of section 2.2).
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SCREEN = Screen(width=100)
_OUTCOMES = {"failures": "failure", "errors": "error", "skipped": "skipped"}
# How every report begins; a file that begins so may be replaced by another report.
BEGINNING = '<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="memdiag">'

Failing = Collection[Verdict | Standing]


def document(diagnosis: Diagnosis, *, failing: Failing) -> str:
    """The XML text. failing: verdicts and standings that fail the command; others pass."""
    root = Element("testsuites", name="memdiag")
    for found in diagnosis.recordings:
        suite = _suite(root, found.source)
        for finding in found.series:
            _series(suite, found, finding, failing)
        for held in found.budgets:
            _budget(suite, found, held, failing)
        if not len(suite):
            _case(suite, found.source, "memory", "error", headline.NOTHING_MEASURED)
    for failure in diagnosis.failures:
        suite = _suite(root, failure.source)
        _case(suite, failure.source, "read", "error", failure.message, failure.remedy)
    for suite in root:
        suite.set("tests", str(len(suite)))
        for attribute, kind in _OUTCOMES.items():
            suite.set(attribute, str(len(suite.findall(f"*/{kind}"))))
    indent(root, space="")
    declaration, _, _ = BEGINNING.partition("\n")
    return f"{declaration}\n{tostring(root, encoding='unicode')}\n"


def _suite(root: Element, source: str) -> Element:
    return SubElement(root, "testsuite", name=_legal(source))


def _series(suite: Element, found: RecordingFinding, finding: Finding, failing: Failing) -> None:
    """Only a leak or the series that decides can fail: an inconclusive series beside it cannot."""
    rate = rates.of(finding)
    growth = "" if rate is None else f", {rate.full(_SCREEN.plus_minus)}"
    message = f"{finding.verdict.name}: {wording.REASONS[finding.reason]}{growth}"
    decides = finding is found.deciding or finding.verdict is Verdict.LEAK
    fails = decides and finding.verdict in failing
    kind = "failure" if fails else "system-out"
    if finding.verdict is Verdict.INCONCLUSIVE:
        kind = "error" if fails else "skipped"
    story = headline.story(finding, _SCREEN)
    _case(suite, found.source, _name(finding.metric, finding.process), kind, message, story)


def _budget(suite: Element, found: RecordingFinding, held: BudgetFinding, failing: Failing) -> None:
    name = f"{held.budget.text} ({_name(held.metric, held.process)})"
    sentence = budgets.sentence(held, _SCREEN)
    if held.standing is Standing.KEPT:
        _case(suite, found.source, name, "system-out", text=sentence)
        return
    failed = "failure" if held.standing is Standing.BROKEN else "error"
    _case(suite, found.source, name, failed if held.standing in failing else "skipped", sentence)


def _name(metric: str, process: str) -> str:
    return f"{metric} {process}".strip() or "memory"


def _case(
    suite: Element, source: str, name: str, kind: str, message: str = "", text: str = ""
) -> None:
    """A test case with one outcome; only `system-out`, which is a pass, has no message."""
    case = SubElement(suite, "testcase", classname=_legal(f"memdiag.{source}"), name=_legal(name))
    outcome = SubElement(case, kind)
    outcome.text = _legal(text)
    if kind != "system-out":
        outcome.set("message", _legal(message))


def _legal(text: str) -> str:
    """Characters that XML cannot contain are shown as escapes."""
    return _ILLEGAL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
