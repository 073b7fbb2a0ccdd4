"""Input without an end, and input that is far larger than it looks."""

from __future__ import annotations

import gzip
import random
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .campaign import Case, Ground, Result, inject
from .effects import prepared
from .running import LIMIT_S, MEMDIAG, Running, blamed, complaints, environ, run

_LIMIT = ("--max-input", "50MB")
# So that nothing here fills the disk or the memory of the machine, whatever memdiag does.
_GUARD = "ulimit -f 600000; ulimit -v 6000000;"
# Fifty megabytes are read and, where they are text, parsed.
_READING_S = 10.0
_WIDE_S = 10.0
_COLUMNS = 100_000
_KILLS = 12
_NATIVE = "at_s,step,phase,pid,process,rss_bytes"
_REFUSED = (2,)
_JUDGED = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """Input: a file that `make` writes, or what the shell command `source` prints.

    statuses: those that are right.
    """

    name: str
    make: Callable[[Path], object] | None = None
    file: str = "log"
    source: str = ""
    limited: bool = True
    limit_s: float = _READING_S
    statuses: tuple[int, ...] = _REFUSED


def floods(ground: Ground) -> Result:
    """Each flood with a limit on what may be read, analysers killed amid one, wide tables."""
    cases = [
        Case(name=flood.name, run=partial(_flooded, flood=flood))
        for flood in (*_endless(), *_bombs(), *_wide())
    ]
    chance = ground.chance("floods")
    cases += [Case(name=f"killed, {n}", run=_killed(chance)) for n in range(_KILLS)]
    return inject("floods", ground, cases)


def _endless() -> Iterator[Flood]:
    for file in ("/dev/zero", "/dev/urandom", "/dev/full"):
        yield Flood(name=file, file=file)
    yield Flood(name="a link to /dev/zero", make=lambda p: p.symlink_to("/dev/zero"), file="x.csv")
    yield Flood(name="a pipe by its name", file="/dev/stdin", source="yes 1,2")
    for name, source in (
        ("zeros", "cat /dev/zero"),
        ("one line", "yes 1,2 | tr '\\n' ,"),
        ("rows", "echo step,rss_mb; yes 1,2"),
        ("steps", "yes 'step 5 rss 7 MB'"),
        ("JSON", 'yes \'{"step": 1, "rss_mb": 2}\''),
        ("brackets", "yes '[' | tr -d '\\n'"),
        ("gzip", "yes 1,2 | gzip -1"),
        ("a native recording", f"echo {_NATIVE}; yes 0.1,1,train,5,main,5000"),
    ):
        yield Flood(name=f"{name} in a pipe", file="-", source=source)


def _bombs() -> Iterator[Flood]:
    page, rows = b"\0" * (1 << 20), b"1,2\n" * (1 << 18)
    yield Flood(name="a terabyte of nothing", make=_sparse, file="x.csv")
    yield Flood(name="gzip of zeros", make=_gzip(page, 2048), file="x.csv.gz")
    yield Flood(name="gzip of rows", make=_gzip(rows, 1024), file="x.csv.gz")
    yield Flood(name="gzip of gzip", make=_gzipped_twice, file="x.csv.gz")
    yield Flood(name="zstd of zeros", make=_zstd, file="x.csv.zst")
    for name, make, file in (
        ("a little gzip of zeros", _gzip(page, 9), "x.gz"),
        ("one line of 4 MB", _one_line, "log"),
        ("four million brackets", _brackets, "x.json"),
    ):
        yield Flood(name=name, make=make, file=file, statuses=_JUDGED)


def _wide() -> Iterator[Flood]:
    for kind, make, file in (
        ("CSV", _wide_csv, "x.csv"),
        ("TSV", partial(_wide_csv, separator="\t"), "x.tsv"),
        ("Parquet", _wide_parquet, "x.parquet"),
        ("JSON", _wide_json, "x.jsonl"),
        ("Markdown", partial(_wide_csv, separator="|"), "x.md"),
        ("memdiag's own", _wide_native, "x.csv"),
    ):
        yield Flood(
            name=f"{_COLUMNS:,} columns of {kind}",
            make=make,
            file=file,
            limited=False,
            limit_s=_WIDE_S,
            statuses=_JUDGED,
        )


