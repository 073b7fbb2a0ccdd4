"""The disk is full, streams are closed, directories go, limits are small: COMMAND never notices."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from .campaign import Case, Ground, Result, inject, remove
from .effects import Setting, alone, compared, differences, under, wrapped
from .running import blamed, complaints, environ, run

_SECONDS = ("7", "--seconds", "0.4")
_BLOCKS = (0, 1, 2, 8, 64, 512, 2048)  # of 512 bytes
_DESCRIPTORS = (3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32)
_ADDRESS_KIB = (200_000, 400_000, 600_000, 800_000, 1_200_000, 2_000_000, 4_000_000)
_PROCESSES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
_ENOUGH_PROCESSES = 12
# RLIMIT_NPROC counts all processes of a user: each case is another user.
_FIRST_UID = 65100
_TMPFS_KIB = (4, 8, 16, 64, 256, 720, 1024)


def faults(ground: Ground) -> Result:
    """Each fault with and without memdiag: the program's whole effect must be the same."""
    skipped: list[str] = []
    settings = {**_stream_faults(), **_directory_faults()}
    settings |= _startable(_limits(), ground, skipped)
    settings |= _startable(_of_a_user(ground, skipped), ground, skipped) | _tmpfs(skipped)
    cases = [
        Case(name=name, run=partial(_way(name), setting=setting))
        for name, setting in settings.items()
    ]
    cases += [
        Case(name=f"{name}, output read", run=partial(_way(name), setting=_read(setting)))
        for name, setting in settings.items()
        if name.startswith(("ulimit", "tmpfs", "TMPDIR", "none"))
    ]
    cases += [Case(name=f"stdout to {n}", run=partial(_to_closed_pipe, which=n)) for n in "oeb"]
    result = inject("faults", ground, cases, skipped=skipped)
    _tidy()
    return result


def _way(name: str) -> Callable[..., list[str]]:
    if name in ("closed output directory", "tmpfs without inodes at rec"):
        return _equal_or_refused
    few = name.startswith("ulimit -p") and int(name.split()[2]) < _ENOUGH_PROCESSES
    return _few_processes if few else compared


def _stream_faults() -> dict[str, Setting]:
    settings = {"none": Setting(arguments=_SECONDS), "none, unrecorded": Setting(recorded=False)}
    settings["status by a signal"] = Setting(arguments=("SIGSEGV",), within="ulimit -c 0;")
    for count in (1, 2, 3):
        for closed in itertools.combinations(("0<&-", "1>&-", "2>&-"), count):
            after = " ".join(closed)
            settings[f"closed {after}"] = Setting(after=after, arguments=_SECONDS)
            settings[f"closed {after}, unrecorded"] = Setting(after=after, recorded=False)
            settings[f"closed {after}, full report"] = Setting(
                after=after, options=("--json-file", "BASE/rec/r.json", "--markdown", "BASE/rec/m")
            )
    for after in ("2>/dev/full", ">/dev/full", ">/dev/full 2>&1", "</dev/full", "<>/dev/full"):
        settings[after] = Setting(after=after, arguments=_SECONDS)
    return settings


def _directory_faults() -> dict[str, Setting]:
    gone = "mkdir gone; cd gone; rmdir ../gone;"
    remove = ("7", "--seconds", "0.4", "--remove")
    return {
        "removed working directory": Setting(within=gone),
        "removed working directory, unrecorded": Setting(within=gone, recorded=False),
        "output directory removed": Setting(arguments=(*remove, "BASE/rec")),
        "TMPDIR removed": Setting(arguments=(*remove, "BASE/tmp")),
        "both removed": Setting(arguments=(*remove, "BASE/tmp", "--remove", "BASE/rec")),
        "home removed": Setting(arguments=(*remove, "BASE/home")),
        "TMPDIR never there": Setting(env=(("TMPDIR", "BASE/nowhere"),)),
        "TMPDIR is a file": Setting(env=(("TMPDIR", "/etc/passwd"),)),
        "TMPDIR is /dev/null": Setting(env=(("TMPDIR", "/dev/null"),)),
        "TMPDIR without a sense": Setting(env=(("TMPDIR", "\n\x1b[31m/%s"),)),
        "empty environment": Setting(wrapper=("env", "-i")),
        "unknown locale": Setting(env=(("LANG", "xx_XX.nonsense"), ("LC_ALL", "C"))),
        "no home": Setting(env=(("HOME", "/nowhere"),)),
    }


def _limits() -> dict[str, Setting]:
    settings = {}
    for blocks in _BLOCKS:
        settings[f"ulimit -f {blocks}"] = Setting(within=f"ulimit -f {blocks};", arguments=_SECONDS)
    for number in _DESCRIPTORS:
        settings[f"ulimit -n {number}"] = Setting(within=f"ulimit -n {number};", arguments=_SECONDS)
    for size in _ADDRESS_KIB:
        settings[f"ulimit -v {size}"] = Setting(within=f"ulimit -v {size};", arguments=_SECONDS)
    settings["ulimit -d 300000"] = Setting(within="ulimit -d 300000;", arguments=_SECONDS)
    settings["ulimit -s 256"] = Setting(within="ulimit -s 256;", arguments=_SECONDS)
    settings["ulimit -l 0"] = Setting(within="ulimit -l 0;")
    return settings


