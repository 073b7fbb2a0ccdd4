"""What `memdiag.analyze` and `memdiag.compare` return."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memdiag import safe_open
from memdiag.errors import LeakError, OutputExists, UsageError
from memdiag.report.formats import comparison_text, comparison_wording, json_documents, terminal
from memdiag.report.formats.html import page
from memdiag.report.picture.model import Picture
from memdiag.report.picture.of_finding import of_deciding
from memdiag.report.plotting import figure
from memdiag.report.sections import headline, recordings_table
from memdiag.report.text import argument_text
from memdiag.report.text.screen import Screen
from memdiag.values import comparison, findings
from memdiag.values.comparison import Effect
from memdiag.values.findings import Finding, Interval, Plateau, RecordingFinding
from memdiag.values.measurements import AxisKind, Unit
from memdiag.values.sanitize import printable
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.text import Text

_WIDTH = 100
_INCHES = (7.2, 3.7)
# Black to white of a terminal, readable on light and dark pages, and behind black.
_COLORS = (
    (90, 90, 90),
    (224, 82, 73),
    (46, 160, 67),
    (191, 135, 0),
    (56, 139, 253),
    (191, 90, 190),
    (40, 160, 170),
    (140, 140, 140),
)
_WORST_FIRST = (Verdict.LEAK, Verdict.INCONCLUSIVE, Verdict.WARMUP, Verdict.STABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A growth rate with its 95% interval.

    value: the estimate, in `unit` (per step, second, ...). low: lower end. high: upper end; both
    may be infinite. unit: what is counted.
    """

    value: float
    low: float
    high: float
    unit: Unit

    @property
    def bytes(self) -> float:
        """The estimate in bytes. Raises AttributeError for a metric that counts something else."""
        if self.unit is not Unit.BYTES:
            raise AttributeError(f"this rate counts {self.unit.value}s, not bytes: use .value")
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How fast memory grows at the end of the run; None for each rate that is unknown.

    per_step: per step. per_second: per second. per_epoch: per epoch.
    per_operation: per request, query or call. per_sample: per sample, if only their order is known.
    """

    per_step: Rate | None = None
    per_second: Rate | None = None
    per_epoch: Rate | None = None
    per_operation: Rate | None = None
    per_sample: Rate | None = None


_PER_X = {
    AxisKind.STEP: "per_step",
    AxisKind.EPOCH: "per_epoch",
    AxisKind.SECONDS: "per_second",
    AxisKind.REQUEST: "per_operation",
    AxisKind.INDEX: "per_sample",
    AxisKind.TICK: "per_sample",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Diagnosis:
    """The diagnosis of one or several recordings, as `memdiag analyze` makes it.

    With several recordings, the attributes are those of the worst one; iterating gives the
    diagnosis of each. In a notebook it is shown as the report, in a shell as a few lines.

    found: everything that was found, in the types of the JSON document (docs/json.md).
    """

    found: findings.Diagnosis

    @property
    def verdict(self) -> Verdict:
        """LEAK, WARMUP, STABLE or INCONCLUSIVE; equal to its name in lowercase."""
        return self.found.verdict

    @property
    def confidence(self) -> float:
        """Probability that the verdict is right, 0 to 1."""
        return self.recording.confidence

    @property
    def recording(self) -> RecordingFinding:
        """What was found in the recording; in the worst one of several."""
        recordings = self.found.recordings
        return min(recordings, key=lambda found: _WORST_FIRST.index(found.verdict))

    @property
    def series(self) -> tuple[Finding, ...]:
        """What was found in each series of the recording."""
        return self.recording.series

    @property
    def deciding(self) -> Finding | None:
        """The series that the verdict rests on; None if nothing was measured."""
        return self.recording.deciding

    @property
    def why(self) -> str:
        """The reason for the verdict, in a sentence."""
        finding = self.deciding
        return headline.NOTHING_MEASURED if finding is None else argument_text.grounds(finding)

    @property
    def growth(self) -> Growth:
        """The growth rate that the headline has: of all processes together where that is known."""
        finding, whole = self.deciding, self.recording.growth
        if finding is None:
            return Growth()
        per_x, per_s = finding.growth_per_x, finding.growth_per_s
        if whole is not None:
            per_x, per_s = whole.growth_per_x, whole.growth_per_s
        rates = {"per_epoch": finding.growth_per_epoch, "per_second": per_s}
        rates[_PER_X[finding.axis.kind]] = per_x
        return Growth(**{name: _rate(rate, finding.unit) for name, rate in rates.items()})

    @property
    def plateau(self) -> Plateau | None:
        """Where growth has stopped; None if it has not, and if there was none."""
        finding = self.deciding
        return None if finding is None else finding.plateau

    @property
    def onset(self) -> Interval | None:
        """Where the growth of a leak began, on the axis; None for other verdicts."""
        finding = self.deciding
        return None if finding is None else finding.onset_x

    def to_dict(self) -> dict[str, Any]:
        """The document that `memdiag analyze --json` prints (docs/json.md), but for `exit_code`."""
        return json_documents.diagnosis(self.found)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report as one HTML file with interactive charts.

        Raises OutputExists for a file that memdiag did not write, and OSError.
        """
        write_page(Path(path), page.diagnosis(self.found))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the deciding series with what was found in it, by matplotlib (`memdiag[plot]`).

        ax: the axes to draw on; new ones of pyplot by default. Returns the axes.
        Raises UsageError without matplotlib, or if nothing was measured.
        """
        picture = of_deciding(self.recording, Screen(width=_WIDTH))
        if picture is None:
            raise UsageError("there is nothing to draw", remedy=headline.NOTHING_MEASURED)
        figure.available()
        import matplotlib

        with matplotlib.rc_context({"text.parse_math": False}):  # names are not formulas
            if ax is None:
                from matplotlib import pyplot

                _, ax = pyplot.subplots(figsize=_INCHES, layout="constrained")
            figure.draw_on(ax, picture, figure.Style())
        return ax

    def raise_for_leak(self) -> None:
        """Raise LeakError if the verdict is LEAK."""
        if self.verdict is Verdict.LEAK:
            found = self.recording
            raise LeakError(f"{found.source}: LEAK, {headline.summary(found)}. {self.why}")

    def __iter__(self) -> Iterator[Diagnosis]:
        for recording in self.found.recordings:
            yield replace(self, found=findings.Diagnosis(recordings=(recording,)))

    def __len__(self) -> int:
        return len(self.found.recordings)

    def __repr__(self) -> str:
        screen = Screen(width=_WIDTH)
        if len(self) > 1:
            lines = recordings_table.table(self.found.recordings, screen)
            return _plain([*lines, recordings_table.overall(self.found, screen)])
        return "\n".join(
            (
                headline.plain(self.recording),
                headline.subject(self.recording, screen),
                screen.show(self.why),
            )
        )

    def _repr_html_(self) -> str:
        pictures = [of_deciding(self.recording, Screen(width=_WIDTH))] if len(self) == 1 else []
        image = _image([one for one in pictures if one is not None])
        return image + _as_html(terminal.render(self.found, width=_WIDTH, plot=not image))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison:
    """What changed between runs before and after, as `memdiag compare` finds it.

    found: everything that was found, in the types of the JSON document (docs/json.md).
    """

    found: comparison.Comparison

    @property
    def effect(self) -> Effect:
        """FIXED, IMPROVED, NO_EFFECT, WORSE, NEW_LEAK or INCONCLUSIVE; equal to its name in
        lowercase.
        """
        return self.found.effect

    @property
    def why(self) -> str:
        """The reason for the effect, in a sentence."""
        by = self.found.deciding
        return (
            "The runs have no series in common."
            if by is None
            else comparison_wording.GROUNDS[by.why]
        )

    def to_dict(self) -> dict[str, Any]:
        """The document that `memdiag compare --json` prints (docs/json.md), but for `exit_code`."""
        return json_documents.comparison(self.found)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as one HTML file with interactive charts.

        Raises OutputExists for a file that memdiag did not write, and OSError.
        """
        write_page(Path(path), page.comparison(self.found))

    def __repr__(self) -> str:
        by = self.found.deciding
        effect = comparison_wording.name(self.effect)
        head = effect if by is None else f"{effect}  {comparison_wording.gist(by)}"
        return f"{head}\n{self.why}"

    def _repr_html_(self) -> str:
        return _as_html(comparison_text.render(self.found, width=_WIDTH))


