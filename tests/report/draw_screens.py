"""How the expected outputs in `screens/` and the example in docs/json.md are made.

After a change that is meant: `PYTHONPATH=tests python -m report.draw_screens`, then read the diff.
"""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

from report import diagnoses
from rich.console import Console

from memdiag.cli.options.exit_codes import exit_code
from memdiag.report.formats import json_documents
from memdiag.report.formats.terminal import render
from memdiag.values.findings import Diagnosis

FOLDER = Path(__file__).parent / "screens"
PAGE = Path(__file__).parents[2] / "docs" / "json.md"
# Every case at 80 columns, and the two that hold most at every width and in ASCII.
CASES = [(name, 80, False) for name in diagnoses.SCREENS]
CASES += [(name, width, False) for name in ("leak", "many_recordings") for width in (60, 160)]
CASES += [(name, 80, True) for name in ("leak", "warmup", "hostile")]


def text(
    diagnosis: Diagnosis, *, width: int, ascii_only: bool = False, colour: bool = False
) -> str:
    """The report as it is printed, to a file or (with `colour`) to a terminal."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        legacy_windows=False,
    )
    console.print(render(diagnosis, width=width, ascii_only=ascii_only))
    return out.getvalue()


def path(name: str, width: int, ascii_only: bool) -> Path:
    return FOLDER / f"{name}-{width}{'-ascii' if ascii_only else ''}.txt"


def documented(page: str) -> str:
    """The page on the JSON document, its example as it is written today."""
    found = diagnoses.leak_with_phases().recordings[0]
    leak = replace(found.series[0], phases=found.series[0].phases[:1])
    diagnosis = diagnoses.of(replace(found, series=(leak,), evidence=()))
    example = json_documents.text(json_documents.diagnosis(diagnosis, exit_code(diagnosis)))
    return re.sub(r"(?<=```json\n).*?(?=```\n)", lambda _: example, page, flags=re.S)


def main() -> None:
    """Write all of it anew."""
    for name, width, ascii_only in CASES:
        screen = text(diagnoses.SCREENS[name](), width=width, ascii_only=ascii_only)
        path(name, width, ascii_only).write_text(screen, encoding="utf-8")
    PAGE.write_text(documented(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
