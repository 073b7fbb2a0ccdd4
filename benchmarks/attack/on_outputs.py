"""An output that would go over an input, or over another output, is refused before all else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .campaign import Case, Ground, Result, inject
from .canaries import watched
from .effects import prepared
from .running import MEMDIAG, blamed, complaints, environ, run

_REPORTS = ("--json-file", "--markdown", "--junitxml", "--html", "--png", "--svg")
_USAGE = 2
# What COMMAND leaves behind if it is started.
_STARTED = "started"
_TRAIN = f"open({_STARTED!r}, 'w').close()\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A command line that names a file twice. prepare: makes more files."""

    name: str
    words: tuple[str, ...]
    prepare: Callable[[Path], object] | None = None
    env: tuple[tuple[str, str], ...] = ()


def outputs(ground: Ground) -> Result:
    """Each clash must end with status 2 and leave every file as it was."""
    cases = [Case(name=clash.name, run=partial(_refused, clash=clash)) for clash in _clashes()]
    return inject("outputs", ground, cases)


def _clashes() -> Iterator[Clash]:
    for clashes in (_over_inputs, _over_each_other, _under_run, _compared, _reported):
        yield from clashes()


def _refused(place: Path, *, clash: Clash) -> list[str]:
    work = prepared(place / "run")
    rows = "step,rss_mb\n" + "".join(f"{n},{100 + n}\n" for n in range(60))
    for name in ("a.csv", "b.csv", "runs/c.csv"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(rows)
    (work / "a.meta.json").write_text('{"memdiag_recording": 1, "notes": ["mine"]}\n')
    (work / "train.py").write_text(_TRAIN)
    (work / "train.log").write_text("step 5 rss 7 MB\n")
    if clash.prepare is not None:
        clash.prepare(work)
    before = watched(work)
    env = {**environ(place / "run"), **dict(clash.env)}
    ended = run([*MEMDIAG, *clash.words], cwd=work, env=env)
    found = complaints(ended)
    if ended.status != _USAGE:
        found.append(f"the status is {ended.status}, not {_USAGE}")
    elif "memdiag" not in ended.said:
        found.append("nothing says why")
    return blamed(ended, [*found, *before.changes()])


def _over_inputs() -> Iterator[Clash]:
    for option in _REPORTS:
        yield Clash(name=f"{option} over FILE", words=("analyze", "a.csv", option, "a.csv"))
        yield Clash(
            name=f"{option} over the second FILE",
            words=("analyze", "b.csv", "a.csv", option, "a.csv"),
        )
        yield Clash(
            name=f"{option} over FILE, told otherwise",
            words=("analyze", "a.csv", option, "./runs/../a.csv"),
        )
        yield Clash(
            name=f"{option} over a file of a directory",
            words=("analyze", "runs", option, "runs/c.csv"),
        )
        yield Clash(name=f"{option} over a pattern's", words=("analyze", "*.csv", option, "b.csv"))
        yield Clash(
            name=f"{option} over the sidecar", words=("analyze", "a.csv", option, "a.meta.json")
        )
        for name, link in _LINKS.items():
            yield Clash(
                name=f"{option} over FILE by a {name}",
                words=("analyze", "a.csv", option, "out"),
                prepare=partial(link, target="a.csv", name="out"),
            )
            yield Clash(
                name=f"{option} over FILE, which is a {name}",
                words=("analyze", "in.csv", option, "a.csv"),
                prepare=partial(link, target="a.csv", name="in.csv"),
            )
    yield Clash(
        name="the step summary over FILE",
        words=("analyze", "a.csv"),
        env=(("GITHUB_STEP_SUMMARY", "a.csv"),),
    )


def _over_each_other() -> Iterator[Clash]:
    for command in (("analyze", "a.csv"), ("run", "-o", "x.csv")):
        tail = () if command[0] == "analyze" else _command()
        for first, second in zip(_REPORTS, (*_REPORTS[1:], _REPORTS[0]), strict=True):
            name = f"{command[0]}: {first} and {second}"
            words = (*command, first, "out", second)
            yield Clash(name=name, words=(*words, "out", *tail))
            yield Clash(name=f"{name}, told otherwise", words=(*words, "./runs/../out", *tail))
            yield Clash(
                name=f"{name} by a link",
                words=(*words, "other", *tail),
                prepare=partial(_symbolic, target="out", name="other"),
            )
            yield Clash(
                name=f"{name} by a linked directory",
                words=(*words, "elsewhere/out", *tail),
                prepare=partial(_symbolic, target=".", name="elsewhere"),
            )


def _under_run() -> Iterator[Clash]:
    for option in _REPORTS:
        yield _run(f"{option} over the recording", "-o", "x.csv", option, "x.csv")
        yield _run(f"{option} over the sidecar", "-o", "x.csv", option, "x.meta.json")
        yield _run(f"{option} over the Parquet file", "-o", "x.parquet", option, "x.parquet")
        yield _run(f"{option} over its rows", "-o", "x.parquet", option, "x.csv")
        yield _run(
            f"{option} over the recording, forced", "--force", "-o", "a.csv", option, "a.csv"
        )
        yield _run(f"{option} over the log", "--tags-from", "train.log", option, "train.log")
        yield _run(f"{option} over the program", option, "train.py")
    yield _run("-o over the program", "--force", "-o", "train.py")
    yield _run("-o over the log", "--force", "-o", "train.log", "--tags-from", "train.log")
    yield Clash(
        name="-o over the program by a link",
        words=("run", "--force", "-o", "out.csv", *_command()),
        prepare=partial(_symbolic, target="train.py", name="out.csv"),
    )
    yield Clash(
        name="-o over the program by a hard link",
        words=("run", "--force", "-o", "out.csv", *_command()),
        prepare=partial(_hard, target="train.py", name="out.csv"),
    )
    yield Clash(
        name="-o over an argument of COMMAND",
        words=("run", "--force", "-o", "a.csv", *_command(), "a.csv"),
    )
    yield Clash(name="-o over what is there", words=("run", "-o", "a.csv", *_command()))
    yield Clash(
        name="-o over a sidecar alone",
        words=("run", "-o", "z.csv", *_command()),
        prepare=lambda work: (work / "z.meta.json").write_text("{}"),
    )
    yield Clash(
        name="the program itself", words=("run", "--force", "-o", "go", "./go"), prepare=_go
    )


def _compared() -> Iterator[Clash]:
    for option in ("--json-file", "--html", "--png", "--svg"):
        for side, name in (("BASE", "a.csv"), ("CANDIDATE", "b.csv")):
            words = ("compare", "a.csv", "b.csv", option, name)
            yield Clash(name=f"compare, {option} over {side}", words=words)


def _reported() -> Iterator[Clash]:
    """`report -o FILE`, whose kind is the ending of its name."""
    for ending in ("html", "png", "svg", "md", "json", "xml"):
        name = f"out.{ending}"
        for kind, link in _LINKS.items():
            yield Clash(
                name=f"report, -o {name} over FILE by a {kind}",
                words=("report", "a.csv", "-o", name),
                prepare=partial(link, target="a.csv", name=name),
            )
        yield Clash(
            name=f"report, -o {name} over what is there",
            words=("report", "a.csv", "-o", name),
            prepare=partial(_symbolic, target="train.py", name=name),
        )


def _run(name: str, *options: str) -> Clash:
    return Clash(name=f"run: {name}", words=("run", *options, *_command()))


def _command() -> Sequence[str]:
    return ("--", MEMDIAG[0], "train.py")


def _go(work: Path) -> None:
    (work / "go").write_text(f"#!/bin/sh\ntouch {_STARTED}\n")
    (work / "go").chmod(0o755)


def _symbolic(work: Path, *, target: str, name: str) -> None:
    (work / name).symlink_to(target)


def _hard(work: Path, *, target: str, name: str) -> None:
    os.link(work / target, work / name)


_LINKS = {"symbolic link": _symbolic, "hard link": _hard}
