"""Writes the wrong command lines in docs/troubleshooting.md from tests/cli/usage_errors.txt.

    python tools/errors_page.py [--check]

Each message has a heading, and so an address on the page. With --check it fails if the page is not
that of the file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "troubleshooting.md"
ERRORS = ROOT / "tests" / "cli" / "usage_errors.txt"
BEGIN, END = "<!-- errors -->", "<!-- /errors -->"
_MESSAGE = re.compile(r"^memdiag: (?:error|warning): (.*)$", re.M)


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    new = f"{before}{BEGIN}\n" + "\n".join(written()) + f"\n{END}{after}"
    if "--check" in sys.argv[1:]:
        if new != text:
            print(f"{PAGE.relative_to(ROOT)} is not that of {ERRORS.relative_to(ROOT)}: {__doc__}")
        return int(new != text)
    PAGE.write_text(new, encoding="utf-8")
    return 0


def written() -> Iterator[str]:
    """The lines of the part of the page."""
    for title, messages in sections():
        yield f"\n### {title}"
        for message, screens in messages.items():
            yield f"\n#### `{message.replace('`', chr(39))}`\n"
            yield "```console"
            yield "\n".join(screens)
            yield "```"


def sections() -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Each section of the file: for each message the screens that show it."""
    for part in re.split(r"^# ", ERRORS.read_text(encoding="utf-8"), flags=re.M)[1:]:
        title, _, rows = part.partition("\n")
        messages: dict[str, list[str]] = {}
        for row in re.split(r"^(?=\$ )", rows, flags=re.M)[1:]:
            screen = re.sub(r"\n\[\d+\]$", "", row.strip())
            found = _MESSAGE.search(screen)
            if found is not None:
                messages.setdefault(found[1], []).append(screen)
        yield title, messages


if __name__ == "__main__":
    sys.exit(main())
