"""Changes between runs, as text."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from memdiag.report.text import history_words, text_layout
from memdiag.report.text.screen import Screen
from memdiag.values.history import History


def render(found: History, *, width: int, ascii_only: bool = False) -> Group:
    """A paragraph for each series that has changed, and one for the others."""
    screen = Screen(width=width, ascii_only=ascii_only)
    stroke = "-" if ascii_only else "─"
    lines = [text_layout.rule("memdiag history", screen.measure, stroke)]
    changed = [trend for trend in found.trends if trend.changes]
    for trend in changed:
        lead = " ".join(filter(None, (trend.group and f"{screen.show(trend.group)}:",)))
        for change in trend.changes:
            said = history_words.sentence(trend, change, screen)
            lines += text_layout.paragraph(said, screen.measure, lead=lead)
    if changed:
        lines.append(Text())
    return Group(*lines, overall(found))


def overall(found: History) -> Text:
    """The last line."""
    return Text(f"memdiag: {history_words.overall(found)}")
