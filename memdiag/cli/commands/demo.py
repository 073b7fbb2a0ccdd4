"""`memdiag demo`: a leak and a warm-up, recorded and judged here and now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import typer

from memdiag.cli.output.messages import say
from memdiag.errors import Exit

# What is shown, and the exit code that it must have.
_SHOWN = {"leak": Exit.LEAK, "warmup": Exit.NO_LEAK}
_PROGRAM = Path(__file__).with_name("demo_training.py")


def demo() -> None:
    """Run a training that leaks and one that warms up, some ten seconds each, and show the reports.

    Exits with 0 if both verdicts are right, else with 4. The runs are kept as those of memdiag run.
    """
    codes = []
    for name in _SHOWN:
        command = [sys.executable, str(_PROGRAM), name]
        say(f"memdiag run -- python {_PROGRAM.name} {name}")
        whole = [sys.executable, "-m", "memdiag", "run", "--", *command]
        codes.append(subprocess.run(whole, check=False).returncode)
        print(file=sys.stderr)
    if Exit.INTERRUPTED in codes:
        raise typer.Exit(Exit.INTERRUPTED)
    if codes != [*_SHOWN.values()]:
        raise typer.Exit(Exit.CANNOT_MEASURE)
    say("both runs were kept; next, try: memdiag list, memdiag report last~1 -v")
