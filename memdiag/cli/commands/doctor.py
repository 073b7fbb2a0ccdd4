"""`memdiag doctor`: what can be measured on this machine, what can't, and how to get it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Annotated

import typer

from memdiag.values.measurements import Ability, Check

Json = Annotated[bool, typer.Option("--json", help="Print it as JSON, and nothing else.")]


def doctor(as_json: Json = False) -> None:
    """Say what can be measured on this machine, what can't, and how to get it.

    Ends with 0 where the memory of processes can be watched, else with 4.
    """
    from memdiag.capture.diagnosis.gpu_checks import gpu_checks
    from memdiag.capture.diagnosis.host_checks import host_checks, software_checks
    from memdiag.report.formats.doctor import document, verdict

    checks = [*host_checks(), *gpu_checks(os.environ), *software_checks(), _terminal()]
    if as_json:
        print(json.dumps(document(checks), indent=2))
    else:
        _show(checks)
    raise typer.Exit(int(verdict(checks)))


def _show(checks: list[Check]) -> None:
    from rich.console import Console

    from memdiag.report.formats.doctor import render

    console = Console(highlight=False, soft_wrap=True)
    console.print(render(checks, width=_width(), ascii_only=not _is_unicode()))


def _terminal() -> Check:
    """How the report would look here."""
    facts = {
        "is_terminal": sys.stdout.isatty(),
        "columns": _width(),
        "encoding": sys.stdout.encoding or "unknown",
        "color": sys.stdout.isatty() and not os.environ.get("NO_COLOR"),
        "term": os.environ.get("TERM", ""),
    }
    text = "{columns} columns, {encoding}"
    text += ", colour" if facts["color"] else ", no colour"
    text += "" if facts["is_terminal"] else " (not a terminal)"
    return Check(name="terminal", title="terminal", ability=Ability.FACT, text=text, facts=facts)


def _width() -> int:
    return shutil.get_terminal_size((80, 24)).columns


def _is_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
