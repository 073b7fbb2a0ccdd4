"""Reports on the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from memdiag.cli.options.page import Color, PageOptions

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memdiag.values.fleet import FleetSummary
    from memdiag.values.history import History

    Renderer = Callable[[int, bool], RenderableType]


def show(render: Renderer, options: PageOptions | None = None, *, stderr: bool = False) -> None:
    """Print what `render(width, ascii_only)` returns."""
    from rich.console import Console

    options = options or PageOptions()
    console = Console(
        stderr=stderr,
        highlight=False,
        soft_wrap=True,
        force_terminal=True if options.color is Color.ALWAYS else None,
        no_color=None if options.color is Color.AUTO else options.color is Color.NEVER,
    )
    plain = not (console.encoding or "").lower().startswith("utf")
    columns = console.width if console.is_terminal else shutil.get_terminal_size((80, 24)).columns
    console.print(render(options.width or columns, options.ascii_only or plain))


def show_summary(
    found: FleetSummary | History, code: int, text: ModuleType, page: PageOptions, *, as_json: bool
) -> None:
    """Print what many recordings have in common: as JSON, as a line, or whole.

    text: of `memdiag.report.formats`, with `overall` and `render`.
    """
    if as_json:
        from memdiag.report.formats import json_documents

        sys.stdout.write(json_documents.text(json_documents.summary(found, code)))
    elif page.quiet:
        show(lambda _w, _a: text.overall(found), page)
    else:
        show(lambda w, a: text.render(found, width=w, ascii_only=a), page)
