"""The COMMAND of the campaign: it does what programs do, and notes how each of it went.

    program.py PLACE STATUS [--seconds S] [--rings DIRECTORY] [--remove DIRECTORY]...

STATUS: a number to exit with, or the name of a signal to die by. --seconds: how long it goes on
writing. --rings: files to put into memdiag's channel, if there is one. --remove: directories that
it removes first. Everything else is the same in every run, with and without memdiag.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

OWN = "own: "
_OURS = "MEMDIAG_"  # how the names of memdiag's own variables begin
_PLACES = ("PYTHONPATH", "HOME", "TMPDIR", "PWD", "OLDPWD", "_", "ATTACK_RUN", "SHLVL")
# glibc ignores its own two signals in whatever posix_spawn starts.
_GLIBC = 0x180000000
_CHANNEL = "MEMDIAG_CHANNEL"
_TICK_S = 0.02

notes: list[str] = []


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("place", type=Path)
    parser.add_argument("status")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--rings", type=Path)
    parser.add_argument("--remove", type=Path, action="append", default=[])
    given = parser.parse_args()
    steps = [lambda: circumstances(given.place), streams, lambda: files(given.place)]
    steps += [lambda: children(given.place)]
    attempt("begin", lambda: (given.place / "began").write_text("yes\n"))
    for directory in given.remove:
        shutil.rmtree(directory, ignore_errors=True)
    if given.rings is not None and _CHANNEL in os.environ:
        plant(given.rings, Path(os.environ[_CHANNEL]))
    for number, step in enumerate(steps):
        attempt(f"step {number}", step)
    go_on(given.place, given.seconds)
    attempt("notes", lambda: (given.place / "notes").write_text("\n".join([*notes, ""])))
    say(1, "notes: " + "; ".join(notes) + "\n")
    end(given.status)


def attempt(name: str, work: Callable[[], object]) -> None:
    """Do it, and note how it went."""
    try:
        work()
        notes.append(f"{name} went well")
    except Exception as error:
        notes.append(f"{name}: {type(error).__name__} {getattr(error, 'errno', '')}")


def circumstances(place: Path) -> None:
    """What a program finds when it starts."""
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    status = Path("/proc/self/status").read_text().splitlines()
    masks = dict(line.split(":\t") for line in status if line.startswith("Sig"))
    umask = os.umask(0)
    os.umask(umask)
    # What is below the run's own directory differs from run to run.
    environ = {
        name: value.replace(str(place.parent), "BASE")
        for name, value in os.environ.items()
        if not name.startswith(_OURS) and name not in _PLACES
    }
    found = {
        "descriptors": descriptors(),
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in sorted(names)},
        "ignored": hex(int(masks["SigIgn"], 16) & ~_GLIBC),
        "blocked": masks["SigBlk"],
        "umask": umask,
        "environment": environ,
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "modules": sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "memdiag"}),
    }
    (place / "circumstances.json").write_text(json.dumps(found, indent=1, sort_keys=True))


def descriptors() -> list[int]:
    """Those that are open."""
    found = []
    for number in range(256):
        try:
            os.fstat(number)
            found.append(number)
        except OSError:
            continue
    return found


def streams() -> None:
    """Output of both kinds, and bytes that are no text."""
    for number in range(20):
        say(1, f"line {number}\n")
        say(2, f"{OWN}line {number}\n")
    say(1, b"\x00\xff\r\n\x1b[31mred\x1b[0m\n")
    read = os.read(0, 100)
    say(1, f"read {read!r}\n")


def files(place: Path) -> None:
    """Files of several kinds, modes and sizes."""
    attempt("large", lambda: (place / "large").write_bytes(bytes(range(256)) * 800))
    (place / "secret").write_text("secret\n")
    (place / "secret").chmod(0o600)
    (place / "program").write_text("#!/bin/sh\nexit 0\n")
    (place / "program").chmod(0o755)
    (place / "link").symlink_to("secret")
    (place / "below").mkdir(mode=0o750)
    (place / "below" / "one").write_text("1\n")
    (place / "below" / "one").rename(place / "below" / "two")


def children(place: Path) -> None:
    """A forked child, a started one, and what they end with."""
    pid = os.fork()
    if pid == 0:
        os._exit(5)
    notes.append(f"forked child ended with {os.waitpid(pid, 0)[1]}")
    code = "import sys; print('child', sys.argv[1]); sys.exit(3)"
    started = subprocess.run(
        [sys.executable, "-c", code, "x"], capture_output=True, text=True, check=False
    )
    (place / "child").write_text(f"{started.returncode} {started.stdout} {started.stderr}")


def go_on(place: Path, seconds: float) -> None:
    """Write something every now and then, as trainings do."""
    for number in range(round(seconds / _TICK_S)):
        time.sleep(_TICK_S)
        attempt("tick", partial(append, place / "progress", f"tick {number}\n"))
        say(1, f"tick {number}\n")


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def plant(rings: Path, channel: Path) -> None:
    """Put hostile files into the channel; those named `own-*` are given this process's number."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    own = struct.pack("<qqq", os.getpid(), os.getppid(), int(fields[19]))
    for path in sorted(rings.iterdir()):
        name = path.name.replace("own-", f"{os.getpid()}-")
        try:
            if path.name.startswith("own-"):
                data = path.read_bytes()
                (channel / name).write_bytes(data[:8] + own + data[8 + len(own) :])
            else:
                path.rename(channel / name)
        except OSError:
            continue


def say(descriptor: int, text: str | bytes) -> None:
    """Write at once; what fails is noted."""
    data = text if isinstance(text, bytes) else text.encode()
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as error:
        notes.append(f"stream {descriptor}: {error.errno}")


def end(status: str) -> None:
    if status.isdecimal():
        os._exit(int(status))
    number = signal.Signals[status] if status.startswith("SIG") else int(status)
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(5)


if __name__ == "__main__":
    main()
