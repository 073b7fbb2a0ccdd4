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
from memdiag.cli.options import declare, usage_errors
from memdiag.cli.output import messages
from memdiag.errors import Exit, MemdiagError

# The status that a shell shows for a program ended by SIGPIPE.
_CLOSED_PIPE = 141
# Faults of the system: no traceback.
_STORAGE_FAILED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
# New objects between two garbage collections. Nearly all objects that a command creates belong to
# modules: with Python's default of 700, collections took a tenth of `memdiag analyze`; it creates
# a hundred thousand.
_NEW_OBJECTS = 200_000

_DESCRIPTION = """Is your training leaking memory, or just warming up?

memdiag records the memory of a process tree, decides STABLE, WARMUP, LEAK or
INCONCLUSIVE, explains why, and exits with a code that CI can use.
"""

_EPILOG = """\b
Examples:
  memdiag run -- python train.py          record a training and judge it
  memdiag watch 4711                      attach to a running process
  memdiag list                            the runs that were kept
  memdiag report last                     the report of the newest one again
  memdiag analyze train.log metrics.csv   judge recordings or any log
  memdiag compare last~1 last             did the change help?
  memdiag census 4711                     what is in memory, what holds it
  memdiag doctor                          check what can be measured here

\b
Exit codes:
  0 no leak   1 leak   2 usage or unreadable input   3 inconclusive
  4 memdiag could not measure   5 stopped by --on
  With `run`, a COMMAND that fails keeps its own.
"""


# The function of a command is `memdiag.cli.commands.NAME.NAME`. Its module is imported only when
# it is used: declaring the options of all commands takes longer than importing Typer.
_COMMANDS = {
    "run": "Start a command, record its memory, and judge it.",
    "watch": "Attach to a running process, record its memory, and judge it.",
    "analyze": "Judge recordings, or any log of memory use.",
    "compare": "Compare memory before and after a change.",
    "history": "Show since when runs take more memory.",
    "list": "List the runs that were kept.",
    "report": "Show the report of a run again, or a part of it.",
    "clean": "Remove old runs.",
    "census": "List the largest tensors, arrays and types in a running process.",
    "doctor": "Check what can be measured on this machine.",
    "config": "Show which options are set, and where.",
    "demo": "Record and judge a leak and a warm-up, to see what memdiag prints.",
}


# The base of what Typer's parser raises for a wrong command line.
_WrongUsage: type[Exception] = typer.BadParameter.__mro__[2]


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
    except _WrongUsage as error:
        raise usage_errors.of_parser(error, sys.argv[1:]) from error


def _loaded(name: str) -> Any:
    """The command, built from its function and the settings in its module: `CONTEXT_SETTINGS`, and
    `WITHOUT` for `declare.unfolded`.
    """
    module = importlib.import_module(f"memdiag.cli.commands.{name}")
    function = declare.unfolded(getattr(module, name), getattr(module, "WITHOUT", ()))
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = getattr(module, "CONTEXT_SETTINGS", {})
    alone.command(name, cls=declare.Command, context_settings=settings)(function)
    command = typer.main.get_command(alone)
    command.usage = getattr(module, "USAGE", "")  # type: ignore[attr-defined]
    return command


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

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args[0] not in known:
            raise usage_errors.unknown_command(args[0], args[1:], known)
        return super().resolve_command(ctx, args)

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
            "--version",
            "-V",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
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


def _meant(arguments: list[str]) -> list[str]:
    """The arguments with `help COMMAND`, `-h COMMAND` and other names of a command resolved."""
    first, *rest = arguments or ["--help"]
    command = usage_errors.ALIASES.get(rest[0], rest[0]) if rest else ""
    if first == "help":
        return [command, declare.ALL] if rest else ["--help"]
    if first in {"-h", "--help"} and command in _COMMANDS:
        return [command, first]
    if first == "version" and not rest:
        return ["--version"]
    return [usage_errors.ALIASES.get(first, first), *rest]


def _exit_code_of_app() -> int:
    try:
        app(_meant(sys.argv[1:]), prog_name="memdiag")  # the same for `python -m memdiag`
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
        messages.complain(messages.located(error), error.remedy)
        return error.exit_code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except (BrokenPipeError, _ClosedPipe):
        return _CLOSED_PIPE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _STORAGE_FAILED:
            messages.complain(f"could not write: {error.strerror}")
            return Exit.CANNOT_MEASURE
        traceback.print_exc()
        print("memdiag: this is a bug in memdiag; please report it", file=sys.stderr)
        return Exit.CANNOT_MEASURE


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
