"""`memdiag config`: which options are set, where, and what could be."""

from __future__ import annotations

import os
from pathlib import Path

from memdiag.cli.options.config_layers import KEYS, Given, nearest_table, settings
from memdiag.cli.options.page import PageOptions
from memdiag.cli.output.printing import show
from memdiag.values.sanitize import printable

WITHOUT = ("why", "quiet")


def config(page: PageOptions) -> None:
    """Show the options that pyproject.toml and the environment set, and where each one is set.

    Every option of `run` may be a key of [tool.memdiag], in the pyproject.toml of the working
    directory or the nearest one above. The command line comes before the environment
    (MEMDIAG_MAX_PEAK=16GB), the environment before the file. -v lists all keys.
    """
    from rich.console import Group
    from rich.text import Text

    from memdiag.report.text.text_layout import Column, table

    path, _ = nearest_table(Path())
    found = settings(os.environ, Path())
    print(f"file: {printable(str(path))}{'' if path.is_file() else ' (does not exist)'}")
    names = sorted(KEYS) if page.verbose else sorted(found)
    if not names:
        print("nothing is set; memdiag config -v lists the keys")
        return
    rows = [(name, found.get(name)) for name in names]
    columns = [
        Column("option", [Text(name) for name, _ in rows]),
        Column("value", [Text(printable(", ".join(g.values)) if g else "-") for _, g in rows]),
        Column("set in", [Text(_place(name, given)) for name, given in rows]),
    ]
    show(lambda w, a: Group(*table(columns, gap=2)), page)


def _place(name: str, given: Given | None) -> str:
    """The file or the variable."""
    return "" if given is None else printable(given.where.removeprefix(f"{name} in "))
