"""The whole-screen expected outputs in `screens/`, and how they are made.

After a change that is meant: `PYTHONPATH=tests python -m report.draw_screens`, then read the diff.
"""

from __future__ import annotations

import io
from pathlib import Path

from report import diagnoses
from rich.console import Console

from memdiag.findings import Diagnosis
from memdiag.report.terminal import render

FOLDER = Path(__file__).parent / "screens"
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


def main() -> None:
    """Write all screens anew."""
    for name, width, ascii_only in CASES:
        screen = text(diagnoses.SCREENS[name](), width=width, ascii_only=ascii_only)
        path(name, width, ascii_only).write_text(screen, encoding="utf-8")


if __name__ == "__main__":
    main()
