"""How long `memdiag --help` and `memdiag analyze` of a small file take beside the bare imports of
what they are built on.

    python benchmarks/startup.py [PAIRS]

Interleaved pairs, so that whatever else the machine does hits both alike; the figure is the median
of the pairs' ratios. Fails at a ratio of 2 or more, and if either imports what only a picture, an
HTML report or a live screen needs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

BAR = 2.0
ROOT = Path(__file__).resolve().parent.parent
SMALL = str(ROOT / "fixtures" / "runs" / "vision_run2.csv")
# Arguments, and what they are built on.
MEASURED = (
    (("--help",), "typer, rich"),
    (("analyze", SMALL), "typer, rich.console, numpy, polars"),
)
LATER = ("matplotlib", "jinja2", "textual")


def seconds(command: tuple[str, ...]) -> float:
    began_s = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began_s


def ratio(arguments: tuple[str, ...], imports: str, pairs: int) -> float:
    """The median ratio of the pairs, which it prints."""
    ours = (sys.executable, "-m", "memdiag", *arguments)
    base = (sys.executable, "-c", f"import {imports}")
    seconds(ours), seconds(base)  # byte code and file cache
    measured = [(seconds(ours), seconds(base)) for _ in range(pairs)]
    median = statistics.median(one / other for one, other in measured)
    ours_ms, base_ms = (statistics.median(column) * 1e3 for column in zip(*measured, strict=True))
    print(f"memdiag {arguments[0]} {ours_ms:.0f} ms, import {imports} {base_ms:.0f} ms", end="; ")
    print(f"median ratio of {pairs} pairs {median:.2f} (bar: under {BAR:g})")
    return median


def needless(arguments: tuple[str, ...]) -> list[str]:
    """What is imported, but not needed."""
    command = (sys.executable, "-X", "importtime", "-m", "memdiag", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    return [name for name in LATER if name in imported]


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    failed = [ratio(arguments, imports, pairs) >= BAR for arguments, imports in MEASURED]
    for arguments, _ in MEASURED:
        for name in needless(arguments):
            print(f"memdiag {arguments[0]} imports {name}")
            failed.append(True)
    return 1 if any(failed) else 0


if __name__ == "__main__":
    raise SystemExit(main())
