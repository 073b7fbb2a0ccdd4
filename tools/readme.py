"""Keep the screens in the documentation equal to what memdiag really prints.

A screen is a fenced block after a line `<!-- screen: COMMAND -->`. `readme.py` runs each command
in the repository's root, 80 columns wide and without colour, and writes command, output (standard
output and error together) and a failing exit code into the block; `--check` only compares.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/*.md")))
SCREEN = re.compile(r"(<!-- screen: (?P<command>.+?) -->\n```console\n)(?P<shown>.*?)(```\n)", re.S)
WIDTH = 80
TIMEOUT_S = 120


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = 0
    for name in DOCUMENTS:
        path = ROOT / name
        old = path.read_text(encoding="utf-8")
        new = SCREEN.sub(rewritten, old)
        if new == old:
            continue
        stale += 1
        if check:
            sys.stdout.writelines(
                difflib.unified_diff(
                    old.splitlines(True), new.splitlines(True), name, "what memdiag prints"
                )
            )
            print(f"{name} shows screens that memdiag does not print; see above, or: make readme")
        else:
            path.write_text(new, encoding="utf-8")
            print(f"{name}: rewritten")
    return 1 if check and stale else 0


def rewritten(block: re.Match[str]) -> str:
    return block[1] + screen(block["command"]) + block[4]


def screen(command: str) -> str:
    """What a person sees who types `command`, which begins with `memdiag`."""
    words = shlex.split(command)
    if words[0] != "memdiag":
        raise SystemExit(f"only memdiag's own screens are shown, not {words[0]!r}")
    ended = subprocess.run(
        [sys.executable, "-m", "memdiag", *words[1:]],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )
    lines = [f"$ {command}", *(line.rstrip() for line in ended.stdout.splitlines())]
    if ended.returncode != 0:
        lines += ["$ echo $?", str(ended.returncode)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
