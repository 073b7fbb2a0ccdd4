"""What the hooks look at in every step.

A step of a training pushes everything else out of the processor's caches, so the least that a step
can cost is to touch little: most steps look at this one small object, and do no more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

# So many steps pass at most without a look at the clock: they may become slower. Chosen.
_LONGEST = 64


class Pulse:
    """How far the training is by what the hooks see, and when the next step is to be told.

    sole: the optimizer whose steps are the iterations, while nothing else has to be followed: one
    optimizer, the phase "train", iterations too short to look inside. None otherwise. reached:
    iterations so far. due_s: the next step that ends at this moment or later (on the monotonic
    clock) is measured; what was reached before is told with the next record, whatever that is.
    look_at: the iteration of `sole` that looks at the clock again; those before it only count.
    by_loop: what was reached are iterations of a loop, of which no framework has told.
    """

    __slots__ = ("_heed", "by_loop", "due_s", "look_at", "reached", "sole")

    def __init__(self) -> None:
        self.sole: Hashable = None
        self._heed: Callable[[bool], None] = _nothing
        self.forked()

    def forked(self) -> None:
        """In a forked child: it starts from nothing."""
        self.follow(None)
        self.begin()
        self.measure_next()

    def begin(self) -> None:
        """Who counts from now on begins at 1."""
        self.reached = 0
        self.by_loop = False

    def when_followed(self, heed: Callable[[bool], None]) -> None:
        """Have `heed` called with whether more than the steps of `sole` is listened to."""
        self._heed = heed

    def follow(self, sole: Hashable) -> None:
        """From now on only the steps of `sole` are listened to; None: everything is."""
        if sole != self.sole:
            self.sole = sole
            self._heed(sole is None)

    def measure_next(self) -> None:
        """The next step is measured, and all looked after that such a step does."""
        self.look_at = 0
        self.due_s = 0.0

    def wait(self, now_s: float, step_s: float) -> None:
        """Look at the clock again where the next step is due if steps take so long, or sooner."""
        steps = (self.due_s - now_s) / step_s if step_s > 0 else 0.0
        self.look_at = self.reached + max(1, int(min(steps, _LONGEST)))


def _nothing(_: bool) -> None:
    return None