def _flooded(place: Path, *, flood: Flood) -> list[str]:
    work = prepared(place / "run")
    if flood.make is not None:
        flood.make(work / flood.file)
    options = list(_LIMIT) if flood.limited else []
    words = [*MEMDIAG, "analyze", *options, flood.file]
    script = f'{_GUARD} "$@"'
    if flood.source:
        script = f'{_GUARD} {{ {flood.source}; }} 2>/dev/null | "$@"'
    ended = run(
        ["/bin/sh", "-c", script, "sh", *words],
        cwd=work,
        env=environ(place / "run"),
        limit_s=flood.limit_s,
        grace_s=2.0,
    )
    found = complaints(ended)
    if "No such option" in ended.said:
        found.append("there is no option --max-input")
    elif ended.status not in flood.statuses and not ended.hang:
        found.append(f"the status is {ended.status}, not {flood.statuses[0]}")
    return blamed(ended, [*found, *_left_in(place / "run" / "tmp")])


def _killed(chance: random.Random) -> Callable[[Path], list[str]]:
    """A SIGKILL while an analyser holds what it has read."""
    after_s = chance.uniform(0.5, 2.5)

    def kill(place: Path) -> list[str]:
        work = prepared(place / "run")
        # More than is held in memory; and then it waits.
        source = "{ yes 'step 5 rss 7 MB' | head -c 90000000; sleep 60; }"
        script = f'{_GUARD} {source} | "$@"'
        command = ["/bin/sh", "-c", script, "sh", *MEMDIAG, "analyze", "-"]
        running = Running(command, cwd=work, env=environ(place / "run"))
        time.sleep(after_s)
        running.kill()
        ended = running.finish(LIMIT_S)
        return blamed(ended, _left_in(place / "run" / "tmp"))

    return kill


def _left_in(directory: Path) -> list[str]:
    return [
        f"leaves {path.name} ({path.lstat().st_size:,} bytes) in TMPDIR"
        for path in directory.iterdir()
    ]


# -- what is in the files ----------------------------------------------------------------------


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"step,rss_mb\n1,2\n")
        file.truncate(1 << 40)


def _gzip(piece: bytes, times: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(b"step,rss_mb\n")
            for _ in range(times):
                file.write(piece)

    return make


def _gzipped_twice(path: Path) -> None:
    _gzip(b"\0" * (1 << 20), 1024)(path)
    path.write_bytes(gzip.compress(path.read_bytes(), 1))


def _zstd(path: Path) -> None:
    """Eight gigabytes in 250 KB: blocks of one byte each that is to be repeated 128 KiB times."""
    block_bytes = 128 << 10
    header = b"\x28\xb5\x2f\xfd\x00\x58"  # no size told, a window of 2 MiB
    block = struct.pack("<I", block_bytes << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", block_bytes << 3 | 1 << 1 | 1)[:3] + b"\0"
    path.write_bytes(header + block * 65_535 + last)


def _one_line(path: Path) -> None:
    path.write_bytes(b"step 5 rss 7 MB " * 250_000)


def _brackets(path: Path) -> None:
    path.write_bytes(b"[" * 2_000_000 + b"]" * 2_000_000)


def _names() -> Iterator[str]:
    yield "step"
    for number in range(_COLUMNS - 1):
        yield f"metric_{number}_mb" if number % 2 else f"name{number}"


def _wide_csv(path: Path, separator: str = ",") -> None:
    rows = [separator.join(_names())]
    if separator == "|":
        rows.append(separator.join("---" for _ in range(_COLUMNS)))
    rows += [
        separator.join(
            [str(row), *(str((row * 7 + column) % 101) for column in range(1, _COLUMNS))]
        )
        for row in range(12)
    ]
    path.write_text("\n".join([*rows, ""]))


def _wide_parquet(path: Path) -> None:
    import polars as pl

    columns = {name: [float(row) for row in range(12)] for name in _names()}
    pl.DataFrame(columns).write_parquet(path)


def _wide_json(path: Path) -> None:
    cells = ", ".join(f'"{name}": 5' for name in _names())
    path.write_text("".join(f"{{{cells}}}\n" for _ in range(12)))


def _wide_native(path: Path) -> None:
    more = [f"counter_{number}" for number in range(_COLUMNS)]
    rows = [",".join([_NATIVE, *more])]
    rows += [",".join([f"{n},{n},,1,main,5000", *("1" * _COLUMNS)]) for n in range(12)]
    path.write_text("\n".join([*rows, ""]))
