"""Whether a live screen is possible here."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping

FEWEST_ROWS, FEWEST_COLUMNS = 12, 40


def why_not(descriptor: int, environ: Mapping[str, str]) -> str:
    """Why the terminal behind `descriptor` cannot show a live screen, "" if it can."""
    if not sys.platform.startswith("linux"):
        return "it needs Linux"
    if environ.get("TERM", "dumb") in {"dumb", "unknown", ""}:
        return f"the terminal cannot move its cursor (TERM={environ.get('TERM', '')})"
    try:
        if not os.isatty(descriptor):
            return "stderr is not a terminal"
        if os.tcgetpgrp(descriptor) != os.getpgrp():
            return "memdiag runs in the background"
        columns, rows = os.get_terminal_size(descriptor)
    except OSError:
        return "stderr is not memdiag's own terminal"
    if rows < FEWEST_ROWS or columns < FEWEST_COLUMNS:
        least = f"{FEWEST_COLUMNS}x{FEWEST_ROWS}"
        return f"the terminal has {columns}x{rows} characters, fewer than {least}"
    if importlib.util.find_spec("textual") is None:
        return "Textual is not installed (pip install 'memdiag[live]')"
    return ""
