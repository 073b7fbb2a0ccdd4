"""What a user has settled on: command line before environment before pyproject.toml.

An option given at one of these replaces all that the later ones say of it.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memdiag.errors import UsageError
from memdiag.safe_open import read_regular
from memdiag.values.sanitize import printable

FILE = "pyproject.toml"
_PREFIX = "MEMDIAG_"
_MOST_BYTES = 4 << 20
# How alike a variable's name must be to one of ours to be taken for a slip. Chosen.
_SLIP = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Values of one option, as text, and where they were given (`--max-growth`)."""

    values: tuple[str, ...]
    where: str

    def only(self) -> str:
        """The value of an option that takes one. Raises UsageError."""
        if len(self.values) != 1:
            raise UsageError(f"{self.where} takes one value", remedy="give one")
        return self.values[0]


def gather(
    options: Mapping[str, Sequence[str] | None], environ: Mapping[str, str], directory: Path
) -> dict[str, Given]:
    """Every option that was given somewhere.

    options: by their names on the command line (`max-growth`): what was given there, or None.
    directory: where to look for pyproject.toml, not in its parents. Raises UsageError for keys
    and variables that mean nothing.
    """
    names = list(options)
    found = _from_file(directory / FILE, names)
    found |= _from_environment(environ, names)
    for name, values in options.items():
        if values is not None:
            found[name] = Given(values=tuple(values), where=f"--{name}")
    return found


def _from_environment(environ: Mapping[str, str], names: Sequence[str]) -> dict[str, Given]:
    """`MEMDIAG_MAX_GROWTH=rss=1GB/50steps,vram=0/epoch`: commas part several values."""
    variables = {_PREFIX + name.upper().replace("-", "_"): name for name in names}
    found = {}
    for variable, text in environ.items():
        if variable in variables:
            values = tuple(part.strip() for part in text.split(",") if part.strip())
            if values:
                found[variables[variable]] = Given(values=values, where=variable)
        elif variable.startswith(_PREFIX):
            near = difflib.get_close_matches(variable, variables, n=1, cutoff=_SLIP)
            if near:
                raise UsageError(
                    f"the environment variable {printable(variable)} means nothing",
                    remedy=f"did you mean {near[0]}?",
                )
    return found


def _from_file(path: Path, names: Sequence[str]) -> dict[str, Given]:
    table = _table(path)
    found = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
            raise UsageError(
                f"[tool.memdiag] in {FILE} has the unknown key {printable(key)!r}",
                remedy=f"did you mean {near[0]!r}? Known are {', '.join(sorted(names))}",
            )
        where = f"{name} in {FILE}"
        found[name] = Given(values=tuple(_texts(value, where)), where=where)
    return found


def _table(path: Path) -> dict[str, Any]:
    """[tool.memdiag], empty where there is none."""
    try:
        raw = read_regular(path, most_bytes=_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise UsageError(
                f"{FILE} has more than {_MOST_BYTES >> 20} MiB",
                remedy="run memdiag in another directory",
            )
        text = raw.decode()
    except (OSError, UnicodeDecodeError):  # not there, or nothing that pip could read either
        return {}
    if "memdiag" not in text:  # spares the parser, and others' broken files
        return {}
    tool = _parsed(text).get("tool", {})
    table = tool.get("memdiag", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"tool.memdiag in {FILE} is no table", remedy="write [tool.memdiag]")
    return table


def _parsed(text: str) -> dict[str, Any]:
    # In the standard library from Python 3.11 on.
    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    try:
        toml: Any = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UsageError(f"{FILE} cannot be read here", remedy=f"pip install {name}") from error
    try:
        parsed: dict[str, Any] = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise UsageError(
            f"{FILE} is no TOML: {printable(str(error))}", remedy="correct it, or remove it"
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
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    raise UsageError(
        f"{where} is neither text nor number", remedy=f'write {where.split(maxsplit=1)[0]} = "..."'
    )
