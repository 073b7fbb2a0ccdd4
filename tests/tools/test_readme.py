"""Screens in the documentation are what memdiag prints, at a width that every reader has."""

from __future__ import annotations

import pytest
import readme

import memdiag


def test_a_stale_screen_is_rewritten_and_the_text_around_it_kept() -> None:
    text = "before\n<!-- screen: memdiag --version -->\n```console\nold\n```\nafter\n"
    assert readme.SCREEN.sub(readme.rewritten, text) == (
        "before\n<!-- screen: memdiag --version -->\n"
        f"```console\n$ memdiag --version\nmemdiag {memdiag.__version__}\n```\nafter\n"
    )


def test_a_failing_exit_code_is_part_of_the_screen() -> None:
    assert readme.screen("memdiag nosuch").splitlines()[-2:] == ["$ echo $?", "2"]


def test_only_memdiag_is_run() -> None:
    with pytest.raises(SystemExit, match="only memdiag"):
        readme.screen("rm -rf .")


def test_the_readme_shows_screens() -> None:
    assert readme.SCREEN.search((readme.ROOT / "README.md").read_text(encoding="utf-8"))
