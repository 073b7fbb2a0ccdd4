"""How `usage_errors.txt` is made: every wrong usage with what memdiag prints, and its exit code.

After a change that is meant: `PYTHONPATH=tests python -m cli.draw_usage_errors`, and read the
difference. A new row is a line `$ memdiag ...` in the file; the rest of it is written here.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import commandline

ROWS = Path(__file__).with_name("usage_errors.txt")
_PROMPT = "$ "
# What the commands find in their directory.
FILES = {
    "train.py": b"print(1)\n",
    "run.csv": b"step,rss_mb\n" + b"".join(b"%d,500\n" % step for step in range(40)),
    "empty.csv": b"",
    "header.csv": b"step,rss_mb\n",
    "nomem.csv": b"step,loss\n1,0.5\n2,0.4\n3,0.3\n",
    "bin.csv": bytes(range(256)) * 8,
    "bad.parquet": b"PAR1 but not really",
}


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A directory with `FILES`, which is the working directory meanwhile."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        for file, content in FILES.items():
            Path(name, file).write_bytes(content)
        Path(name, "dir").mkdir()
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def rows() -> dict[str, str]:
    """The command lines, and what they print: standard error and `[exit code]`."""
    found: dict[str, str] = {}
    command = ""
    for line in ROWS.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith(_PROMPT):
            command = line.removeprefix(_PROMPT).rstrip("\n")
            found[command] = ""
        elif command and not line.startswith("# "):
            found[command] += line
    return {command: text.rstrip("\n") for command, text in found.items()}


def printed(command: str) -> str:
    """What a command line prints in the current directory; `NAME=value` before it is set."""
    words = shlex.split(command)
    at = words.index("memdiag")
    environ = dict(word.split("=", 1) for word in words[:at])
    if environ or words[at + 1] == "run":  # in a process of its own: it may start something
        ended = subprocess.run(
            [sys.executable, "-m", "memdiag", *words[at + 1 :]],
            env=os.environ | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return f"{ended.stdout}{ended.stderr}[{ended.returncode}]"
    done = commandline.called(*words[at + 1 :])
    return f"{done.stdout}{done.stderr}[{done.returncode}]"


def main() -> None:
    """Write all of it anew; titles (`# `) stay."""
    lines = []
    with workplace():
        for line in ROWS.read_text(encoding="utf-8").splitlines():
            if line.startswith("# "):
                lines += ["", line, ""]
            elif line.startswith(_PROMPT):
                lines += [line, printed(line.removeprefix(_PROMPT)), ""]
    ROWS.write_text("\n".join(lines).strip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
