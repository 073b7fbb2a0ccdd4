"""Feeds hostile files to memdiag's readers, in a process that may hang, crash or be killed.

    python -m benchmarks.attack.worker KIND SEED FIRST STRIDE DIRECTORY

Tries the inputs FIRST, FIRST + STRIDE, ... for ever. Prints the number of each before it is tried,
and a line of JSON for each that did what no input may do.
"""

from __future__ import annotations

import gc
import io
import json
import os
import random
import resource
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from . import forged, mutations

_ROOM_BYTES = 4 << 30
_ROOT = str(Path(__file__).resolve().parents[2])
# Judging takes ten times as long as reading.
_EVERY_JUDGED = 8
_EXITS = frozenset({0, 1, 2, 3, 4})
_CONTROLS = frozenset(map(chr, range(32))) - {"\n", "\t"} | {"\x7f", "\x9b", "\u202e", "\u2028"}
_DRAINS = 3
# Address space grows from input to input, as threads of libraries have heaps of their own.
_INPUTS = 2000
# Four rings of 4096 records; a phase of the probe may be two events.
_MOST_EVENTS = 100_000

Tries = Callable[[int, random.Random, Path], None]


class Wrong(Exception):
    """Something that no input may bring about."""


def main() -> None:
    kind, seed, first, stride, place = sys.argv[1:]
    directory = Path(place)
    tries = {"inputs": try_input, "rings": _rings(directory)}[kind]
    resource.setrlimit(resource.RLIMIT_AS, (_ROOM_BYTES, _ROOM_BYTES))
    report = os.fdopen(os.dup(1), "w")
    noise = os.open(directory / "noise", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(noise, 2)
    number = int(first)
    for _ in range(_INPUTS):
        report.write(f"{number}\n")
        report.flush()
        complaint = tried(tries, number, seed, kind, directory) or _heard(noise)
        if complaint:
            report.write(json.dumps({"number": number, **complaint}) + "\n")
            report.flush()
        number += int(stride)


def tried(
    tries: Tries, number: int, seed: str, kind: str, directory: Path
) -> dict[str, str] | None:
    """What went wrong with input `number`, and where; None where all went well."""
    chance = random.Random(f"{seed}/{kind}/{number}")
    try:
        tries(number, chance, directory)
    except BaseException as error:  # a panic of Rust's is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return {"what": f"{type(error).__name__}: {error}"[:300], "where": _where(error)}
    return None


def _where(error: BaseException) -> str:
    """The innermost line of memdiag's own, and what it called."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f"{_ROOT}/memdiag" in f.filename] or frames
    inner = "" if frames[-1] is ours[-1] else f" -> {Path(frames[-1].filename).name}"
    return f"{Path(ours[-1].filename).relative_to(_ROOT)}:{ours[-1].lineno} {ours[-1].name}{inner}"


def _heard(noise: int) -> dict[str, str] | None:
    """What a library has printed past memdiag, on the real stderr."""
    size = os.fstat(noise).st_size
    if not size:
        return None
    text = os.pread(noise, 300, 0).decode(errors="replace")
    os.ftruncate(noise, 0)
    return {"what": f"a library prints: {text!r}", "where": text[:40]}


# -- files -------------------------------------------------------------------------------------


def try_input(number: int, chance: random.Random, directory: Path) -> None:
    """Read one hostile file; judge and print one of eight."""
    made = mutations.hostile(chance)
    path = directory / made.name
    path.write_bytes(made.content)
    sidecar = directory / "input.meta.json"
    if made.sidecar is not None:
        sidecar.write_bytes(made.sidecar)
    try:
        if number % _EVERY_JUDGED == 0:
            _judge(path)
        else:
            _read(path, chance)
    finally:
        path.unlink()
        sidecar.unlink(missing_ok=True)


def _read(path: Path, chance: random.Random) -> None:
    from memdiag.errors import ReadError
    from memdiag.recording.read import read
    from memdiag.recording.read_options import ReadOptions
    from memdiag.recording.registry import FORMATS

    names = [family.name for family in FORMATS if family.name != "pattern"]
    options = ReadOptions(format=chance.choice(names) if chance.random() < 0.2 else "")
    try:
        recording = read(str(path), options)
    except ReadError as error:
        _printable(error.message, "the error")
        return
    if not recording.series:
        raise Wrong("a recording without series")
    for series in recording.series:
        if not len(series.x) == len(series.y) > 0:
            raise Wrong("a series of no or uneven length")
        _printable(series.process + series.column + series.metric, "a name")


def _judge(path: Path) -> None:
    """`memdiag analyze FILE`, in this process."""
    from memdiag.cli.app import main as memdiag

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in "oe")
    argv = ["memdiag", "analyze", str(path)]
    with redirect_stdout(out), redirect_stderr(err), mock.patch.object(sys, "argv", argv):
        code = memdiag()
    gc.unfreeze()
    said = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode(errors="replace"))
    if "Traceback" in said[1] or "bug in memdiag" in said[1]:
        lines = said[1].strip().splitlines()
        where = [line.strip() for line in lines if f"{_ROOT}/memdiag" in line][-1:]
        raise Wrong(f"analyze shows a traceback: {where} {lines[-2:]}")
    if int(code) not in _EXITS:
        raise Wrong(f"analyze ends with {code}")
    _printable(said[0] + said[1], "the report")


def _printable(text: str, what: str) -> None:
    bad = sorted(_CONTROLS & set(text))
    if bad:
        raise Wrong(f"{what} has control characters: {bad!r}")


# -- rings -------------------------------------------------------------------------------------


def _rings(directory: Path) -> Tries:
    """Tries hostile rings, made of one that the real probe has written."""
    from memdiag.probe import ring_format
    from memdiag.probe.session import Session

    made = directory / "probe"
    made.mkdir(mode=0o700)
    session = Session(str(made))
    for number in range(60):
        session.phase_begin(f"phase {number % 5}")
        session.counter("copies", number)
        session.step(number)
        session.note("a note")
        session.phase_end(f"phase {number % 5}")
    (ring,) = made.glob(f"*{ring_format.SUFFIX}")
    valid = ring.read_bytes()
    own = f"{os.getpid()}-{forged.started_ticks(os.getpid())}"
    channel = directory / "channel"
    channel.mkdir(mode=0o700)
    return lambda number, chance, _: _try_rings(chance, channel, valid, own)


def _try_rings(chance: random.Random, channel: Path, valid: bytes, own: str) -> None:
    """A channel of some rings, read again and again while they change."""
    from memdiag.capture.probelink.channel import ChannelReader

    names = [f"{own}.ring", "1-1.ring", "99999-5.ring", "x.ring", ".ring"]
    paths = [channel / name for name in chance.sample(names, chance.randrange(1, 4))]
    reader = ChannelReader(channel)
    try:
        for _ in range(_DRAINS):
            for path in paths:
                path.write_bytes(forged.hostile(chance, valid, time.monotonic()))
            _drained(reader)
    finally:
        reader.close()
        for path in paths:
            path.unlink()


def _drained(reader: object) -> None:
    events = reader.drain()  # type: ignore[attr-defined]
    if len(events) > _MOST_EVENTS:
        raise Wrong(f"{len(events)} events at once")
    for facts in reader.processes():  # type: ignore[attr-defined]
        if not isinstance(facts.label, str):
            raise Wrong("a label that is no text")
    if reader.lost < 0:  # type: ignore[attr-defined]
        raise Wrong("less than nothing was lost")
    reader.labels()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
