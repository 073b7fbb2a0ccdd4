"""What all destinations have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from memdiag.destinations.messages import End, Judgment, Row, Run


class Destination(ABC):
    """A tracker or monitoring system. Used in a process of its own, in one thread.

    Any method may raise anything and may take long: the run does not notice. `rows` is called again
    after it failed.
    """

    @abstractmethod
    def start(self, run: Run, say: Callable[[str], None]) -> None:
        """Begin, once. say: prints a line for the user, as where the run can be seen."""

    @abstractmethod
    def rows(self, rows: Sequence[Row]) -> None:
        """Send further rows, in the order of time."""

    @abstractmethod
    def judge(self, judgment: Judgment) -> None:
        """Send a verdict so far that differs from the last one."""

    @abstractmethod
    def finish(self, end: End | None) -> None:
        """Send what is left, and the verdict. end: None if memdiag ended without one."""


# What makes a destination: of the WHERE of `--to KIND:WHERE`, and the environment of the run.
Make = Callable[[str, Mapping[str, str]], Destination]
