"""What is recorded: a command that memdiag starts, or a running process."""

from __future__ import annotations

import signal
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
    outlets: what its output passes through, None if nobody reads it. adopter, strangers: see
    `ProcessTree`. is_ours: memdiag starts the target, so that every process
    in the channel belongs to it.
    """

    command: Sequence[str]
    environ: Mapping[str, str]
    table: Table
    directory: Path | None
    owners: Collection[int] | None = None
    log: LogTags | None = None
    outlets: Outlets | None = None
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

    def uses_terminal(self) -> bool:
        """Return True if the target was stopped because it uses the terminal of a screen."""

    def pause(self) -> None:
        """Stop until continued."""

    def resume(self) -> None:
        """Continue the target after such a stop, once it has the terminal."""

    def end(self, why: str, pids: Collection[int]) -> None:
        """Memdiag has what it was asked for. Called again and again until `over`."""

    def stop(self, why: str, pids: Collection[int]) -> None:
        """End the target itself, and `pids`. Called again and again until `over`."""

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to the main process. Returns False if it has ended, or may not be sent."""


class Subject(ABC):
    """What is recorded. `record` calls its methods once each, in this order.

    is_live_by_default: it is shown on a live screen without being asked.
    """

    is_live_by_default = False

    @abstractmethod
    def prepare(self, stack: ExitStack, *, is_shown: bool, is_live: bool) -> Access:
        """Make everything ready that can fail, and fork helpers: there are no threads yet.

        stack: closes it. is_shown: there will be a status line. is_live: there will be a screen
        before, which shows the output.
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
    request: TagRequest | None, stack: ExitStack, *, from_tail: bool = False, is_live: bool = False
) -> tuple[Outlets | None, LogTags | None]:
    """What replaces the target's output, and what looks for tags; None for what is not needed.

    Call it before there is any thread. from_tail: the target runs already, and the last lines of
    its log show where it is. is_live: a screen reads the output too, as the last of its readers.
    """
    in_output = request is not None and request.file is None
    outlets, log = None, None
    try:
        if is_live or in_output:
            readers = is_live + in_output
            outlets = Outlets(readers, is_held=is_live, only_terminals=not in_output)
        if request is not None:
            copies = outlets.copies() if outlets is not None and in_output else ()
            log = LogTags(request, copies=copies, from_tail=from_tail)
    except OSError as error:  # no more descriptors, processes or pseudo-terminals
        if outlets is not None:
            outlets.close()
            raise CannotMeasure(f"the output cannot be read: {error.strerror}") from error
        say(f"the output cannot be read: {error.strerror}")
        return None, None
    if log is not None:
        stack.enter_context(closing(log))
    if outlets is not None:
        stack.enter_context(closing(outlets))
    return outlets, log
