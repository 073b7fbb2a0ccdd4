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
from memdiag.report.text.screen import Detail
from memdiag.values.findings import Diagnosis

FOLDER = Path(__file__).parent / "screens"
PAGE = Path(__file__).parents[2] / "docs" / "json.md"
# Every case at 80 columns, and the two that hold most at every width and in ASCII.
DETAILED = ("leak", "many_series", "hostile")  # with -v, too
CASES = [(name, 80, False) for name in diagnoses.SCREENS]
CASES += [(name, width, False) for name in ("leak", "many_recordings") for width in (60, 160)]
CASES += [(name, 80, True) for name in ("leak", "warmup", "hostile")]


def text(
    diagnosis: Diagnosis,
    *,
    width: int,
    ascii_only: bool = False,
    colour: bool = False,
    detail: Detail = Detail.FACTS,
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
    report = render(diagnosis, width=width, ascii_only=ascii_only, detail=detail)
    console.print(report, soft_wrap=True)
    return out.getvalue()


def path(name: str, width: int, ascii_only: bool, detail: Detail = Detail.FACTS) -> Path:
    more = "-v" if detail is Detail.SERIES else ""
    return FOLDER / f"{name}-{width}{'-ascii' if ascii_only else ''}{more}.txt"


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
    for name in DETAILED:
        screen = text(diagnoses.SCREENS[name](), width=80, detail=Detail.SERIES)
        path(name, 80, False, Detail.SERIES).write_text(screen, encoding="utf-8")
    PAGE.write_text(documented(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