def _rate(rate: Interval | None, unit: Unit) -> Rate | None:
    return None if rate is None else Rate(value=rate.value, low=rate.low, high=rate.high, unit=unit)


def _plain(lines: list[Text]) -> str:
    return "\n".join(line.plain for line in lines)


def write_page(path: Path, text: str) -> None:
    """Write an HTML page, replacing one that memdiag wrote. Raises OutputExists or OSError."""
    with safe_open.closing(safe_open.open_parent(path)) as directory:
        with contextlib.suppress(FileNotFoundError):
            most = len(page.BEGINNING)
            head = safe_open.read_regular(path.name, most_bytes=most, dir_fd=directory)
            if head and head != page.BEGINNING.encode():
                raise OutputExists(
                    f"{printable(str(path))} exists and is not a memdiag report",
                    remedy="choose another name",
                )
        os.close(safe_open.replace(path.name, [text.encode()], dir_fd=directory))


def _image(pictures: list[Picture]) -> str:
    """The pictures as an image in HTML; "" without any, and without matplotlib."""
    if not pictures:
        return ""
    try:
        drawn = figure.png(pictures, figure.Style())
    except UsageError:
        return ""
    data = base64.b64encode(drawn).decode()
    return f'<img src="data:image/png;base64,{data}" style="width: 46em; max-width: 100%">'


def _as_html(report: Any) -> str:
    """A report for the terminal as HTML; all text is escaped."""
    import io

    from rich.console import Console
    from rich.terminal_theme import TerminalTheme

    console = Console(
        record=True,
        width=_WIDTH + 1,
        file=io.StringIO(),
        force_terminal=True,
        force_jupyter=False,
        highlight=False,
    )
    console.print(report, soft_wrap=True)
    lines = '<pre style="line-height: 1.2; font-family: monospace">{code}</pre>'
    theme = TerminalTheme((255, 255, 255), (0, 0, 0), [*_COLORS])
    return console.export_html(theme=theme, inline_styles=True, code_format=lines)
