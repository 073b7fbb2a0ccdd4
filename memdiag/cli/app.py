"""The command line: loads the commands and turns every failure into an exit code.

Typer exits with status 1 for several reasons, and 1 means LEAK here. So whatever a command raises
is kept from Typer and handled in `main`.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from memdiag import __version__
from memdiag.cli.options import declare
from memdiag.cli.output import messages
from memdiag.errors import CannotMeasure, Exit, MemdiagError
from memdiag.values.sanitize import printable

# The status that a shell shows for a program ended by SIGPIPE.
_CLOSED_PIPE = 141
# Faults of the system: no traceback.
_STORAGE_FAILED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
# New objects between two garbage collections. Nearly all objects that a command creates belong to
# modules: with Python's default of 700, collections took a tenth of `memdiag analyze`.
_NEW_OBJECTS = 50_000

_DESCRIPTION = """Is the growing memory of your training a warm-up or a leak?

memdiag records the memory of a process tree, decides STABLE, WARMUP, LEAK or
INCONCLUSIVE, explains why, and exits with a code that CI can use.
"""

_EPILOG = """\b
Examples:
  memdiag run -- python train.py          record a training and judge it
  memdiag watch --pid 4711                attach to a running process
  memdiag analyze memdiag-*.csv           judge recordings or any CSV log
  memdiag compare before.csv after.csv    did the change help?
  memdiag doctor                          check what can be measured here

\b
Exit codes:
  0 no leak   1 leak   2 usage or unreadable input   3 inconclusive
  4 memdiag could not measure   With `run`, a COMMAND that fails keeps its own.
"""


# The function of a command is `memdiag.cli.commands.NAME.NAME`. Its module is imported only when
# it is used: declaring the options of all commands takes longer than importing Typer.
_COMMANDS = {
    "run": "Start a command, record its memory, and judge it.",
    "watch": "Attach to a running process, record its memory, and judge it.",
    "analyze": "Judge recordings, or any log of memory use.",
    "compare": "Compare memory before and after a change.",
    "doctor": "Check what can be measured on this machine.",
}


class _ClosedPipe(Exception):
    """The reader of the output went away."""


class _UnexpectedEnd(Exception):
    """A bug of memdiag that Typer would take for the user's wish to stop."""


@contextmanager
def _kept_from_typer() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _ClosedPipe from error
    except EOFError as error:
        raise _UnexpectedEnd from error


def _loaded(name: str) -> Any:
    """The command, built from its function and the settings in its module: `CONTEXT_SETTINGS`, and
    `WITHOUT` for `declare.unfolded`.
    """
    module = importlib.import_module(f"memdiag.cli.commands.{name}")
    function = declare.unfolded(getattr(module, name), getattr(module, "WITHOUT", ()))
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = getattr(module, "CONTEXT_SETTINGS", {})
    alone.command(name, cls=declare.Command, context_settings=settings)(function)
    return typer.main.get_command(alone)


class _Commands(TyperGroup):
    """The group of all commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        return [declare.unconverted(parameter) for parameter in super().get_params(ctx)]

    def list_commands(self, ctx: Any) -> list[str]:
        return [*_COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _loaded(cmd_name) if cmd_name in _COMMANDS else super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _kept_from_typer():
            return super().make_context(*args, **kwargs)

    def invoke(self, *args: Any, **kwargs: Any) -> Any:
        with _kept_from_typer():
            return super().invoke(*args, **kwargs)


app = typer.Typer(
    cls=_Commands,
    help=_DESCRIPTION,
    epilog=_EPILOG,
    no_args_is_help=True,
    # Plain help: the same on every terminal, in a pipe and in the README, and fast.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"memdiag {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options that do not belong to a command."""


def main() -> int:
    """Run the command line and return its exit code."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, *thresholds[1:])
    atexit.register(gc.freeze)  # skips the last collection, over all objects of the process
    _open_missing_streams()
    _keep_commentary_from_failing()
    try:
        return _exit_code()
    finally:
        gc.set_threshold(*thresholds)
        _give_up_failed_streams()


def _exit_code_of_app() -> int:
    try:
        app(prog_name="memdiag")  # the same for `python -m memdiag`
    except SystemExit as ending:
        # Typer ends a command with a number in all cases, None is success.
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    else:  # pragma: no cover - Typer always raises
        code = Exit.NO_LEAK
    sys.stdout.flush()
    return code


def _exit_code() -> int:
    """The exit code of the command, or of its failure."""
    try:
        return _exit_code_of_app()
    except MemdiagError as error:
        _complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except (BrokenPipeError, _ClosedPipe):
        return _CLOSED_PIPE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _STORAGE_FAILED:
            _complain(CannotMeasure(f"could not write: {error.strerror}"))
            return Exit.CANNOT_MEASURE
        traceback.print_exc()
        print("memdiag: this is a bug in memdiag; please report it", file=sys.stderr)
        return Exit.CANNOT_MEASURE


def _complain(error: MemdiagError) -> None:
    print(f"memdiag: {printable(error.message)}", file=sys.stderr)
    if error.remedy:
        print(f"  try: {printable(error.remedy)}", file=sys.stderr)


def _keep_commentary_from_failing() -> None:
    if sys.stderr is not sys.__stderr__ or sys.stderr is None:
        return  # replaced by a test
    with contextlib.suppress(OSError, ValueError):
        sys.stderr = messages.unfailing(sys.stderr.fileno(), sys.stderr.encoding)


def _open_missing_streams() -> None:
    """Replace streams that were closed at the start (`>&-`), which are None, by /dev/null."""
    # They stay open as long as the process lives.
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115


def _give_up_failed_streams() -> None:
    """Keep the last flush of the interpreter from failing on a closed pipe or a full disk."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
