"""Workflow commands: what GitHub Actions shows beside a step and on the pull request.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from memdiag.report.sections import budgets, headline
from memdiag.report.text.screen import Screen
from memdiag.values.findings import Diagnosis, Standing
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

_SCREEN = Screen(width=100)


def commands(diagnosis: Diagnosis, *, failing: Collection[Verdict | Standing]) -> Iterator[str]:
    """A line for each leak, inconclusive verdict and budget that is not kept."""
    for failure in diagnosis.failures:
        yield _command("error", "memdiag: not analyzed", f"{failure.source}: {failure.message}")
    for found in diagnosis.recordings:
        if found.verdict in {Verdict.LEAK, Verdict.INCONCLUSIVE} or found.verdict in failing:
            finding = found.deciding
            nothing = headline.NOTHING_MEASURED
            story = nothing if finding is None else headline.story(finding, _SCREEN)
            title = f"memdiag: {found.verdict.name}, {headline.gist(found)}"
            yield _command(_level(found.verdict, failing), title, f"{found.source}: {story}")
        for held in found.budgets:
            if held.standing is not Standing.KEPT:
                title = f"memdiag: budget {held.standing.value}"
                text = f"{found.source}: {held.budget.text}: {budgets.sentence(held, _SCREEN)}"
                yield _command(_level(held.standing, failing), title, text)


def _level(what: Verdict | Standing, failing: Collection[Verdict | Standing]) -> str:
    return "error" if what in failing else "warning"


def _command(level: str, title: str, message: str) -> str:
    return f"::{level} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """The message after `::`, on one line and printable."""
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
