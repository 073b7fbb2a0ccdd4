"""Attack memdiag: with another user, with faults, with hostile files. `make attack`.

    python -m benchmarks.attack [--minutes 10] [--seed N] [--only NAME ...] [--jobs N] [--write]

Prints a line for each attack as it ends, every violation with the command that shows it, and a
table. Ends with 1 if there was any violation. Half of it needs root, for two users and a tmpfs, and
is skipped with a reason otherwise. Takes twenty-five minutes on two cores; --minutes is for the
fuzzing alone. --write puts the table between the markers of docs/security.md.

    python -m benchmarks.attack --only inputs --seed N --input M

tries one input of the fuzzing again.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from . import on_contents
from .campaign import Ground, Result, remove
from .on_attaching import attaching
from .on_contents import inputs, rings
from .on_faults import faults
from .on_floods import floods
from .on_forging import forging
from .on_kept_runs import kept_runs
from .on_links import links
from .on_outputs import outputs
from .on_own_channel import own_channel
from .on_places import places
from .on_results import swapped_results
from .on_same_output import same_output
from .on_signals import signals
from .on_statuses import statuses
from .on_targets import targets
from .running import ROOT
from .users import find_users

DOCUMENT = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- attack -->", "<!-- /attack -->"
KEPT = ROOT / "bench-output" / "attack"
# In the order in which they run: what takes over a machine first.
ATTACKS: dict[str, tuple[str, Callable[[Ground], Result]]] = {
    "attaching": ("root attaches to a process of an attacker's", attaching),
    "targets": ("root and users attach to all kinds of programs", targets),
    "forging": ("another user forges rings", forging),
    "links": ("links under the names of files to come", links),
    "results": ("links swapped for a file of results while it is opened", swapped_results),
    "kept-runs": ("another user's traps where runs are kept", kept_runs),
    "places": ("FIFOs, devices, endless files in the place of files", places),
    "outputs": ("outputs over inputs and over each other", outputs),
    "same-output": ("two runs with one -o at once", same_output),
    "statuses": ("all statuses and deaths of COMMAND", statuses),
    "faults": ("full disks, closed streams, small limits", faults),
    "signals": ("killed, stopped and interrupted at random moments", signals),
    "own-channel": ("COMMAND writes garbage into its own channel", own_channel),
    "floods": ("input without an end, bombs, 100,000 columns", floods),
    "rings": ("fuzzed rings", rings),
    "inputs": ("fuzzed recordings, logs and exports", inputs),
}
_SHOWN = 600
_MOST_SHOWN = 40


def main() -> int:
    given = _arguments()
    if given.input is not None:
        return on_contents.again(given.only[0], given.seed, given.input)
    _prepare_signals()
    os.umask(0o022)
    directory = Path(tempfile.mkdtemp(prefix="attack-"))
    directory.chmod(0o755)
    began_s = time.monotonic()
    try:
        ground = Ground(
            directory=directory,
            seed=given.seed,
            minutes=given.minutes,
            jobs=given.jobs,
            users=find_users(directory),
            kept=KEPT,
        )
        results = [_led(name, ground) for name in given.only or ATTACKS]
    finally:
        remove(directory)
    table = _table(results)
    minutes = (time.monotonic() - began_s) / 60
    print(f"\n{table}\n\nseed {given.seed}, {minutes:.0f} minutes")
    _keep(results)
    if given.write and DOCUMENT.is_file():
        _write(table, given)
    return 1 if any(result.failures for result in results) else 0


def _prepare_signals() -> None:
    """A runner's SIGTERM leaves nothing behind; what a shell's `&` or nohup have had ignored is
    ignored here alone, for it would be inherited.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.attack",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of fuzzing (10)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random (1)")
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), metavar="NAME", default=[])
    parser.add_argument("--jobs", type=int, default=max(2, os.cpu_count() or 1), help="at once")
    parser.add_argument("--write", action="store_true", help="put the table into docs/security.md")
    parser.add_argument("--input", type=int, metavar="M", help="try one input again")
    given = parser.parse_args()
    if given.input is not None and given.only not in (["inputs"], ["rings"]):
        parser.error("--input needs --only inputs or --only rings")
    return given


def _led(name: str, ground: Ground) -> Result:
    """Lead one attack, and say at once what came of it."""
    began_s = time.monotonic()
    result = ATTACKS[name][1](ground)
    took_s = time.monotonic() - began_s
    said = f"{result.injections:,} injections, {len(result.failures)} violations"
    print(f"{name:<12} {said}, {took_s:.0f} s", flush=True)
    for failure in result.failures[:_MOST_SHOWN]:
        print(f"  - {' / '.join(failure.splitlines())[:_SHOWN]}", flush=True)
    if len(result.failures) > _MOST_SHOWN:
        print(f"  - and {len(result.failures) - _MOST_SHOWN} more", flush=True)
    for skipped in result.skipped:
        print(f"  skipped: {skipped}", flush=True)
    return Result(
        name=name,
        injections=result.injections,
        failures=result.failures,
        skipped=result.skipped,
    )


def _table(results: Sequence[Result]) -> str:
    rows = [("attack", "what", "injections", "violations", "skipped")]
    rows += [
        (
            result.name,
            ATTACKS[result.name][0],
            f"{result.injections:,}",
            str(len(result.failures)),
            "; ".join(result.skipped) or "-",
        )
        for result in results
    ]
    injections = sum(result.injections for result in results)
    violations = sum(len(result.failures) for result in results)
    rows.append(("all", "", f"{injections:,}", str(violations), ""))
    lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    return "\n".join([lines[0], "|---|---|--:|--:|---|", *lines[1:]])


def _keep(results: Sequence[Result]) -> None:
    """All violations in full, for a look later."""
    failures = [f"{result.name}: {text}" for result in results for text in result.failures]
    if not failures:
        return
    try:
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / "violations.txt").write_text("\n".join([*failures, ""]), errors="replace")
        print(f"in full: {KEPT / 'violations.txt'}")
    except OSError as error:
        print(f"the violations are not saved: {error}", file=sys.stderr)


def _write(table: str, given: argparse.Namespace) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        print(f"{DOCUMENT} has no markers {BEGIN} ... {END}", file=sys.stderr)
        return
    day = datetime.now(timezone.utc).date()
    who = "root" if os.geteuid() == 0 else "a user"
    made = (
        f"`make attack` of {day} as {who}, Linux {platform.release()}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores, seed {given.seed}, "
        f"{given.minutes:g} minutes of fuzzing:"
    )
    DOCUMENT.write_text(f"{before}{BEGIN}\n{made}\n\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
