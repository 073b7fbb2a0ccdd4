"""A browser for tests: the system's Chromium, driven by Playwright."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), "")


def why_not() -> str:
    """Why there is no browser, "" if there is one."""
    if importlib.util.find_spec("playwright") is None:
        return "Playwright is not installed"
    return "" if CHROMIUM else "there is no Chromium on this machine"


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, started and ended."""
    from playwright.sync_api import sync_playwright

    # A process of root cannot have Chromium's sandbox.
    arguments = ["--no-sandbox"] * (os.geteuid() == 0)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield started
        finally:
            started.close()
