"""The state that hooks check at every step.

A training step evicts everything else from the processor's caches, so a hook is cheap only if it
touches little memory: most steps check this one small object and do nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

# Check the clock at least once per this many steps, which may become slower. Heuristic.
_LONGEST = 64


class StepState:
    """How far the training is according to the hooks, and when the next step is measured.

    sole: the optimizer whose steps are the iterations, while nothing else has to be followed: one
        optimizer, the phase "train", iterations too short for phases within. None otherwise.
    reached: iterations so far.
    due_s: a step that ends at or after this moment (monotonic clock) is measured. Steps before it
        are recorded with the next record of any kind.
    check_clock_at: the iteration of `sole` that checks the clock again; those before only count.
    by_loop: `reached` counts iterations of a loop; no framework has reported any.
    """

    __slots__ = ("_on_change", "by_loop", "check_clock_at", "due_s", "reached", "sole")

    def __init__(self) -> None:
        self.sole: Hashable = None
        self._on_change: Callable[[bool], None] = _nothing
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Start from zero in a forked child."""
        self.follow(None)
        self.restart()
        self.measure_next()

    def restart(self) -> None:
        """Count from 1 again, for another source of steps."""
        self.reached = 0
        self.by_loop = False

    def on_scope_change(self, on_change: Callable[[bool], None]) -> None:
        """Call `on_change` with True if everything is followed, False if only `sole` is."""
        self._on_change = on_change

    def follow(self, sole: Hashable) -> None:
        """Follow only the steps of `sole` from now on, or everything if it is None."""
        if sole != self.sole:
            self.sole = sole
            self._on_change(sole is None)

    def measure_next(self) -> None:
        """Measure the next step, and check all that is checked at such a step."""
        self.check_clock_at = 0
        self.due_s = 0.0

    def wait(self, now_s: float, step_s: float) -> None:
        """Set when to check the clock again, for steps that take `step_s`."""
        steps = (self.due_s - now_s) / step_s if step_s > 0 else 0.0
        self.check_clock_at = self.reached + max(1, int(min(steps, _LONGEST)))


def _nothing(_: bool) -> None:
    """Ignore a change of what is followed."""
