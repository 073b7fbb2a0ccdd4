"""`memdiag doctor`: what can be measured on this machine, what can't, and how to enable it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Annotated

import typer

from memdiag.cli.options.page import PageOptions
from memdiag.cli.output.printing import show
from memdiag.values.measurements import Ability, Check

WITHOUT = ("why", "verbose", "quiet")

Json = Annotated[bool, typer.Option("--json", help="Print the checks as JSON, and nothing else.")]


def doctor(as_json: Json = False, *, page: PageOptions) -> None:
    """Check what can be measured on this machine, what can't, and how to enable it.

    Exits with 0 if the memory of processes can be measured, else with 4.
    """
    from memdiag.capture.diagnosis.gpu_checks import gpu_checks
    from memdiag.capture.diagnosis.host_checks import host_checks, software_checks
    from memdiag.report.formats.doctor import document, render, verdict

    checks = [*host_checks(), *gpu_checks(os.environ), *software_checks(), _terminal()]
    if as_json:
        print(json.dumps(document(checks), indent=2))
    else:
        show(lambda width, ascii_only: render(checks, width=width, ascii_only=ascii_only), page)
    raise typer.Exit(int(verdict(checks)))


def _terminal() -> Check:
    """How reports look here."""
    facts = {
        "is_terminal": sys.stdout.isatty(),
        "columns": shutil.get_terminal_size((80, 24)).columns,
        "encoding": sys.stdout.encoding or "unknown",
        "color": sys.stdout.isatty() and not os.environ.get("NO_COLOR"),
        "term": os.environ.get("TERM", ""),
    }
    text = "{columns} columns, {encoding}"
    text += ", color" if facts["color"] else ", no color"
    text += "" if facts["is_terminal"] else " (not a terminal)"
    return Check(name="terminal", title="terminal", ability=Ability.FACT, text=text, facts=facts)
