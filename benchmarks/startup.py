"""How long `memdiag --help` takes beside the bare imports of what it is built on.

    python benchmarks/startup.py [PAIRS]

Interleaved pairs, so that whatever else the machine does hits both alike; the figure is the median
of the pairs' ratios. Fails at a ratio of 2 or more.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

BAR = 2.0
OURS = (sys.executable, "-m", "memdiag", "--help")
BASE = (sys.executable, "-c", "import typer, rich")


def seconds(command: tuple[str, ...]) -> float:
    began_s = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began_s


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    seconds(OURS), seconds(BASE)  # byte code and file cache
    measured = [(seconds(OURS), seconds(BASE)) for _ in range(pairs)]
    ratio = statistics.median(ours / base for ours, base in measured)
    ours_ms, base_ms = (statistics.median(column) * 1e3 for column in zip(*measured, strict=True))
    print(f"memdiag --help {ours_ms:.0f} ms, import typer and rich {base_ms:.0f} ms", end="; ")
    print(f"median ratio of {pairs} pairs {ratio:.2f} (bar: under {BAR:g})")
    return 0 if ratio < BAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
