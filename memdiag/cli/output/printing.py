"""Reports on the terminal, and the options for them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memdiag.cli.options.declare import flag, option

if TYPE_CHECKING:
    from rich.console import RenderableType

    Renderer = Callable[[int, bool], RenderableType]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """How `analyze` and `compare` print. width, color: None for what the terminal has."""

    why: bool = flag(
        "--why", help="Print the arguments for and against each verdict instead of the values."
    )
    width: int | None = option("--width", "N", "Columns of the report.", min=20)
    ascii_only: bool = flag("--ascii", help="ASCII output only.")
    color: bool | None = option(
        "--color/--no-color", None, "Color, also in a pipe.  [default: on terminals]"
    )


def show(render: Renderer, options: PageOptions | None = None, *, stderr: bool = False) -> None:
    """Print what `render(width, ascii_only)` returns."""
    from rich.console import Console

    options = options or PageOptions()
    console = Console(
        stderr=stderr,
        highlight=False,
        soft_wrap=True,
        force_terminal=options.color,
        no_color=True if options.color is False else None,
    )
    plain = not (console.encoding or "").lower().startswith("utf")
    columns = console.width if console.is_terminal else shutil.get_terminal_size((80, 24)).columns
    console.print(render(options.width or columns, options.ascii_only or plain))