def _of_a_user(ground: Ground, skipped: list[str]) -> dict[str, Setting]:
    """What root is not subject to."""
    if ground.users.why_no_victim:
        skipped.append(f"RLIMIT_NPROC: {ground.users.why_no_victim}")
        return {}
    users = itertools.count(_FIRST_UID)
    plain = Setting(python=ground.users.python, arguments=_SECONDS)
    settings = {}
    for number in _PROCESSES:
        within = f"ulimit -u {number} 2>/dev/null || ulimit -p {number};"
        settings[f"ulimit -p {number}"] = replace(plain, user=next(users), within=within)
    closed = "chmod 0 BASE/rec;"
    settings["closed output directory"] = replace(plain, user=next(users), within=closed)
    settings["TMPDIR closed"] = replace(plain, user=next(users), within="chmod 0 BASE/tmp;")
    settings["TMPDIR read-only"] = replace(plain, user=next(users), within="chmod 500 BASE/tmp;")
    # (The second is memdiag's own default place.)
    settings["closed working directory"] = replace(
        plain, user=next(users), within="mkdir shut; cd shut; chmod 0 .;", recorded=False
    )
    return settings


def _tidy() -> None:
    """Remove what the users without a TMPDIR of their own have left in the common one."""
    for uid in range(_FIRST_UID, _FIRST_UID + 50):
        remove(Path("/tmp") / f"memdiag-{uid}")


def _tmpfs(skipped: list[str]) -> dict[str, Setting]:
    """Small disks, each in a mount namespace of its own, which goes with its processes."""
    tried = ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=4k", "none", "/mnt"]
    if os.geteuid() != 0 or subprocess.run(tried, capture_output=True, check=False).returncode:
        skipped.append("a full disk: no tmpfs may be mounted here")
        return {}
    settings = {}
    for size in _TMPFS_KIB:
        for name in ("tmp", "rec"):
            mount = f"mount -t tmpfs -o size={size}k,mode=1777 none BASE/{name}"
            settings[f"tmpfs of {size} KiB at {name}"] = Setting(
                wrapper=_unshared(mount),
                arguments=("7", "--seconds", "0.6"),
                options=("--interval", "10ms"),
            )
    read_only = "mount -t tmpfs -o ro none BASE/"
    settings["TMPDIR on a read-only disk"] = Setting(wrapper=_unshared(f"{read_only}tmp"))
    full = "mount -t tmpfs -o size=4k,nr_inodes=1 none BASE/"
    settings["TMPDIR on a disk without inodes"] = Setting(wrapper=_unshared(f"{full}tmp"))
    settings["tmpfs without inodes at rec"] = Setting(wrapper=_unshared(f"{full}rec"))
    return settings


def _unshared(mount: str) -> tuple[str, ...]:
    return ("unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh")


def _read(setting: Setting) -> Setting:
    """The same where memdiag reads along with what the program prints."""
    return replace(setting, options=(*setting.options, "--step-regex", "tick ([0-9]+)"))


def _startable(
    settings: dict[str, Setting], ground: Ground, skipped: list[str]
) -> dict[str, Setting]:
    """Those under which Python can load memdiag at all."""
    found = {}
    for name, setting in settings.items():
        base = ground.place("start")
        command = [setting.python, "-c", "import memdiag.cli.measurement.run_session"]
        words = wrapped(command, setting, base)
        if run(words, cwd=base, env=environ(base), user=setting.user).status == 0:
            found[name] = setting
        else:
            skipped.append(f"{name}: Python cannot load memdiag")
        remove(base)
    return found


def _equal_or_refused(place: Path, *, setting: Setting) -> list[str]:
    """Where nothing can be recorded, memdiag may say so before it starts anything."""
    before = alone(place, setting)
    after, ended = under(place, setting)
    is_refused = after.nothing() and ended.status == 2 and "memdiag:" in ended.said
    found = [] if is_refused else differences(before, after)
    return blamed(ended, [*complaints(ended), *found])


def _few_processes(place: Path, *, setting: Setting) -> list[str]:
    """memdiag is one process of the few, and COMMAND may lack just that one."""
    after, ended = under(place, setting)
    found = complaints(ended)
    if after.nothing() and "memdiag:" not in ended.said:
        found.append("COMMAND was not started, and nothing says why")
    elif not after.nothing() and ended.status != int(setting.arguments[0]):
        found.append(f"the status is {ended.status}, alone {setting.arguments[0]}")
    return blamed(ended, found)


def _to_closed_pipe(place: Path, *, which: str) -> list[str]:
    """Streams whose reader went away before the start: o(ut), e(rr) or b(oth)."""
    reader, writer = os.pipe()
    os.close(reader)
    names = {"o": ("stdout",), "e": ("stderr",), "b": ("stdout", "stderr")}[which]
    try:
        streams = tuple((name, writer) for name in names)
        return compared(place, Setting(streams=streams, arguments=_SECONDS))
    finally:
        os.close(writer)
