"""Starts a program under variants of the probe: `python -S sabotaged_starts.py WORK FILE`.

WORK holds `probe` (a copy of the probe), `program.py`, and `variants`: a folder for each variant,
with `source.py` to put in the place of FILE in the probe. Each program runs in a forked child that
first does what an interpreter does at its start (`site`, which runs our `sitecustomize`). What it
wrote and how it ended goes to `stdout`, `stderr` and `status` in the variant's folder.

The syntax is that of Python 3.8.
"""

import os
import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path


def main():
    work, replaced = Path(sys.argv[1]), Path(sys.argv[1], "probe", sys.argv[2])
    for path in (work / "probe").rglob("*.py"):
        py_compile.compile(str(path))
    Path(cache_from_source(str(replaced))).unlink()  # could pass for up to date
    program = (work / "program.py").read_text()
    for variant in sorted((work / "variants").iterdir()):
        replaced.write_text((variant / "source.py").read_text())
        pid = os.fork()
        if pid == 0:
            start(program, variant)
        status = os.waitpid(pid, 0)[1]
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        (variant / "status").write_text(str(code))


def start(program, variant):
    """Never returns: the program ends with `sys.exit`, as the last thing that this process does."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(str(variant / name), os.O_WRONLY | os.O_CREAT), number)
    os.environ["MEMDIAG_CHANNEL"] = str(variant / "channel")
    (variant / "channel").mkdir()
    sys.argv = ["-c"]
    import site

    site.main()
    code = compile(program, "<string>", "exec")
    exec(code, sys.modules["__main__"].__dict__)  # noqa: S102
    raise AssertionError("the program did not exit")


if __name__ == "__main__":
    main()
