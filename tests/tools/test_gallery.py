"""The gallery shows what its tool would draw."""

from __future__ import annotations

import gallery


def test_page_has_every_run_and_its_picture() -> None:
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page()
    pictures = {path.name for path in gallery.FOLDER.iterdir()}
    assert pictures == {f"{run.name}.png" for run in gallery.RUNS} | {"leak.svg"}  # of the README
