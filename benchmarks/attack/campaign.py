"""What an attack is given, and what it gives back."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .users import Users


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where the campaign takes place.

    directory: of the campaign; every user may enter it. minutes: for fuzzing. jobs: how many
    cases at once. kept: where inputs that made something fail are saved.
    """

    directory: Path
    seed: int
    minutes: float
    jobs: int
    users: Users
    kept: Path

    def chance(self, name: object) -> random.Random:
        """A source of randomness of its own for `name`, the same for the same seed."""
        return random.Random(f"{self.seed}/{name}")

    def place(self, name: str) -> Path:
        """Make a new directory that every user may enter."""
        path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.directory))
        path.chmod(0o755)
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an attack found.

    injections: how often memdiag was attacked. failures: each violation as a sentence with the
    command that shows it. skipped: what could not be tried here, and why.
    """

    name: str
    injections: int
    failures: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One injection: `run` does it in a directory of its own and yields the violations.

    injections: as how many it counts.
    """

    name: str
    run: Callable[[Path], Iterable[str]]
    injections: int = 1


def inject(
    name: str,
    ground: Ground,
    cases: Sequence[Case],
    *,
    skipped: Iterable[str] = (),
    jobs: int | None = None,
) -> Result:
    """Run the cases, several at once, each in a new directory that is removed afterwards."""
    with ThreadPoolExecutor(max_workers=jobs or ground.jobs) as pool:
        found = list(pool.map(lambda case: _tried(case, ground), cases))
    return Result(
        name=name,
        injections=sum(case.injections for case in cases),
        failures=tuple(failure for failures in found for failure in failures),
        skipped=tuple(skipped),
    )


def _tried(case: Case, ground: Ground) -> list[str]:
    place = ground.place("case")
    try:
        found = [f"{case.name}: {failure}" for failure in case.run(place)]
    except Exception:  # the campaign goes on, and must not pass
        lines = traceback.format_exc(limit=-3).splitlines()
        found = [f"{case.name}: the campaign itself failed: {' / '.join(map(str.strip, lines))}"]
    remove(place)
    return found


def remove(place: Path) -> None:
    """Remove a directory; root needs no leave for it, others own what is in it."""
    if os.geteuid() != 0:
        for folder, folders, _ in os.walk(place):
            for name in folders:
                path = Path(folder) / name
                if not path.is_symlink():
                    path.chmod(0o700)
    shutil.rmtree(place, ignore_errors=True)
