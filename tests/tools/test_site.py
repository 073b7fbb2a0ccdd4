"""The pages of the documentation: each is on the site, and links between them lead somewhere.

`make docs` checks the links of the site; on GitHub, anchors of headings are made by other rules.
"""

from __future__ import annotations

import re
from pathlib import Path

import errors_page
import pytest
import site_pages

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
HEADING = re.compile(r"^#+ (.+)$", re.M)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    found = set()
    for heading in HEADING.findall(FENCE.sub("", page.read_text())):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-"))
    return found


def test_every_page_is_in_the_navigation(capsys: pytest.CaptureFixture[str]) -> None:
    assert (site_pages.main(), capsys.readouterr().out) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        to = (page.parent / path).resolve() if path else page
        assert to.exists(), link
        assert to.is_relative_to(ROOT), link
        if anchor and to.suffix == ".md":
            assert anchor in anchors(to), link


def test_links_out_of_the_pages_lead_to_the_repository() -> None:
    text = "[a](x.md) `[b]` ![c](../y.png)\n```\n[d](../z)\n```\n[e](https://f) [g](#h)"
    assert site_pages.relinked(text, lambda link: f"<{link}>") == (
        "[a](<x.md>) `[b]` ![c](<../y.png>)\n```\n[d](../z)\n```\n[e](https://f) [g](#h)"
    )


def test_every_message_has_a_heading_of_its_own() -> None:
    messages = [message for _, found in errors_page.sections() for message in found]
    assert len(messages) > 90
    headings = [line for line in errors_page.written() if line.startswith("\n####")]
    assert len(headings) == len(messages)
