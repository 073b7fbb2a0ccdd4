"""What mkdocs is given besides the pages in docs/: `hooks` in mkdocs.yml names this module.

CONTRIBUTING.md and CHANGELOG.md are pages of the site. Links to other files of the repository lead
to it on GitHub; one to a file that does not exist is a warning, and so fails `make docs`.

    python tools/site_pages.py

lists the pages that the navigation in mkdocs.yml lacks or has too much, and fails if there are any.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"(^```.*?^```$)", re.M | re.S)
_log = logging.getLogger("mkdocs.hooks.site")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie outside of docs/, with their links as of a page in docs/."""
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = relinked(text, lambda link: os.path.relpath(ROOT / link, ROOT / "docs"))
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with links that leave docs/ led to the repository."""
    del files
    here = PurePosixPath("docs", page.file.src_uri).parent

    def led(link: str) -> str:
        path, mark, anchor = link.partition("#")
        at = PurePosixPath(os.path.normpath(here / path))
        if at.is_relative_to("docs"):
            return link
        if str(at) in PAGES:
            return os.path.relpath(f"docs/{PAGES[str(at)]}", here) + mark + anchor
        if not (ROOT / at).exists():
            _log.warning("%s links to %s, which does not exist", page.file.src_uri, at)
        kind = "tree" if (ROOT / at).is_dir() else "blob"
        repository = config.extra["repository"]
        return f"{repository}/{kind}/main/{at}{mark}{anchor}"

    return relinked(markdown, led)


def relinked(markdown: str, led: Callable[[str], str]) -> str:
    """The text with its relative links led elsewhere; code is left alone."""

    def of(link: re.Match[str]) -> str:
        to = link[2]
        is_relative = not (to.startswith(("#", "/", "mailto:")) or "://" in to)
        return f"{link[1]}{led(to)}{link[3]}" if is_relative else link[0]

    parts = _FENCE.split(markdown)
    return "".join(part if at % 2 else _LINK.sub(of, part) for at, part in enumerate(parts))


def main() -> int:
    """Compare the navigation with the pages that there are."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = set(re.findall(r"(\S+\.md)$", navigation, re.M))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")}
    wrong = sorted(named ^ (pages | set(PAGES.values())))
    for page in wrong:
        print(f"mkdocs.yml: nav {'has' if page in named else 'lacks'} {page}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
