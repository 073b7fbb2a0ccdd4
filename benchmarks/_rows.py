"""A figure beside its bar, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure beside its bar. good: whether the bar is reached; None where there is none."""

    on: str
    figure: str
    value: str
    bar: str
    good: bool | None


def at_most(on: str, figure: str, part: int, whole: int, bar: float) -> Row:
    """A share that is not to be larger than the bar."""
    share = part / max(whole, 1)
    shown = f"{part}/{whole} = {share:.2%}"
    return Row(on=on, figure=figure, value=shown, bar=f"<= {bar:.1%}", good=share <= bar)


def at_least(on: str, figure: str, part: int, whole: int, bar: float) -> Row:
    """A share that is not to be smaller than the bar."""
    share = part / max(whole, 1)
    shown = f"{part}/{whole} = {share:.1%}"
    return Row(on=on, figure=figure, value=shown, bar=f">= {bar:.0%}", good=share >= bar)


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| on | figure | memdiag | bar | |", "|---|---|---|---|---|"]
    for r in rows:
        mark = "" if r.good is None else "ok" if r.good else "MISSED"
        lines.append(f"| {r.on} | {r.figure} | {r.value} | {r.bar} | {mark} |")
    return "\n".join(lines)


def missed(rows: Sequence[Row]) -> bool:
    """Whether any bar is."""
    return any(row.good is False for row in rows)
