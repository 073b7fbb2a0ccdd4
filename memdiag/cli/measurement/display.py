"""What memdiag shows on the terminal while it measures: a live screen, or the status line."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from memdiag.cli.measurement.subject import Access, Running
from memdiag.cli.output.messages import STDERR, in_words, say
from memdiag.report.formats.status_line import LastRow, Status, wanted
from memdiag.screen.messages import Frame, WishKind, frame_every_s
from memdiag.screen.possible import why_not
from memdiag.values.measurements import Sample
from memdiag.values.sanitize import printable

if TYPE_CHECKING:
    from memdiag.cli.measurement.live_screen import LiveScreen

_STATUS_S = 0.5  # the status line changes at most this often


def is_live(asked: bool | None, *, by_default: bool) -> bool:
    """Return True if a live screen is wanted and possible; says why it is not."""
    if asked is False or not (asked or by_default):
        return False
    why = why_not(STDERR, os.environ)
    if why:
        say(f"no live screen: {why}")
    return not why


def display_of(access: Access, stack: ExitStack, *, is_live: bool) -> Display:
    """What shows a measurement. Call it before there is any thread. stack: closes it."""
    screen = _live_screen(access, stack) if is_live else None
    row = LastRow(STDERR, is_wanted=partial(wanted, STDERR, os.environ))
    stack.callback(row.release)
    return Display(row, screen)


def _live_screen(access: Access, stack: ExitStack) -> LiveScreen | None:
    """The live screen; None if its process cannot be made."""
    from memdiag.cli.measurement.live_screen import LiveScreen

    if access.is_ours and access.outlets is None:
        return None
    try:
        screen = LiveScreen(
            title=shlex.join(access.command), is_ours=access.is_ours, outlets=access.outlets
        )
    except OSError as error:  # no more processes or descriptors
        if access.outlets is not None:
            access.outlets.release()
        say(f"no live screen: {error.strerror}")
        return None
    stack.callback(screen.close)
    return screen


class Display:
    """The live screen; once it is left, and without one, the status line in the last row.

    cpu_s: what the process of the screen has used.
    """

    def __init__(self, row: LastRow, screen: LiveScreen | None) -> None:
        self._row, self._screen = row, screen
        self.cpu_s = 0.0

    @property
    def pids(self) -> frozenset[int]:
        """The pid of the process of the screen."""
        return frozenset() if self._screen is None else frozenset({self._screen.pid})

    def every_s(self, elapsed_s: float) -> float:
        """Seconds until the next call of `show` in a run that has lasted for so long."""
        return _STATUS_S if self._screen is None else frame_every_s(elapsed_s)

    def reserve(self) -> None:
        """Take the terminal, or its last row."""
        if self._screen is not None:
            with self._guarded():
                self._screen.reserve()
        else:
            self._row.reserve()

    def release(self) -> None:
        """Give the terminal back."""
        self._row.release()
        if self._screen is not None:
            with self._guarded():
                self._screen.release()
                self.cpu_s = self._screen.cpu_s

    def take(self, samples: Sequence[Sample]) -> None:
        """Samples for a screen, which shows them all."""
        if self._screen is not None:
            self._screen.take(samples)

    def show(self, status: Callable[[], Status], frame: Callable[[], Frame]) -> None:
        """Show what is new."""
        if self._screen is None:
            self._row.show(status)
        else:
            with self._guarded():
                self._screen.reserve()  # after a pause in the background
                self._screen.show(frame())

    def wishes(self) -> list[WishKind]:
        """What the user wants; a screen that was left or has failed is replaced here."""
        screen = self._screen
        if screen is None:
            return []
        wishes: list[WishKind] = []
        with self._guarded():
            wishes = [wish.kind for wish in screen.wishes()]
        if screen.failure:
            self.leave(f"the live screen has failed: {printable(screen.failure)}")
        elif WishKind.LEAVE in wishes:
            self.leave()
        return wishes

    def leave(self, note: str = "") -> None:
        """Go on with the status line. note: said before what the screen has kept."""
        if self._screen is not None:
            self._leave(note)
            self._row.reserve()

    def give_way(self, target: Running) -> bool:
        """Leave the terminal to a target that was stopped because it uses that, and continue it.

        False if the target was stopped for another reason, or there is no screen.
        """
        if self._screen is None or not self._screen.is_on or not target.uses_terminal():
            return False
        note = "the command uses the terminal: the live screen has ended"
        self._leave(note, then=target.resume)
        return True

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """A failure of the screen ends the screen, and nothing else."""
        try:
            yield
        except Exception as error:
            self.leave(f"the live screen has failed: {in_words(error)}")

    def _leave(self, note: str = "", then: Callable[[], None] = lambda: None) -> None:
        """Go on without a screen. note: see `LiveScreen.release`. then: called before its process
        ends: the kernel hangs up a stopped process group that loses its last parent.
        """
        screen, self._screen = self._screen, None
        if screen is not None:
            screen.release(note)
            then()
            screen.close()
            self.cpu_s = screen.cpu_s
