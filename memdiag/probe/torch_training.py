"""Turns the events of the hooks in torch into steps and phases. Does not use torch.

Phases: "init" until the first data or backward pass, "train", "eval", "checkpoint". If iterations
are long enough, also "data" while a batch is fetched, and "train/forward", "train/backward" and
"train/optimizer" instead of "train". The program's own tags have priority.
"""

from __future__ import annotations

from _thread import get_ident
from time import monotonic

from .step_counter import StepCounter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from .session import Session

INIT, DATA, EVAL, CHECKPOINT, TRAIN = "init", "data", "eval", "checkpoint", "train"
FORWARD, BACKWARD, OPTIMIZER = "train/forward", "train/backward", "train/optimizer"
# The five boundaries within an iteration take some 200 us with cold caches: they are recorded if
# that is a small share of it. Heuristic.
DETAILED_FROM_S = 0.15
# Exponential smoothing of the time of an iteration, over about the last eight.
_SMOOTHING = 1 / 8


class TorchTraining:
    """Follows the training of one process. Every method is called from hooks, and may raise.

    While `step_state.sole` names an optimizer, only `sole_stepped` has to be called, with the step
    that reaches `step_state.check_clock_at`.
    """

    def __init__(self, listener: Session) -> None:
        self._listener = listener
        self.step_state = listener.step_state
        self.step_state.follow(None)
        self.iterations = StepCounter()
        self._thread = 0
        self._phase = ""
        self._base = INIT  # the phase outside of more special ones
        self._detailed = False
        self._last_s = 0.0
        self._last_step = 0
        self._mean_s = 0.0
        self._evaluated: Callable[[], bool] | None = None
        self._backward_depth = 0
        self._is_silent = False
        self._pending: Hashable = None
        self._passes: dict[Hashable, int] = {}
        self._epoch = 0
        self._go_to(INIT)

    def silence(self) -> None:
        """Record nothing more, because a better source exists."""
        self._is_silent = True
        self.step_state.follow(None)

    def after_fork_in_child(self) -> None:
        """Start from zero in a forked child."""
        self.__init__(self._listener)  # type: ignore[misc]

    # -- what happened -----------------------------------------------------------------------

    def optimizer_made(self, key: Hashable) -> None:
        """An optimizer was created."""
        self.step_state.follow(None)
        self.iterations.optimizer_made(key)

    def optimizer_gone(self, key: Hashable) -> None:
        """An optimizer was destroyed."""
        self.step_state.follow(None)
        self.iterations.optimizer_gone(key)

    def optimizer_begins(self) -> None:
        """An optimizer is about to step."""
        if self._backward_depth == 0:
            self._trains(OPTIMIZER)

    def optimizer_ended(self, key: Hashable) -> None:
        """An optimizer has stepped, or has skipped a step because a gradient overflowed."""
        ended = self.iterations.optimizer_stepped(key)
        if ended > 0:
            self._ended(ended)

    def backward_begins(self) -> None:
        """A backward pass begins, so this is not an evaluation."""
        self._backward_depth += 1
        if self._backward_depth == 1:
            self._trains(BACKWARD)

    def backward_ended(self) -> None:
        """A backward pass has ended, also by an error."""
        self._backward_depth -= 1
        if self._backward_depth == 0:
            if self._detailed:
                self._in_training(FORWARD)
            ended = self.iterations.backward_ended()
            if ended > 0:
                self._ended(ended)

    def evaluation_begins(self, still: Callable[[], bool]) -> None:
        """The model was put into evaluation mode; `still` reports if it is in that mode.

        Ignored before the training begins, because models are loaded in that mode.
        """
        self._evaluated = still
        self.step_state.follow(None)
        if self.iterations.began:
            self._base = EVAL
            self._go_to(EVAL)

    def fetch_begins(self) -> None:
        """A batch is about to be fetched."""
        if self._evaluated is not None and self._evaluated():
            self._base = EVAL
            self._go_to(EVAL)
        else:
            self._evaluated = None
            self._base = TRAIN if self.iterations.began else ""
            self._in_training(DATA)

    def fetch_ended(self, *, got_one: bool, begins: Hashable = None) -> None:
        """The fetch has ended, with a batch or with the end of the data.

        begins: the data set whose pass begins with this batch, None within a pass or at its end.
        """
        if begins is not None and self._base == TRAIN:
            self._pass_begins(begins)
        elif begins is not None and self._base == EVAL:
            self._pending = begins  # some loops fetch ahead, while the model is still evaluated
        if not got_one:
            self._pending = None
        if self._base != EVAL:
            self._in_training(FORWARD)
        ended = self.iterations.batch_fetched() if got_one else 0
        if ended > 0:
            self._ended(ended)

    def _trains(self, part: str) -> None:
        """The model is being trained, whatever the phase was."""
        self._thread = get_ident()
        self._base = TRAIN
        if self._pending is not None:
            data, self._pending = self._pending, None
            self._pass_begins(data)
        if self._detailed or self._phase != TRAIN:
            self._in_training(part)

    def _pass_begins(self, data: Hashable) -> None:
        """Count an epoch. Of several data sets in use, the one with most passes counts."""
        passes = self._passes[data] = self._passes.get(data, 0) + 1
        if passes > self._epoch and not self._is_silent:
            self._epoch = passes
            self._listener.auto_epoch(passes)

    def checkpoint_begins(self) -> str:
        """Something is about to be saved. Returns the argument for `checkpoint_ended`."""
        before = self._phase
        self._go_to(CHECKPOINT)
        return before

    def checkpoint_ended(self, before: str) -> None:
        """It was saved."""
        self._go_to(before)

    # -- recording -----------------------------------------------------------------------------

    def _ended(self, iterations: int) -> None:
        if self._is_silent:
            return
        if self.step_state.by_loop:
            self.step_state.restart()
        self.step_state.reached += iterations
        self._record(monotonic())
        if self._detailed and self._base == TRAIN and self._backward_depth == 0:
            self._in_training(FORWARD)
        elif self._phase == TRAIN and self._base == TRAIN and self._pending is None:
            if self._evaluated is not None and not self._evaluated():
                self._evaluated = None
            self.step_state.follow(None if self._evaluated is not None else self.iterations.sole())

    def sole_stepped(self, now_s: float) -> None:
        """The sole optimizer has made a step, and it is time to check the clock."""
        step_state = self.step_state
        step_state.reached += 1
        if now_s >= step_state.due_s:
            self._record(now_s)
            now_s = monotonic()  # measuring takes as long as some steps
        step_state.wait(now_s, self._mean_s)

    def _record(self, now_s: float) -> None:
        """Record the step that was reached."""
        step = self.step_state.reached
        self._listener.auto_step(step, now_s)
        if self._last_s:
            took_s = (now_s - self._last_s) / (step - self._last_step)
            follows = 1 - (1 - _SMOOTHING) ** (step - self._last_step)
            self._mean_s += follows * (took_s - self._mean_s)
        self._last_s, self._last_step = now_s, step
        self._detailed = self._mean_s >= DETAILED_FROM_S
        if self._detailed:
            self.step_state.follow(None)

    def _in_training(self, part: str) -> None:
        self._go_to(part if self._detailed and self._base == TRAIN else self._base)

    def _go_to(self, phase: str) -> None:
        if self._phase == phase or (self._thread and self._thread != get_ident()):
            return  # threads that do not train do not change the phase
        if self._is_silent:
            return
        self.step_state.follow(None)
        self._phase = phase
        self._listener.auto_phase(phase)
