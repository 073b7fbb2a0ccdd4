"""Another user swaps links for a file of results while it is opened, again and again."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

from . import canaries
from .campaign import Case, Ground, Result, inject
from .effects import prepared
from .running import MEMDIAG, blamed, complaints, environ, run
from .users import ATTACKER, VICTIM

_OPENINGS = 300
_NAMES = ("out.sqlite", "out.parquet")
# Of the victim: opens and closes the file of results, which may be refused each time.
_VICTIM = """
import contextlib, sys
from pathlib import Path
from memdiag.errors import MemdiagError
from memdiag.fleet.results_file import ResultsFile

for _ in range(int(sys.argv[2])):
    with contextlib.suppress(MemdiagError), ResultsFile(Path(sys.argv[1])):
        pass
"""
# Of the attacker: in turn nothing, an empty file and a link under each name that SQLite opens.
_ATTACKER = """
import contextlib, itertools, os, sys

name, target = sys.argv[1:]
places = [name + ending for ending in ("", "-wal", "-journal")]
print("ready", flush=True)
for place in itertools.cycle(places):
    with contextlib.suppress(OSError):
        open("file", "w").close()
        os.replace("file", place)
    with contextlib.suppress(OSError):
        os.symlink(target, "link")
        os.replace("link", place)
    with contextlib.suppress(OSError):
        os.unlink(place)
"""


def swapped_results(ground: Ground) -> Result:
    """`--results` in a directory in which others may replace every file."""
    if os.geteuid() != 0:
        return Result(name="results", injections=0, skipped=(ground.users.why_not,))
    victims = {"root": 0} if ground.users.why_no_victim else {"root": 0, "a user": VICTIM}
    cases = [
        Case(
            name=f"{name} swapped for a link to {target}, {who}",
            run=partial(_raced, ground=ground, name=name, target=target, victim=victim),
            injections=_OPENINGS,
        )
        for who, victim in victims.items()
        for name in _NAMES
        for target in ("results.sqlite", "secret", "nowhere")
    ]
    return inject("results", ground, cases)


def _raced(place: Path, *, ground: Ground, name: str, target: str, victim: int) -> list[str]:
    base = place / "run"
    prepared(base, victim)
    base.chmod(0o755)
    python = ground.users.python if victim else MEMDIAG[0]
    call = partial(run, env=environ(base), user=victim or None)
    roots = canaries.plant(base / "home")
    for path in (roots, *roots.rglob("*")):
        os.chown(path, victim, victim)
    call([python, "-c", _VICTIM, "results.sqlite", "1"], cwd=roots)
    before = canaries.watched(roots)
    shared = place / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    working = name if name.endswith(".sqlite") else f"{name}.partial"
    racing = [ground.users.plain_python, "-c", _ATTACKER, working, str(roots / target)]
    with subprocess.Popen(racing, cwd=shared, user=ATTACKER, stdout=subprocess.PIPE) as attacker:
        assert attacker.stdout is not None
        attacker.stdout.readline()
        ended = call([python, "-c", _VICTIM, name, str(_OPENINGS)], cwd=shared)
        attacker.kill()
    shutil.rmtree(shared)
    found = [*complaints(ended), *before.changes()]
    if ended.status != 0:
        found.append(f"the status is {ended.status}")
    return blamed(ended, found)
