"""What looks for tags in a log during one measurement, from the first process to the last line."""

from __future__ import annotations

import signal
from types import TracebackType

from memdiag.capture.launch.output_tee import Outlets
from memdiag.capture.launch.signals import Mailbox
from memdiag.capture.logtags.patterns import TagRequest
from memdiag.capture.logtags.tagger import LogTags
from memdiag.cli.output.conclude import say
from memdiag.errors import CannotMeasure


class Listening:
    """Enter it before there is any thread. `outlets`, `log`: None where nothing was asked for."""

    def __init__(self, request: TagRequest | None, *, follows: bool = False) -> None:
        """follows: the target runs already, and its log's last lines tell where it is."""
        self._request = request
        self._follows = follows
        self.outlets: Outlets | None = None
        self.log: LogTags | None = None

    def __enter__(self) -> Listening:
        if self._request is None:
            return self
        try:
            if self._request.file is None:
                self.outlets = Outlets()
            copies = self.outlets.copies if self.outlets is not None else ()
            self.log = LogTags(self._request, copies=copies, from_tail=self._follows)
        except OSError as error:  # no more descriptors, processes or pseudo-terminals
            if self.outlets is not None:
                raise CannotMeasure(f"the output cannot be read: {error.strerror}") from error
            say(f"no tags will be read: {error.strerror}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self.outlets is not None:
            self.outlets.close()
        if self.log is not None:
            self.log.close()

    @property
    def pids(self) -> frozenset[int]:
        """The processes that are memdiag's own."""
        taggers = {self.log.pid} if self.log is not None else set()
        return frozenset(taggers | (self.outlets.pids if self.outlets is not None else set()))

    @property
    def streams(self) -> dict[int, int]:
        """The target's descriptors, as for `capture.target.start`."""
        return self.outlets.streams if self.outlets is not None else {}

    def started(self) -> None:
        """The target runs."""
        if self.outlets is not None:
            self.outlets.started()

    def finish(self, mailbox: Mailbox | None = None) -> None:
        """The target has ended: see its last bytes off, unless a Ctrl-C cuts that short."""
        if self.outlets is not None and mailbox is not None:
            self.outlets.drain(lambda: not _interrupted(mailbox))
        if self.log is not None:
            self.log.finish()


def _interrupted(mailbox: Mailbox) -> bool:
    return any(letter.number == signal.SIGINT for letter in mailbox.wait(0.0))
