"""Run the benchmarks, one after the other, each in a process of its own.

`bench.py` runs all of `benchmarks/*.py`; `bench.py startup decide` only these; `--seed N` makes
those that draw at random draw anew. Those of the verdict come first and take some ten minutes; all
of them take more than an hour, as peers have to be waited for. A benchmark is a script that prints
its figures beside its bar and fails when it misses the bar. What they print goes into
docs/bench.md, a section each (the sections of those that did not run stay), and tables and plots of
their own into docs/; `--no-write` leaves docs/ alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "bench.md"
# What the verdict is worth, before what takes long.
FIRST = ("decide", "live", "phases", "speed", "comparing")
HEAD = """# What the benchmarks print

Made by `make bench`, a section for each script of `benchmarks/`. Figures of time are of the machine
that is named, and of what else it did.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one benchmark printed. code: its exit status, 0 where it is within its bars."""

    name: str
    text: str
    code: int
    took_s: float
    command: str


def main() -> int:
    there = {path.stem: path for path in sorted((ROOT / "benchmarks").glob("[a-z]*.py"))}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", help="for the benchmarks that draw at random")
    parser.add_argument("--no-write", action="store_true", help="leave docs/ alone")
    parser.add_argument("benchmark", nargs="*", help="all without any: " + ", ".join(there))
    options = parser.parse_args()
    first = [name for name in FIRST if name in there]
    wanted = options.benchmark or [*first, *(name for name in there if name not in first)]
    unknown = [name for name in wanted if name not in there]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(there)}", file=sys.stderr)
        return 2
    outcomes = []
    for name in wanted:  # (kept at once: all of them take more than an hour)
        outcomes.append(run(there[name], options.seed, write=not options.no_write))
        if not options.no_write:
            old = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else ""
            DOCUMENT.write_text(merged(old, outcomes[-1:], machine()), encoding="utf-8")
    missed = [outcome.name for outcome in outcomes if outcome.code]
    print(f"{len(wanted) - len(missed)} of {len(wanted)} benchmarks within their bars")
    if missed:
        print("missed: " + ", ".join(missed))
    return 1 if missed else 0


def run(path: Path, seed: str | None, *, write: bool) -> Outcome:
    """Run one benchmark and print what it prints while it does."""
    print(f"== {path.stem}", flush=True)
    began_s = time.monotonic()
    source = path.read_text(encoding="utf-8")
    asked = ["--seed", seed] if seed and '"--seed"' in source else []
    asked += ["--write"] if write and '"--write"' in source else []
    lines = []
    with subprocess.Popen(
        [sys.executable, str(path), *asked],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    code, took_s = process.returncode, time.monotonic() - began_s
    print(f"   {took_s:.0f} s, status {code}\n", flush=True)
    command = " ".join(["python", f"benchmarks/{path.name}", *asked])
    return Outcome(
        name=path.stem, text="".join(lines).strip(), code=code, took_s=took_s, command=command
    )


def machine() -> str:
    """The machine that figures of time are of."""
    cores = os.cpu_count() or 1
    return (
        f"{platform.system()} {platform.machine()}, {cores} cores, Python {sys.version.split()[0]}"
    )


def merged(old: str, outcomes: list[Outcome], where: str) -> str:
    """The document with the sections of these outcomes replaced, all in order of their names."""
    sections = {}
    for part in old.split("\n## ")[1:]:
        name, _, rest = part.partition("\n")
        sections[name.strip()] = rest.strip()
    for outcome in outcomes:
        said = "within its bars" if outcome.code == 0 else "a bar is missed"
        about = f"`{outcome.command}`: {said}; {outcome.took_s:.0f} s on {where}."
        sections[outcome.name] = f"{about}\n\n{_shown(outcome.text)}"
    parts = [HEAD, *(f"## {name}\n\n{sections[name]}\n" for name in sorted(sections))]
    return "\n".join(parts)


def _shown(text: str) -> str:
    """Tables as they are, everything else as it was printed."""
    blocks: list[str] = []
    kept: list[str] = []
    was_table = False
    for line in text.splitlines():
        is_table = line.startswith("|")
        if is_table != was_table and kept:
            blocks.append(_block(kept, was_table))
            kept = []
        was_table = is_table
        kept.append(line)
    if kept:
        blocks.append(_block(kept, was_table))
    return "\n\n".join(blocks)


def _block(lines: list[str], is_table: bool) -> str:
    body = "\n".join(lines).strip("\n")
    return body if is_table else f"```text\n{body}\n```"


if __name__ == "__main__":
    sys.exit(main())
