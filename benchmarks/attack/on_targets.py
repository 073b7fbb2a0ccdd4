"""Attached to in the midst of whatever they do (`watch --attach`), programs go on unharmed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from .campaign import Case, Ground, Result, inject
from .effects import prepared
from .running import MEMDIAG, blamed, complaints, environ, run
from .users import VICTIM

_ROUNDS = 2
_VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
# Attaching may wait two seconds for the probe to come, watching takes a fifth of one.
_LIMIT_S = 8.0
_PATIENCE_S = 20.0
_AROUND = """
import os, select, signal, sys, threading, time
def over():
    return bool(select.select([0], [], [], 0)[0])
print("ready", flush=True)
{program}
print("sound", flush=True)
"""
# Each checks what it gets, and ends with a traceback if that is not what it must be.
_PROGRAMS = {
    "sleeping": """
while not over():
    time.sleep(0.05)
""",
    "sleeping long": """
while not over():
    time.sleep(1.5)
""",
    "reading a pipe": """
select.select([0], [], [])
""",
    "computing with floating point": """
import math
expected = [math.sqrt(n) * 1.1 for n in range(1000)]
while not over():
    for _ in range(50):
        assert [math.sqrt(n) * 1.1 for n in range(1000)] == expected
""",
    "computing with whole numbers": """
import hashlib
expected = hashlib.sha256(bytes(200000)).hexdigest()
while not over():
    assert hashlib.sha256(bytes(200000)).hexdigest() == expected
    assert pow(3, 20000, 10**40 + 7) == pow(9, 10000, 10**40 + 7)
""",
    "waiting for locks and threads": """
lock, counted, stop = threading.Lock(), [0, 0, 0], threading.Event()
def work(index):
    while not stop.is_set():
        with lock:
            counted[index] += 1
        lock.acquire(timeout=0.001) and lock.release()
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for thread in threads: thread.start()
while not over():
    stop.wait(0.01)
stop.set()
for thread in threads: thread.join()
assert min(counted) > 0
""",
    "forking": """
while not over():
    pid = os.fork()
    if pid == 0:
        os._exit(5)
    assert os.waitpid(pid, 0) == (pid, 5 << 8)
""",
    "starting programs": """
import subprocess
while not over():
    assert subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode == 3
""",
    "interrupted by timers": """
seen = [0]
def alarm(*_): seen[0] += 1
signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
while not over():
    time.sleep(0.01)
signal.setitimer(signal.ITIMER_REAL, 0)
assert seen[0] > 20, seen
""",
    "waiting for signals": """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
while not over():
    # Short ones fall to a fault of Python's own, which takes an interruption for a signal.
    assert signal.sigtimedwait([signal.SIGUSR1], 1.0) is None
""",
    "allocating": """
while not over():
    blocks = [bytearray(n * 1000) for n in range(300)]
    assert [len(block) for block in blocks] == [n * 1000 for n in range(300)]
""",
    "polling sockets": """
import socket
a, b = socket.socketpair()
while not over():
    select.select([a], [], [], 0.02)
    b.send(b"x" * 999)
    assert a.recv(999, socket.MSG_WAITALL) == b"x" * 999
""",
}


def targets(ground: Ground) -> Result:
    """Each program is attached to, and must end in its own way afterwards."""
    skipped = []
    whom: list[tuple[str, int | None, str]] = [("of the same user", None, sys.executable)] * _ROUNDS
    if ground.users.why_not:
        skipped.append(f"processes of another user: {ground.users.why_not}")
    else:
        whom += [("of another user", VICTIM, ground.users.plain_python)] * _ROUNDS
    whom += [(f"Python {version}", None, path) for version, path in _other_pythons().items()]
    cases = [
        Case(
            name=f"{name}, {who}",
            run=partial(_attached, program=program, user=user, python=python),
        )
        for who, user, python in whom
        for name, program in _PROGRAMS.items()
    ]
    return inject("targets", ground, cases, skipped=skipped)


def _other_pythons() -> dict[str, str]:
    """Version -> program, of those that are on PATH or pyenv's and that the probe supports."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = {}
    for version in _VERSIONS:
        paths = [*root.glob(f"versions/{version}.*/bin/python")]
        paths += [Path(path)] if (path := shutil.which(f"python{version}")) else []
        works = [path for path in paths if _works(path)]
        if works and version != "{}.{}".format(*sys.version_info[:2]):
            found[version] = str(works[0])
    return found


def _works(python: Path) -> bool:
    ended = subprocess.run([python, "-c", ""], capture_output=True, check=False)
    return ended.returncode == 0


def _attached(place: Path, *, program: str, user: int | None, python: str) -> list[str]:
    base = place / "run"
    work = prepared(base)
    target = subprocess.Popen(
        [python, "-c", _AROUND.format(program=program)],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    try:
        assert target.stdout is not None
        target.stdout.readline()
        options = ["--attach", "--duration", "0.2s", "-q", "-o", str(base / "rec" / "r.csv")]
        ended = run(
            [*MEMDIAG, "watch", "--pid", str(target.pid), *options],
            cwd=work,
            env=environ(base),
            limit_s=_LIMIT_S,
        )
        said, complained = target.communicate(timeout=_PATIENCE_S)
        why = " / ".join(complained.decode(errors="replace").strip().splitlines()[-2:])
        how = f"{target.returncode}: {why[-200:]}"
    except subprocess.TimeoutExpired:
        said, how = b"", "not at all"
    finally:
        target.kill()
        target.communicate()
    found = complaints(ended)
    if said != b"sound\n":
        found.append(f"the target has ended with {how}")
    return blamed(ended, found)
