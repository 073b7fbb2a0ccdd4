"""How a report is printed: the options that every command with a report has."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar

from memdiag.cli.options.declare import flag, option
from memdiag.errors import UsageError
from memdiag.report.text.screen import Detail


class Color(enum.Enum):
    """When reports have colors."""

    AUTO = "auto"  # on a terminal, unless NO_COLOR says otherwise
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """How every command prints its report. width: None for what the terminal has."""

    IS_SETTABLE: ClassVar[bool] = True

    verbose: int = option(
        "--verbose",
        None,
        "Show all series, plot, phases, forecasts, notes; -vv: the arguments, too.",
        short="-v",
        default=0,
        count=True,
        show_default=False,
        panel="Output",
        typical=True,
    )
    quiet: bool = flag(
        "--quiet", "-q", help="Print only the verdict line.", panel="Output", typical=True
    )
    why: bool = flag(
        "--why",
        help="Print the arguments for and against each verdict instead of the facts.",
        panel="Output",
    )
    width: int | None = option("--width", "N", "Columns of the report.", low=20, panel="Output")
    ascii_only: bool = flag("--ascii", help="ASCII output only.", panel="Output")
    color: Color = option(
        "--color", "WHEN", "Use colors: auto, always or never.", default=Color.AUTO, panel="Output"
    )

    @property
    def detail(self) -> Detail:
        """How much the report shows. Raises UsageError."""
        if self.quiet and self.verbose:
            raise UsageError("--quiet and --verbose exclude each other", remedy="give one of them")
        if self.quiet:
            return Detail.VERDICT
        return Detail(min(Detail.FACTS + self.verbose, Detail.ARGUMENTS))
