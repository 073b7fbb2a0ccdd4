"""Hostile files: real recordings, logs and exports, damaged in the ways that break parsers."""

from __future__ import annotations

import gzip
import random
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
_FOLDERS = ("runs", "documents", "exports", "corpus", "comparisons")
_LARGEST_BYTES = 24 << 10
# Repeated so often, a piece shows what takes quadratic time or worse.
_REPEATED_BYTES = 100_000

_TOKENS = (
    b"nan",
    b"inf",
    b"-inf",
    b"1e400",
    b"-1e-400",
    b"9" * 400,
    b"-9223372036854775808",
    b"18446744073709551616",
    b"0x7fffffff",
    b"1_000",
    b"1,234,567",
    b"1.2.3",
    b"\x00",
    b"\x1b[2J\x1b]0;x\x07",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    "\u2028\u202e\u0663".encode(),
    b'"',
    b'""',
    b"'",
    b"\\",
    b",",
    b";",
    b"\t",
    b"|",
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n\n",
    b"# ",
    b"{",
    b"[",
    b"}]",
    b"(" * 50,
    b"e" * 50,
    b"--",
    b"/",
    b"%",
    b"MB",
    b"GiB",
    b"step",
    b"at_s,step,phase,pid,process,rss_bytes\n",
    b"epoch",
    b"timestamp",
    b"process",
    b"2024-02-30T25:61:61Z",
    b"0000-00-00",
    b"=1+1",
    b"<script>",
    b"PAR1",
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"\x80\x04\x95",
)
_SUFFIXES = (".csv", ".csv", ".csv", "", ".log", ".jsonl", ".md", ".parquet", ".tsv", ".gz", ".zst")
_INTEGERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40)

Mutation = Callable[[random.Random, bytearray], bytearray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """A file to be read. origin: the fixtures that it was made of."""

    name: str
    content: bytes
    sidecar: bytes | None
    origin: str


@cache
def fixtures() -> tuple[tuple[str, bytes], ...]:
    """All fixtures, and some binary files that none of them is."""
    paths = [path for folder in _FOLDERS for path in sorted((FIXTURES / folder).iterdir())]
    found = [(path.name, path.read_bytes()) for path in paths if path.is_file()]
    return (*found, *_generated())


def hostile(chance: random.Random) -> Hostile:
    """One file, the same for the same state of `chance`."""
    name, content = chance.choice(fixtures())
    data = _piece(chance, content)
    for _ in range(chance.choice((0, 1, 1, 2, 3, 5, 8))):
        data = chance.choice(_MUTATIONS)(chance, data)
    if chance.random() < 0.1:
        data = chance.choice(_WRAPPINGS)(chance, data)
        if chance.random() < 0.5:
            data = _flip(chance, data)
    suffix = Path(name).suffix if chance.random() < 0.7 else chance.choice(_SUFFIXES)
    sidecar = None
    if chance.random() < 0.1:
        sidecar = bytes(_flip(chance, bytearray(_SIDECAR)))
    return Hostile(name=f"input{suffix}", content=bytes(data), sidecar=sidecar, origin=name)


def _piece(chance: random.Random, content: bytes) -> bytearray:
    """The beginning, mostly, of what is long."""
    if len(content) <= _LARGEST_BYTES:
        return bytearray(content)
    length = chance.randrange(200, _LARGEST_BYTES)
    at = chance.randrange(len(content) - length) if chance.random() < 0.1 else 0
    return bytearray(content[at : at + length])


def _at(chance: random.Random, data: bytearray) -> int:
    """A place in it: the first kilobyte counts most."""
    end = min(len(data), 1000) if chance.random() < 0.5 else len(data)
    return chance.randrange(end + 1)


def _flip(chance: random.Random, data: bytearray) -> bytearray:
    for _ in range(chance.randrange(1, 9)):
        if data:
            data[_at(chance, data) - 1] = chance.randrange(256)
    return data


def _cut(chance: random.Random, data: bytearray) -> bytearray:
    at = _at(chance, data)
    del data[at : at + chance.choice((1, 1, 5, 40, 400, 4000))]
    return data


def _end(chance: random.Random, data: bytearray) -> bytearray:
    return data[: _at(chance, data)]


def _insert(chance: random.Random, data: bytearray) -> bytearray:
    at = _at(chance, data)
    data[at:at] = chance.randbytes(chance.choice((1, 2, 8, 64)))
    return data


def _token(chance: random.Random, data: bytearray) -> bytearray:
    for _ in range(chance.randrange(1, 6)):
        at = _at(chance, data)
        data[at : at + chance.choice((0, 0, 1, 4))] = chance.choice(_TOKENS)
    return data


def _repeat(chance: random.Random, data: bytearray) -> bytearray:
    at = _at(chance, data)
    piece = bytes(data[at : at + chance.choice((1, 3, 30, 300))]) or b"x"
    room = chance.choice((1000, 10_000, _REPEATED_BYTES)) // len(piece)
    data[at:at] = piece * chance.randrange(1, room + 2)
    return data[:_REPEATED_BYTES]


def _splice(chance: random.Random, data: bytearray) -> bytearray:
    other = _piece(chance, chance.choice(fixtures())[1])
    at, from_at = _at(chance, data), _at(chance, other)
    return data[:at] + other[from_at:]


def _numbers(chance: random.Random, data: bytearray) -> bytearray:
    """Other figures, in the same places."""
    share = chance.random()

    def other(match: re.Match[bytes]) -> bytes:
        if chance.random() > share:
            return match.group()
        return chance.choice((b"", b"0", b"-1", b"nan", b"1e308", b"9" * 25, b"0.1", b"x"))

    return bytearray(re.sub(rb"[0-9]+(?:\.[0-9]+)?", other, bytes(data)))


def _separators(chance: random.Random, data: bytearray) -> bytearray:
    old, new = (chance.choice((b",", b";", b"\t", b"|", b" ", b"\n", b'"')) for _ in "ab")
    return data.replace(old, new, chance.choice((1, 5, 10**6)))


def _lines(chance: random.Random, data: bytearray) -> bytearray:
    """Lines in another order, some of them missing or there twice."""
    lines = data.split(b"\n")
    first = chance.randrange(2)
    rest = lines[first:]
    chance.shuffle(rest)
    return bytearray(
        b"\n".join([*lines[:first], *rest[: chance.randrange(len(rest) + 2)], *rest[:3]])
    )


def _integer(chance: random.Random, data: bytearray) -> bytearray:
    """A length or an offset that lies."""
    if len(data) >= 8:
        at = chance.randrange(len(data) - 7)
        struct.pack_into(chance.choice("<>") + "Q", data, at, chance.choice(_INTEGERS))
    return data


def _gzipped(_: random.Random, data: bytearray) -> bytearray:
    return bytearray(gzip.compress(bytes(data), 1, mtime=0))


def _utf16(chance: random.Random, data: bytearray) -> bytearray:
    text = bytes(data).decode("utf-8", "replace")
    return bytearray(text.encode(chance.choice(("utf-16", "utf-16-le", "utf-16-be"))))


def _zstd(_: random.Random, data: bytearray) -> bytearray:
    """One raw block, at most 128 KiB."""
    raw = bytes(data[: 100 << 10])
    block = struct.pack("<I", len(raw) << 3 | 1)[:3]
    return bytearray(b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(raw)) + block + raw)


