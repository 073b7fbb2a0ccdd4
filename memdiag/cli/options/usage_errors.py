"""What is wrong with a command line, in memdiag's words instead of those of the parser."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from memdiag.errors import UsageError
from memdiag.values.sanitize import printable

# Commands that mean the same.
ALIASES = {"analyse": "analyze", "diff": "compare"}
# What other tools call such a command.
_MEANT = {
    "run": "record start exec launch profile",
    "watch": "attach monitor top live follow",
    "analyze": "analysis check judge verdict view show open plot explain",
    "list": "ls status history runs",
    "clean": "rm remove delete prune",
    "census": "objects snapshot dump",
    "doctor": "env info system",
    "config": "init settings configure",
}
# Options of other commands or tools.
_INSTEAD = {
    "--no-color": "--color never",
    "--colour": "--color",
    "--output-file": "--output",
    "--name": "--output NAME.csv",
    "--metrics": "--metric",
    "--column": "--metric",
}
# Options of `run` that hardly another program has.
_DISTINCTIVE = re.compile(
    "--(counter-regex|critical-at|fail-on|gpu-limit|inconclusive|json-file|max-growth|max-peak"
    "|max-tensors-growth|max-variation|phase-regex|picture-style|step-regex|stop-on|tags-from"
    "|warn-at)"
)
_OWN_STDOUT = "--json-file report.json"
# How similar a word must be to a known one to count as misspelled. Heuristic.
_MISSPELLED = 0.6
_MISSPELLED_METRIC = 0.8
_INTERPRETER_OPTIONS = frozenset({"-m", "-c", "-u", "-O", "-X", "-W"})


def misplaced(command: Sequence[str]) -> list[str]:
    """The options of `memdiag run` that were given to COMMAND, probably by mistake."""
    names = (word.partition("=")[0] for word in command[1:])
    if "memdiag" in {Path(command[0]).name, *command[1:3]}:  # `run -- memdiag run ...`
        return []
    return [name for name in dict.fromkeys(names) if _DISTINCTIVE.fullmatch(name)]


def suspicions(command: Sequence[str], metrics: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What is probably a mistake but not an error: a message and a hint each.

    command: what `run` starts, () for `watch`. metrics: those that budgets and thresholds name.
    """
    if command and (given := misplaced(command)):
        program = printable(command[0])
        typed = f"memdiag run {given[0]} ... -- {program}"
        yield (
            f"{' and '.join(given)} went to {program}, not to memdiag",
            f"options of memdiag come before the command: {typed}",
        )
    from memdiag.values.metrics import METRIC_ROLES  # not for a help screen

    known = list(dict.fromkeys(name.removesuffix("_bytes") for name in METRIC_ROLES))
    for metric in dict.fromkeys(metrics):
        name = metric.casefold().removesuffix("_bytes")
        near = difflib.get_close_matches(name, known, n=1, cutoff=_MISSPELLED_METRIC)
        if near and name not in known:  # others may be counters of the program
            yield f"unknown metric {printable(metric)!r}", f"did you mean {near[0]!r}?"


def unknown_command(word: str, rest: Sequence[str], known: Sequence[str]) -> UsageError:
    """The error for a word that is no command. rest: what follows it."""
    shown = printable(word)
    typed = printable(shlex.join([word, *rest]))
    following = printable(f" {shlex.join(rest)}" if rest else "")
    meant = next((name for name, words in _MEANT.items() if word.lower() in words.split()), "")
    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=_MISSPELLED)
    if meant == "analyze":
        from memdiag.recording.native.runs import is_run_name  # not for a help screen

        meant = "report" if not rest or is_run_name(rest[0]) else meant
    if meant and meant in known:
        remedy = f"did you mean memdiag {meant}{following}?"
    elif word.endswith((".py", ".sh")) or (not near and shutil.which(word) is not None):
        python = "python " if word.endswith(".py") else ""
        remedy = f"to start a program: memdiag run -- {python}{typed}"
    elif word.isdecimal():
        remedy = f"to watch a process: memdiag watch {typed}"
    elif os.path.lexists(word):
        return UsageError(
            f"{shown!r} is a file, not a command", remedy=f"to judge it: memdiag analyze {typed}"
        )
    else:
        remedy = f"did you mean {near[0]!r}?" if near else "memdiag help lists the commands"
    return UsageError(f"unknown command {shown!r}", remedy=remedy)


