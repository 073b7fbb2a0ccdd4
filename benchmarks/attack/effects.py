"""Everything that a program does to the world, with and without memdiag, and the differences."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .program import OWN
from .running import LIMIT_S, MEMDIAG, Ended, blamed, complaints, environ, run

PROGRAM = Path(__file__).with_name("program.py")
# So that COMMAND alone decides about the status.
UNGATED = ("--exit-code", "command", "--fail-on", "never", "--inconclusive", "pass")
_SHOWN = 160
_LARGEST_BYTES = 16 << 20

Tree = dict[str, tuple[int, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a program has done. own_lines: of what it wrote to stderr."""

    status: int | None
    stdout: bytes
    own_lines: tuple[str, ...]
    tree: Tree

    def nothing(self) -> bool:
        """Return True if the program was never started."""
        return not (self.stdout or self.own_lines or self.tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Under which circumstances a command runs.

    wrapper: what starts it all, such as `env -i`. within: shell code before `exec "$@"`, such as
    `ulimit -f 0;`; after: redirections behind it. In all of them BASE is the run's directory.
    options: of `memdiag run`. arguments: of the program. python: runs memdiag and the program.
    planted: puts things into the run's directory before.
    """

    wrapper: tuple[str, ...] = ()
    within: str = ""
    after: str = ""
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ("7",)
    user: int | None = None
    python: str = sys.executable
    streams: tuple[tuple[str, int], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    limit_s: float = LIMIT_S
    recorded: bool = True
    planted: Callable[[Path], object] | None = None


# What the program does alone: the same each time.
_known: dict[Setting, Effect] = {}


def alone(place: Path, setting: Setting) -> Effect:
    """What the program does without memdiag; it is run in `place`/alone, once per setting."""
    key = replace(setting, options=(), recorded=True, planted=None)
    found = _known.get(key)
    if found is None or setting.streams:
        found, _ = _run(place / "alone", key, ())
        _known[key] = found
    return found


def under(place: Path, setting: Setting) -> tuple[Effect, Ended]:
    """The program under `memdiag run`, in `place`/under; its recording is there as rec/r.csv."""
    output = ("-o", str(place / "under" / "rec" / "r.csv")) if setting.recorded else ()
    memdiag = (setting.python, *MEMDIAG[1:], "run", "-q", *output)
    return _run(place / "under", setting, (*memdiag, *UNGATED, *setting.options, "--"))


def compared(place: Path, setting: Setting) -> list[str]:
    """How the program behaves differently under memdiag, and what memdiag itself did wrong."""
    before = alone(place, setting)
    after, ended = under(place, setting)
    found = [*complaints(ended), *differences(before, after), *litter(place / "under")]
    return blamed(ended, found)


def litter(base: Path) -> list[str]:
    """Files that are not memdiag's own in places where it had no business to write."""
    found = [path for path in (base / "home").rglob("*") if not _is_ours(path.name)]
    if (base / "tmp").is_dir():
        found += [path for path in (base / "tmp").iterdir() if not _is_ours(path.name)]
    return [f"leaves {path} behind" for path in found[:3]]


def differences(before: Effect, after: Effect) -> list[str]:
    """One sentence for each thing that is not the same."""
    if after.nothing() and not before.nothing():
        return [f"COMMAND was not started, the status is {after.status}"]
    found = []
    if after.status != before.status:
        found.append(f"the status is {after.status}, alone {before.status}")
    if after.stdout != before.stdout:
        found.append(f"stdout differs: {_first(before.stdout, after.stdout)}")
    if after.own_lines != before.own_lines:
        lines = ("\n".join(before.own_lines), "\n".join(after.own_lines))
        found.append(f"its own lines on stderr differ: {_first(*(t.encode() for t in lines))}")
    return found + tree_differences(before.tree, after.tree)


def tree_differences(before: Tree, after: Tree) -> list[str]:
    """The names of files that came, went, or changed."""
    found = []
    for name in sorted({*before, *after}):
        if name not in after:
            found.append(f"{name} is not there")
        elif name not in before:
            found.append(f"{name} was not there alone")
        elif before[name] != after[name]:
            modes = [oct(tree[name][0]) for tree in (before, after)]
            changed = _first(before[name][1], after[name][1])
            found.append(f"{name} differs: mode {' -> '.join(modes)}, {changed}")
    return found


def tree_of(place: Path) -> Tree:
    """Every file below `place`: its mode, and its content or where it links to."""
    found: Tree = {}
    for folder, folders, files in os.walk(place):
        for name in (*folders, *files):
            path = Path(folder) / name
            mode = path.lstat().st_mode
            content = b""
            if stat.S_ISLNK(mode):
                content = os.fsencode(path.readlink())
            elif stat.S_ISREG(mode) and path.lstat().st_size <= _LARGEST_BYTES:
                content = path.read_bytes()
            found[str(path.relative_to(place))] = (mode, content)
    # Where no other place was named, the recording is in the working directory.
    return {name: what for name, what in found.items() if Path(name).parts[0] != ".memdiag"}


def _run(base: Path, setting: Setting, memdiag: Sequence[str]) -> tuple[Effect, Ended]:
    work = prepared(base, setting.user)
    if setting.planted is not None:
        setting.planted(base)
    program = [setting.python, str(PROGRAM), str(work), *setting.arguments]
    values = {name: value.replace("BASE", str(base)) for name, value in setting.env}
    ended = run(
        wrapped([*memdiag, *program], setting, base),
        cwd=work,
        env={**environ(base), **values},
        user=setting.user,
        limit_s=setting.limit_s,
        grace_s=2.0,
        **dict(setting.streams),
    )
    return effect_of(ended, work), ended


def wrapped(command: Sequence[str], setting: Setting, base: Path) -> list[str]:
    """The command under the circumstances of `setting`."""
    shell = ["/bin/sh", "-c", f'{setting.within} exec "$@" {setting.after}', "sh"]
    needed = shell if setting.within or setting.after else []
    return [word.replace("BASE", str(base)) for word in (*setting.wrapper, *needed, *command)]


def prepared(base: Path, user: int | None = None) -> Path:
    """Make what a run needs in `base`; the working directory."""
    base.mkdir(parents=True)
    environ(base)
    for name in ("work", "rec"):
        (base / name).mkdir()
    if user is not None:
        for path in (base, *base.iterdir()):
            os.chown(path, user, user)
    return base / "work"


def effect_of(ended: Ended, work: Path) -> Effect:
    """What was done by a command that ran in `work`."""
    lines = ended.said.splitlines()
    return Effect(
        status=ended.status,
        stdout=ended.stdout,
        own_lines=tuple(line for line in lines if line.startswith(OWN)),
        tree=tree_of(work),
    )


def without_status(effect: Effect) -> Effect:
    """For where the status is nobody's to know."""
    return replace(effect, status=None)


def _is_ours(name: str) -> bool:
    return name.startswith(("memdiag", ".memdiag"))


def _first(before: bytes, after: bytes) -> str:
    """Where two contents begin to differ."""
    pairs = zip(before, after, strict=False)
    same = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))
    texts = (content[same : same + _SHOWN] for content in (before, after))
    return f"at byte {same} alone {next(texts)!r}, under memdiag {next(texts)!r}"