_MUTATIONS: Sequence[Mutation] = (
    *(_flip, _cut, _end, _insert, _token, _token, _repeat, _splice),
    *(_numbers, _numbers, _separators, _lines, _integer),
)
_WRAPPINGS: Sequence[Mutation] = (_gzipped, _utf16, _zstd)
_SIDECAR = b"""{"memdiag_recording": 1, "complete": true, "about": {"interval_s": 0.1, "processes":
 [{"pid": 5, "label": "main"}]}, "ending": {"code": 0, "signal": null, "cause": "oom_kill"},
 "missing": [{"metric": "rss_bytes", "process": "x", "reason": "r"}], "limits": [{"name": "--limit",
 "value_bytes": 5000, "roles": ["resident"]}], "marks": [{"level": "warning", "threshold_bytes": 1,
 "at_s": 0.5, "value_bytes": 9}], "notes": ["n"], "cost": {"cpu_s": 1}}"""


def _generated() -> list[tuple[str, bytes]]:
    """Formats without a fixture: made here, so that there is something to damage."""
    import io
    import pickle

    import polars as pl

    columns = {"step": range(50), "rss_mb": [100.0 + n for n in range(50)], "phase": ["a"] * 50}
    parquet = io.BytesIO()
    pl.DataFrame(columns).write_parquet(parquet)
    snapshot = {
        "segments": [{"device": 0, "allocated_size": 5, "total_size": 9, "blocks": []}],
        "device_traces": [[{"action": "alloc", "size": n, "time_us": n} for n in range(9)]],
    }
    rows = "".join(f'{{"_step": {n}, "rss_mb": {n * 3}}}\n' for n in range(60))
    mlflow = "".join(f"{1700000000000 + n} {n}.5 {n}\n" for n in range(60))
    log = "".join(
        f"Epoch [1][{n}/99]\tloss: 0.5  memory: {6000 + n}  rss {n} MB\n" for n in range(60)
    )
    return [
        ("table.parquet", parquet.getvalue()),
        ("snapshot.pickle", pickle.dumps(snapshot)),
        ("history.jsonl", rows.encode()),
        ("rss", mlflow.encode()),
        ("train.log", log.encode()),
    ]
