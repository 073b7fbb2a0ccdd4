"""Root attaches to a process of a user who means harm (`watch --pid PID --attach`)."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from . import canaries
from .campaign import Case, Ground, Result, inject, remove
from .effects import prepared
from .running import MEMDIAG, Ended, blamed, complaints, environ, run
from .users import ATTACKER

_ATTACKER = Path(__file__).with_name("attacker.py")
_TRICKS = (
    "swap_script",
    "own_script",
    "link",
    "link_nowhere",
    "link_directory",
    "swap_probe",
    "swap_directory",
    "swap_for_ours",
    "configure_gdb",
    "fifos",
    "directories",
    "remove_all",
    "open_up",
    "own_base",
    "link_base",
)
# Where a system may have memdiag put its directories as well.
_ELSEWHERE = ("/dev/shm", "/run", "/var/tmp")
_ROUNDS = 4
# Attaching may wait two seconds for a probe that an attack keeps from coming, watching takes half
# a second, and judging one.
_LIMIT_S = 9.0
_TARGET = """
import sys, time
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    time.sleep(0.005)
"""


def attaching(ground: Ground) -> Result:
    """The attacker's program against every step of root's; nothing of root's may change."""
    if ground.users.why_not:
        return Result(name="attaching", injections=0, skipped=(ground.users.why_not,))
    reason = _why_not_let_in(ground)
    skipped = [f"the probe itself, which does not get in here: {reason}"] if reason else []
    cases = [Case(name="without an attacker", run=partial(_unharmed, ground=ground))]
    cases += [
        Case(
            name=f"{trick}, round {number}",
            run=partial(
                _attacked,
                ground=ground,
                trick=trick,
                # In /tmp itself memdiag goes without TMPDIR. FIFOs would stay there.
                in_tmp=number == 0 and trick != "fifos",
            ),
        )
        for number in range(_ROUNDS)
        for trick in _TRICKS
    ]
    # One at a time: the attacker is to win its races.
    return inject("attaching", ground, cases, skipped=skipped, jobs=1)


def _why_not_let_in(ground: Ground) -> str:
    """Why the probe does not get in without an attacker, "" where it does."""
    place = ground.place("control")
    with attackers_process(ground) as target:
        ended = _watch(place, target.pid)
    remove(place)
    return "" if "the probe was attached" in ended.said else ended.said.strip().split("\n")[0][:160]


def _unharmed(place: Path, *, ground: Ground) -> list[str]:
    """Whatever comes of it, the target goes on."""
    with attackers_process(ground) as target:
        ended = _watch(place, target.pid)
        found = [*complaints(ended), *hurt(target)]
    return blamed(ended, found)


def _attacked(place: Path, *, ground: Ground, trick: str, in_tmp: bool) -> list[str]:
    roots, loot = canaries.plant(place), place / "loot"
    loot.mkdir()
    loot.chmod(0o777)
    before = canaries.watched(roots)
    base = "/tmp" if in_tmp else str(place / "run" / "tmp")
    attack = [ground.users.plain_python, str(_ATTACKER), trick, str(loot), str(roots)]
    attack += [base, *_ELSEWHERE]
    _prepared(place / "run")
    with attackers_process(ground) as target, as_attacker(attack):
        ended = _watch(place, target.pid, in_tmp=in_tmp)
        harm = hurt(target)
    for common in (*(["/tmp"] if in_tmp else []), *_ELSEWHERE):
        _tidy(Path(common))
    found = [*complaints(ended), *before.changes(), *canaries.made_by_root(loot), *harm]
    return blamed(ended, found)


def hurt(target: subprocess.Popen[str]) -> list[str]:
    """What became of the target; it takes a moment to die."""
    try:
        return [f"the target has ended with {target.wait(0.1)}"]
    except subprocess.TimeoutExpired:
        return []


def _watch(place: Path, pid: int, *, in_tmp: bool = False) -> Ended:
    base = _prepared(place / "run")
    env = environ(base)
    if in_tmp:
        del env["TMPDIR"]
    options = ["--attach", "--duration", "0.5s", "-q", "-o", str(base / "rec" / "r.csv")]
    command = [*MEMDIAG, "watch", "--pid", str(pid), *options]
    return run(command, cwd=base / "work", env=env, limit_s=_LIMIT_S)


def _prepared(base: Path) -> Path:
    """Make the directory of a run, with a TMPDIR that is open to all."""
    if not base.exists():
        prepared(base)
        (base / "tmp").chmod(0o1777)
        (base / "rec").chmod(0o700)
    return base


def _tidy(base: Path) -> None:
    """Remove what the attacker owns among memdiag's directories."""
    for path in base.glob("memdiag*"):
        with contextlib.suppress(FileNotFoundError):
            if path.lstat().st_uid == ATTACKER:
                path.unlink() if path.is_symlink() or path.is_file() else remove(path)


@contextmanager
def attackers_process(
    ground: Ground, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A Python program of the attacker's that runs until this ends."""
    python = ground.users.plain_python
    with as_attacker([python, "-c", _TARGET, "60"], env) as process:
        yield process


@contextmanager
def as_attacker(
    command: list[str], env: dict[str, str] | None = None, user: int = ATTACKER
) -> Iterator[subprocess.Popen[str]]:
    """A program of another user's that has said that it is ready; it is killed at the end."""
    process = subprocess.Popen(
        command,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        user=user,
        group=user,
        extra_groups=[],
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{command} did not get ready")
        yield process
    finally:
        process.kill()
        process.communicate()
