"""What the hooks look at in every step.

A step of a training pushes everything else out of the processor's caches, so the least that a step
can cost is to touch little: most steps look at this one small object, and do no more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable


class Pulse:
    """How far the training is by what the hooks see, and when the next step is to be told.

    sole: the optimizer whose steps are the iterations, while nothing else has to be followed: one
    optimizer, the phase "train", iterations too short to look inside. None otherwise. reached:
    iterations so far. due_s: the next step that ends at this moment or later (on the monotonic
    clock) is measured; what was reached before is told with the next record, whatever that is.
    """

    __slots__ = ("due_s", "reached", "sole")

    def __init__(self) -> None:
        self.forked()

    def forked(self) -> None:
        """In a forked child: it starts from nothing."""
        self.sole: Hashable = None
        self.reached = 0
        self.due_s = 0.0
