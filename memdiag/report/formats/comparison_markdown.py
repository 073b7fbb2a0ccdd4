"""A comparison as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from memdiag.report.formats import comparison_wording, markdown
from memdiag.report.text import series_names
from memdiag.report.text.screen import Screen
from memdiag.values.comparison import Comparison, Effect, SeriesComparison

_SCREEN = Screen(width=100)
_MARKS = {
    Effect.FIXED: "✅",
    Effect.IMPROVED: "✅",
    Effect.NO_EFFECT: "✅",
    Effect.WORSE: "❌",
    Effect.NEW_LEAK: "❌",
    Effect.INCONCLUSIVE: "❔",
}
# Runs of one side that are named; the others are counted.
_NAMED = 3
# How such a file begins; one that begins so may be replaced by another report.
BEGINNINGS = tuple(
    f"### {mark} {comparison_wording.name(effect)}: " for effect, mark in _MARKS.items()
)


def document(compared: Comparison) -> str:
    """The effect, its table, the other series (folded), and what to do. All text is escaped."""
    safe = markdown.safe
    found = compared.deciding
    gist = "no series in common" if found is None else comparison_wording.gist(found)
    effect = comparison_wording.name(compared.effect)
    blocks = [f"### {_MARKS[compared.effect]} {effect}: {safe(gist)}"]
    sides = f"{_runs(compared.base)} against {_runs(compared.candidate)}"
    if found is None:
        blocks += [sides, *map(safe, compared.notes)]
    else:
        smallest = comparison_wording.smallest_detectable(found)
        blocks.append(f"{safe(series_names.opening(found, _SCREEN))}: {sides}.")
        blocks.append(safe(f"{comparison_wording.GROUNDS[found.why]} {smallest}".strip()))
        blocks += _measures(found)
    blocks.append(f"**Next:** {safe(comparison_wording.next_step(compared))}")
    return "\n\n".join([*blocks, *_others(compared)]) + "\n"


def _runs(sources: Sequence[str]) -> str:
    named = [f"**{markdown.safe(comparison_wording.run(source))}**" for source in sources[:_NAMED]]
    more = len(sources) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _measures(found: SeriesComparison) -> list[str]:
    rows = [
        [
            comparison_wording.measure(found, by),
            *(
                comparison_wording.estimate(found, by, one, _SCREEN, margin=True)
                for one in (by.base, by.candidate, by.change)
            ),
        ]
        for by in found.differences
    ]
    shown = [list(map(markdown.safe, row)) for row in rows]
    return [markdown.table(("", "before", "after", "change"), shown)] if rows else []


def _others(compared: Comparison) -> list[str]:
    rest = [one for at, one in enumerate(compared.series) if at != compared.decided_by]
    if not rest:
        return []
    rows = [
        [
            markdown.safe(series_names.series(one, _SCREEN)),
            comparison_wording.verdicts(one.base_verdicts),
            comparison_wording.verdicts(one.candidate_verdicts),
            comparison_wording.name(one.effect).lower(),
        ]
        for one in sorted(rest, key=lambda one: list(Effect).index(one.effect))
    ]
    table = markdown.table(("series", "before", "after", "effect"), rows)
    return [f"<details><summary>{len(rest):,} more series</summary>", table, "</details>"]
