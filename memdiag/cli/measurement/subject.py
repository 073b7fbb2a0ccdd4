"""What is recorded: a command that memdiag starts, or a running process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memdiag.capture.launch.output_tee import Outlets
from memdiag.capture.launch.signals import Letter
from memdiag.capture.logtags.patterns import TagRequest
from memdiag.capture.logtags.tagger import LogTags
from memdiag.capture.process.attach import Table
from memdiag.cli.output.messages import say
from memdiag.errors import CannotMeasure
from memdiag.values.measurements import Ending

if TYPE_CHECKING:
    from memdiag.cli.measurement.loop import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the target is measured.

    command, environ: the target's. table: closed after the measurement.
    directory: its channel, None if it has none. owners: the users whose rings in it count, None for
    our own only. log: where tags are looked for, None for nowhere.
    adopter, strangers: see `ProcessTree`. is_ours: memdiag starts the target, so that every process
    in the channel belongs to it.
    """

    command: Sequence[str]
    environ: Mapping[str, str]
    table: Table
    directory: Path | None
    owners: Collection[int] | None = None
    log: LogTags | None = None
    adopter: int | None = None
    strangers: frozenset[int] = frozenset()
    is_ours: bool


class Running(Protocol):
    """The target while it runs (`memdiag.capture.launch.target.Launched`)."""

    @property
    def ending(self) -> Ending:
        """How the target ended, as far as that is known."""

    def handle(self, letters: Sequence[Letter], pids: Collection[int]) -> Sequence[str]:
        """Act on signals that arrived, and look at the target. Returns messages for the user."""

    def over(self) -> bool:
        """Return True if there is nothing to wait for any more."""

    def pause_wanted(self) -> bool:
        """Return True if the terminal has stopped the target: memdiag has to stop with it."""

    def pause(self) -> None:
        """Stop until continued."""

    def end(self, why: str, pids: Collection[int]) -> None:
        """Memdiag has what it was asked for. Called again and again until `over`."""


class Subject(ABC):
    """What is recorded. `record` calls its methods once each, in this order."""

    @abstractmethod
    def prepare(self, stack: ExitStack, *, is_shown: bool) -> Access:
        """Make everything ready that can fail, and fork helpers: there are no threads yet.

        stack: closes it. is_shown: there will be a status line.
        """

    @abstractmethod
    def start(self) -> tuple[int, Running]:
        """The target's pid, and the target, which runs from now on."""

    @abstractmethod
    def finish(self) -> None:
        """Take in what was sent at the very end, before the last look at the target."""

    def last_notes(self, measurement: Measurement) -> tuple[str, ...]:
        """Notes for the recording, once the target is over."""
        return ()


def tag_sources(
    request: TagRequest | None, stack: ExitStack, *, from_tail: bool = False
) -> tuple[Outlets | None, LogTags | None]:
    """What replaces the target's output, and what looks for tags; None for what is not needed.

    Call it before there is any thread. from_tail: the target runs already, and the last lines of
    its log show where it is.
    """
    if request is None:
        return None, None
    outlets = None
    try:
        outlets = Outlets() if request.file is None else None
        copies = outlets.copies if outlets is not None else ()
        log = LogTags(request, copies=copies, from_tail=from_tail)
    except OSError as error:  # no more descriptors, processes or pseudo-terminals
        if outlets is not None:
            outlets.close()
            raise CannotMeasure(f"the output cannot be read: {error.strerror}") from error
        say(f"no tags will be read: {error.strerror}")
        return None, None
    stack.enter_context(closing(log))
    if outlets is not None:
        stack.enter_context(closing(outlets))
    return outlets, log
