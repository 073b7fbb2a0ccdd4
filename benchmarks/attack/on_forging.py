"""Another user forges rings, to have a victim's recording say what the attacker likes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from . import canaries, forged
from .campaign import Case, Ground, Result, inject
from .effects import UNGATED, prepared
from .on_attaching import as_attacker
from .running import MEMDIAG, Ended, blamed, complaints, environ, run
from .users import ATTACKER, VICTIM

_ROUNDS = 2
# Watching takes half a second.
_LIMIT_S = 5.5
_TARGET = """
import sys, time
print("ready", flush=True)
time.sleep(60)
"""

Plant = Callable[["_Scene"], None]


class _Scene:
    """A victim with a process to watch, and places where an attacker may write."""

    def __init__(self, place: Path, victim: int) -> None:
        self.base = place / "run"
        self.victim = victim
        self.work = prepared(self.base, victim)
        self.base.chmod(0o755)
        self.tmp = self.base / "tmp"
        os.chown(self.tmp, 0, 0)
        self.tmp.chmod(0o1777)
        self.theirs = place / "theirs"
        self.theirs.mkdir()
        self.env = environ(self.base)
        self.target_env: dict[str, str] = {}
        self.target = 0

    def forge(self, directory: Path, mode: int = 0o755) -> None:
        """Make a directory of the attacker's with a forged ring of the target in it."""
        directory.mkdir(parents=True, exist_ok=True)
        started, now_s = forged.started_ticks(self.target), time.monotonic()
        for name in (f"{self.target}-1.ring", f"{self.target}-{time.monotonic_ns()}.ring"):
            data = forged.ring(self.target, started, now_s)
            forged.plant(directory, data, name, ATTACKER)
        directory.chmod(mode)
        os.chown(directory, ATTACKER, ATTACKER)


def forging(ground: Ground) -> Result:
    """Forged rings wherever memdiag looks for the channel of a process that it did not start."""
    if ground.users.why_not:
        return Result(name="forging", injections=0, skipped=(ground.users.why_not,))
    skipped, victims = [], {"root": 0}
    if ground.users.why_no_victim:
        skipped.append(f"a victim that is not root: {ground.users.why_no_victim}")
    else:
        victims["a user"] = VICTIM
    plants: dict[str, Plant] = {
        "memdiag-UID is the attacker's": partial(_base_of_theirs, mode=0o755),
        "memdiag-UID is open to all": partial(_base_of_theirs, mode=0o777),
        "memdiag-UID is closed": partial(_base_of_theirs, mode=0o700),
        "memdiag-UID is a link": _linked_base,
        "XDG_RUNTIME_DIR is the attacker's": _runtime_directory,
        "XDG_RUNTIME_DIR/memdiag is the attacker's": _open_runtime_directory,
        "the target's environment names a channel": partial(_named_channel, mode=0o755),
        "it names a closed one of the attacker's": partial(_named_channel, mode=0o700),
        "it names a link": _linked_channel,
        "it names a directory with files of others": _shared_channel,
        "it names rings of the victim's, linked": _linked_rings,
    }
    cases = [
        Case(
            name=f"{name}, watched by {who}, round {number}",
            run=partial(_watched, ground=ground, victim=victim, plant=plant),
        )
        for number in range(_ROUNDS)
        for who, victim in victims.items()
        for name, plant in plants.items()
    ]
    cases += [
        Case(name=f"{name}, run by {who}", run=partial(_run, ground=ground, victim=uid, plant=p))
        for who, uid in victims.items()
        for name, p in list(plants.items())[:6]
    ]
    return inject("forging", ground, cases, skipped=skipped)


def _watched(place: Path, *, ground: Ground, victim: int, plant: Plant) -> list[str]:
    scene = _Scene(place, victim)
    names = {"MEMDIAG_CHANNEL": str(scene.theirs / "channel")}
    python = ground.users.python or ground.users.plain_python
    with as_attacker([python, "-c", _TARGET], names, user=victim) as target:
        scene.target = target.pid
        plant(scene)
        before = canaries.watched(scene.theirs)
        options = ["--duration", "0.5s", "-q", "-o", str(scene.base / "rec" / "r.csv")]
        ended = _memdiag(scene, ground, ["watch", "--pid", str(target.pid), *options])
    return blamed(ended, [*complaints(ended), *_believed(scene, ended), *before.changes()])