def of_parser(error: Any, arguments: Sequence[str]) -> UsageError:
    """The error of the parser as memdiag reports it.

    error: an exception of Typer's parser. arguments: what was typed after `memdiag`.
    """
    command = error.ctx.command.name if getattr(error, "ctx", None) is not None else ""
    command = "" if error.ctx is not None and error.ctx.parent is None else command
    name = getattr(error, "option_name", None)
    if type(error).__name__ == "NoSuchOption" and name:
        return _unknown_option(name, command or "", error.ctx, arguments)
    parameter = getattr(error, "param", None)
    if type(error).__name__ == "MissingParameter" and parameter is not None:
        return _missing(command or "", parameter, arguments)
    if name and "requires an argument" in error.message:
        return UsageError(f"{name} requires a value", remedy=_value_of(name, error.ctx))
    if name and "does not take a value" in error.message:
        return UsageError(f"{name} takes no value")
    if "unexpected extra argument" in error.message:
        extra = error.message.rpartition("(")[2].rstrip(")")
        return UsageError(f"unexpected argument {printable(extra)!r} for memdiag {command}")
    text = error.format_message().rstrip(".")
    return UsageError(printable(text[:1].lower() + text[1:]))


def _unknown_option(name: str, command: str, ctx: Any, arguments: Sequence[str]) -> UsageError:
    shown = printable(name)
    if not command:
        words = [ALIASES.get(one, one) for one in arguments]
        given = next((one for one in words if one in ctx.command.list_commands(ctx)), "analyze")
        remedy = f"options come after the command: memdiag {given} {shown}"
        return UsageError(f"unknown option {shown}", remedy=remedy)
    message = f"unknown option {shown} for memdiag {command}"
    options = [one for parameter in ctx.command.get_params(ctx) for one in parameter.opts]
    near = difflib.get_close_matches(name, options, n=1, cutoff=_MISSPELLED + 0.15)
    at = next((n for n, one in enumerate(arguments) if one.split("=")[0] == name), len(arguments))
    if name == "--json" and command == "run":
        return UsageError(
            "--json is not available for memdiag run: stdout belongs to the command",
            remedy=_OWN_STDOUT,
        )
    if name in _INSTEAD:
        remedy = f"write {_INSTEAD[name]}"
    elif near:
        remedy = f"did you mean {near[0]}?"
    elif command == "run" and name in _INTERPRETER_OPTIONS:
        remedy = f"memdiag run -- python {printable(shlex.join(arguments[at:]))}"
    elif command == "run":
        remedy = f"options of your program go after it: memdiag run -- python train.py {shown}"
        initial = [one for one in options if one.startswith(f"-{name}")]
        if initial and not name.startswith("--"):
            remedy = f"did you mean {' or '.join(initial[:3])}?\n{remedy}"
    else:
        remedy = f"memdiag help {command} lists the options"
    return UsageError(message, remedy=remedy)


_MISSING = {
    "run": ("no command to run", "memdiag run -- python train.py"),
    "analyze": ("no files to analyze", "memdiag analyze run.csv, or memdiag analyze last"),
    "history": ("no file of results", "memdiag analyze 'runs/*.csv' --results runs.sqlite"),
}


def _missing(command: str, parameter: Any, arguments: Sequence[str]) -> UsageError:
    if command in _MISSING and parameter.param_type_name == "argument":
        message, remedy = _MISSING[command]
        option, *value = arguments[-2:]
        if option.startswith("-") and value and os.path.lexists(value[0]):
            remedy = f"{printable(value[0])} is the value of {option}\n{remedy}"
        return UsageError(message, remedy=remedy)
    name = parameter.metavar or parameter.name.upper()
    if parameter.param_type_name == "option":
        name = f"{parameter.opts[0]} {name}"
    return UsageError(f"{name} is missing", remedy=f"memdiag help {command} shows how it is used")


def _value_of(name: str, ctx: Any) -> str:
    """`--limit SIZE`."""
    parameters = () if ctx is None else ctx.command.get_params(ctx)
    found = next((one for one in parameters if name in one.opts), None)
    return "" if found is None or not found.metavar else f"write {name} {found.metavar}"
