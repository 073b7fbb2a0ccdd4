"""Reports on standard output."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    Renderer = Callable[[int, bool], RenderableType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """How a report is to be printed; None where the terminal decides."""

    width: int | None
    ascii_only: bool
    color: bool | None


def show(page: Page, render: Renderer) -> None:
    """Print what `render(width, ascii_only)` returns."""
    from rich.console import Console

    console = Console(
        highlight=False,
        soft_wrap=True,
        force_terminal=page.color,
        no_color=True if page.color is False else None,
    )
    plain = not (console.encoding or "").lower().startswith("utf")
    columns = console.width if console.is_terminal else shutil.get_terminal_size((80, 24)).columns
    console.print(render(page.width or columns, page.ascii_only or plain))
