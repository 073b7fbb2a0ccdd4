"""Where options come from: command line before environment before pyproject.toml.

An option that is given in one of these replaces the values of the later ones. The file is that of
the working directory, or the nearest one above it that has a table of memdiag.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdiag.errors import UsageError
from memdiag.safe_open import read_regular
from memdiag.values.sanitize import printable

FILE = "pyproject.toml"
NOT_SETTABLE = frozenset({"force", "json", "model-params"})
"""What belongs to one call."""
DIRECTORY = "dir"
"""Where runs are kept: a setting of the environment and the file that is not an option."""
_OPTIONS = """
after-step after-time ascii attach census color counter-regex critical-at duration exit-code
explain fail-on full gpu-limit html inconclusive interval intervene json-file junitxml limit live
markdown max-growth max-peak max-tensors-growth max-variation on output phase-regex
picture-style png quiet no-source snapshot step-regex stop-on svg tags-from to verbose warn-at
why width
"""
KEYS = frozenset({DIRECTORY, *_OPTIONS.split()})
"""What the file may set: the options of `run` and `watch` (a test compares them)."""
_PREFIX = "MEMDIAG_"
_MOST_BYTES = 4 << 20
# How similar the name of a variable must be to a known one to count as misspelled. Heuristic.
_MISSPELLED = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Values of one option, as text, and where they were given (`--max-growth`)."""

    values: tuple[str, ...]
    where: str

    def only(self) -> str:
        """The value of an option that takes only one. Raises UsageError."""
        if len(self.values) != 1:
            raise UsageError(f"{self.where} takes only one value", remedy="give one")
        return self.values[0]


def gather(
    options: Mapping[str, Sequence[str]], environ: Mapping[str, str], directory: Path
) -> dict[str, Given]:
    """Every option that was given somewhere.

    options: the values on the command line by option name (`max-growth`), empty if not given.
    directory: where pyproject.toml is looked for, and above it. Raises UsageError for unknown keys
    and misspelled variables.
    """
    found = from_file(directory, options) | _from_environment(environ, options)
    for name, values in options.items():
        if values:
            found[name] = Given(values=tuple(values), where=f"--{name}")
    return found


def _from_environment(environ: Mapping[str, str], names: Collection[str]) -> dict[str, Given]:
    """`MEMDIAG_MAX_GROWTH=rss=1GB/50steps,vram=0/epoch`: commas separate several values."""
    variables = {_PREFIX + name.upper().replace("-", "_"): name for name in names}
    found = {}
    for variable, text in environ.items():
        if not variable.startswith(_PREFIX):
            continue
        values = tuple(part.strip() for part in text.split(",") if part.strip())
        if variable in variables and values:
            found[variables[variable]] = Given(values=values, where=variable)
        near = difflib.get_close_matches(variable, variables, n=1, cutoff=_MISSPELLED)
        if near and variable not in variables:
            raise UsageError(
                f"unknown environment variable {printable(variable)}",
                remedy=f"did you mean {near[0]}?",
            )
    return found


def from_file(directory: Path, names: Collection[str]) -> dict[str, Given]:
    """The options that the file gives. Raises UsageError.

    names: those that are asked for; keys of other commands are left out.
    """
    found = {}
    path, table = nearest_table(directory)
    shown = printable(os.path.relpath(path, directory)) if table else ""
    for key, value in table.items():
        name = key.replace("_", "-")
        if name in names:
            where = f"{name} in {shown}"
            found[name] = Given(values=tuple(_texts(value, where)), where=where)
        elif name not in KEYS:
            near = difflib.get_close_matches(name, KEYS, n=1, cutoff=0.0)
            raise UsageError(
                f"unknown key {printable(key)!r} ({shown} [tool.memdiag])",
                remedy=f"did you mean {near[0]!r}?\nmemdiag config lists the keys",
            )
    return found


def settings(environ: Mapping[str, str], directory: Path) -> dict[str, Given]:
    """Every option that the file or the environment gives. Raises UsageError."""
    return from_file(directory, KEYS) | _from_environment(environ, KEYS)


def nearest_table(directory: Path) -> tuple[Path, dict[str, Any]]:
    """The file with a table of memdiag, and the table: in the directory, or the nearest one above
    up to the root of the repository. Without one, the file of the directory and {}.

    A file above counts only if it belongs to this user, to root, or to the owner of the directory:
    others may write into /tmp. Raises UsageError.
    """
    try:
        directory = directory.absolute()
    except OSError:  # the working directory was removed
        return directory / FILE, {}
    trusted = {0, os.geteuid()}
    with contextlib.suppress(OSError):
        trusted.add(directory.stat().st_uid)
    for place in (directory, *directory.parents):
        path = place / FILE
        with contextlib.suppress(OSError):
            if place == directory or path.stat().st_uid in trusted:
                table = _table(path)
                if table:
                    return path, table
        if (place / ".git").exists():
            break
    return directory / FILE, {}


def _table(path: Path) -> dict[str, Any]:
    """[tool.memdiag]; empty if it does not exist."""
    try:
        raw = read_regular(path, most_bytes=_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise UsageError(
                f"{FILE} has more than {_MOST_BYTES >> 20} MiB",
                remedy="run memdiag in another directory",
            )
        text = raw.decode()
    except (OSError, UnicodeDecodeError):  # missing, or unreadable for pip as well
        return {}
    if "memdiag" not in text:  # skips the parser, and broken files of others
        return {}
    tool = _parsed(text).get("tool", {})
    table = tool.get("memdiag", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"tool.memdiag in {FILE} is not a table", remedy="write [tool.memdiag]")
    return table


def _parsed(text: str) -> dict[str, Any]:
    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    try:
        toml: Any = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(f"{FILE} cannot be read here", remedy=f"pip install {name}") from error
    try:
        parsed: dict[str, Any] = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise UsageError(
            f"invalid TOML in {FILE}: {printable(str(error))}", remedy="correct this line"
        ) from error
    return parsed


def _texts(value: Any, where: str) -> list[str]:
    """A text or number, a list of them, or a table `metric = text`."""
    if isinstance(value, dict):
        return [f"{metric}={_text(one, where)}" for metric, one in value.items()]
    if isinstance(value, list):
        return [_text(one, where) for one in value]
    return [_text(value, where)]


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise UsageError(
        f"{where} is neither text nor a number",
        remedy=f'write {where.split(maxsplit=1)[0]} = "..."',
    )