def _run(place: Path, *, ground: Ground, victim: int, plant: Plant) -> list[str]:
    """`memdiag run` amid the same, with steps of the program's own, which are to be recorded."""
    scene = _Scene(place, victim)
    sleeper = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        scene.target = sleeper.pid
        plant(scene)
        recording = scene.base / "rec" / "r.csv"
        command = [ground.users.python if victim else MEMDIAG[0], "-c", _TRAINING]
        ended = _memdiag(scene, ground, ["run", "-q", "-o", str(recording), *UNGATED, *command])
    finally:
        sleeper.kill()
        sleeper.wait()
    found = [*complaints(ended), *_believed(scene, ended)]
    rows = recording.read_text() if recording.exists() else ""
    if ended.status != 0 or ",41," not in rows:
        found.append(f"the program's own steps are not recorded, the status is {ended.status}")
    return blamed(ended, found)


_TRAINING = """
import time
import memdiag
for number in range(42):
    time.sleep(0.01)
    memdiag.step(number)
time.sleep(0.3)
"""


def _memdiag(scene: _Scene, ground: Ground, arguments: list[str]) -> Ended:
    python = ground.users.python if scene.victim else MEMDIAG[0]
    return run(
        [python, *MEMDIAG[1:], *arguments],
        cwd=scene.work,
        env=scene.env,
        user=scene.victim or None,
        limit_s=_LIMIT_S,
    )


def _believed(scene: _Scene, ended: Ended) -> list[str]:
    """Where something that was forged has come up."""
    texts = {"stderr": ended.said}
    for path in (scene.base / "rec").glob("r.*"):
        texts[path.name] = path.read_text(errors="replace")
    return [
        f"{sign!r} of the forged ring is in {name}"
        for name, text in texts.items()
        for sign in forged.SIGNS
        if sign in text.replace(str(scene.base), "")
    ][:2]


# -- where the attacker may put them -----------------------------------------------------------


def _base_of_theirs(scene: _Scene, *, mode: int) -> None:
    base = scene.tmp / f"memdiag-{scene.victim}"
    scene.forge(base / f"{scene.target}-1-abcdef01")
    scene.forge(base / f"{os.getpid()}-{forged.started_ticks(os.getpid())}-abcdef01")
    base.chmod(mode)
    os.chown(base, ATTACKER, ATTACKER)


def _linked_base(scene: _Scene) -> None:
    scene.forge(scene.theirs / "base" / f"{scene.target}-1-abcdef01", 0o700)
    link = scene.tmp / f"memdiag-{scene.victim}"
    link.symlink_to(scene.theirs / "base")
    os.lchown(link, ATTACKER, ATTACKER)


def _runtime_directory(scene: _Scene) -> None:
    runtime = scene.theirs / "runtime"
    for name in ("memdiag", f"memdiag-{scene.victim}"):
        scene.forge(runtime / name / f"{scene.target}-1-abcdef01")
        os.chown(runtime / name, ATTACKER, ATTACKER)
    os.chown(runtime, ATTACKER, ATTACKER)
    scene.env["XDG_RUNTIME_DIR"] = str(runtime)


def _open_runtime_directory(scene: _Scene) -> None:
    _runtime_directory(scene)
    runtime = scene.theirs / "runtime"
    runtime.chmod(0o1777)
    os.chown(runtime, 0, 0)


def _named_channel(scene: _Scene, *, mode: int) -> None:
    scene.forge(scene.theirs / "channel", mode)


def _linked_channel(scene: _Scene) -> None:
    scene.forge(scene.theirs / "real", 0o700)
    (scene.theirs / "channel").symlink_to("real")


def _shared_channel(scene: _Scene) -> None:
    """The directory is nobody's in particular, the rings in it are the attacker's."""
    scene.forge(scene.theirs / "channel")
    os.chown(scene.theirs / "channel", 0, 0)
    (scene.theirs / "channel").chmod(0o1777)


def _linked_rings(scene: _Scene) -> None:
    """A file of the victim's own, whose content is the attacker's, under the name of a ring."""
    scene.forge(scene.theirs / "channel")
    for ring in (scene.theirs / "channel").iterdir():
        real = scene.base / "rec" / f"upload-{ring.stem}"
        ring.rename(real)
        os.chown(real, scene.victim, scene.victim)
        os.link(real, ring)
