"""Starts a program under variants of the probe: `python -S sabotaged_starts.py WORK NOTES`.

WORK holds `probe` (a copy of the probe), `program.py`, `noting` (files of the probe whose functions
write their names to the descriptor NOTES), and `variants`: a folder for each variant, with
`source.py` to put in the place of a file of the probe, and `of`, the file and the function that the
variant changes. Each program runs in a forked child that first does what an interpreter does at its
start (`site`, which runs our `sitecustomize`). What it wrote and how it ended goes to `stdout`,
`stderr` and `status` in the variant's folder. A variant of a function that the program does not
reach does not run.

The syntax is that of Python 3.8.
"""

import os
import py_compile
import sys
from pathlib import Path

TRIES = 2  # in which functions are reached that depend on time


def main():
    work = Path(sys.argv[1])
    probe = work / "probe"
    for path in probe.rglob("*.py"):
        py_compile.compile(str(path))
    program = (work / "program.py").read_text()
    reached = set()
    for number in range(TRIES):
        reached |= noted(work, program, work / f"try {number}")
    for variant in sorted((work / "variants").iterdir()):
        of = (variant / "of").read_text()
        if of in reached:
            file = probe / of.split(":")[0]
            sound = file.rename(work / "sound")  # (keeps its time, so what is compiled)
            file.write_text((variant / "source.py").read_text())
            run(program, variant)
            sound.replace(file)


def noted(work, program, folder):
    """The functions that the program reaches, `file:name`, with all of the probe's files."""
    folder.mkdir()
    swapped = []
    for path in (work / "noting").rglob("*.py"):
        file = work / "probe" / path.relative_to(work / "noting")
        swapped.append((file, file.rename(folder / f"sound {len(swapped)}")))
        file.write_text(path.read_text())
    notes = os.open(str(folder / "notes"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(notes, int(sys.argv[2]))
    run(program, folder)
    os.close(int(sys.argv[2]))
    os.close(notes)
    for file, sound in swapped:
        sound.replace(file)
    return set((folder / "notes").read_text().split("\n"))


def run(program, variant):
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
