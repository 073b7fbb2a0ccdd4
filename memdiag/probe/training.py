"""What the hooks in torch see, made into steps and phases. Pure but for the listener: no torch.

Phases: "init" until data or a backward pass come, "train", "eval", "checkpoint". Where iterations
are long enough to look inside, "data" while a batch is fetched, "train/forward", "train/backward"
and "train/optimizer" in place of "train". The program's own tags win over all of these.
"""

from __future__ import annotations

from _thread import get_ident
from time import monotonic

from .iterations import Iterations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from .session import Session

INIT, DATA, EVAL, CHECKPOINT, TRAIN = "init", "data", "eval", "checkpoint", "train"
FORWARD, BACKWARD, OPTIMIZER = "train/forward", "train/backward", "train/optimizer"
# The five boundaries inside an iteration take some 200 us, with what they need no longer in the
# caches: told where that is little of it. Chosen.
DETAILED_FROM_S = 0.15
# How quickly the mean time of an iteration follows: over about the last eight.
_SMOOTHING = 1 / 8


class Training:
    """Listens to one process's training. Every method is called from hooks, and may raise.

    While `pulse.sole` names an optimizer nothing has to be called but `sole_stepped`, with the
    step that reaches `pulse.look_at`.
    """

    def __init__(self, listener: Session) -> None:
        self._listener = listener
        self.pulse = listener.pulse
        self.pulse.follow(None)
        self.iterations = Iterations()
        self._thread = 0
        self._phase = ""
        self._base = INIT  # what the phase is when nothing more special goes on
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
        """Say nothing any more: somebody who knows better tells it."""
        self._is_silent = True
        self.pulse.follow(None)

    def forked(self) -> None:
        """In a forked child: it starts from nothing."""
        self.__init__(self._listener)  # type: ignore[misc]

    # -- what happened -----------------------------------------------------------------------

    def optimizer_made(self, key: Hashable) -> None:
        """An optimizer was created."""
        self.pulse.follow(None)
        self.iterations.optimizer_made(key)

    def optimizer_gone(self, key: Hashable) -> None:
        """An optimizer was destroyed."""
        self.pulse.follow(None)
        self.iterations.optimizer_gone(key)

    def optimizer_begins(self) -> None:
        """An optimizer is about to step."""
        if self._backward_depth == 0:
            self._trains(OPTIMIZER)

    def optimizer_ended(self, key: Hashable) -> None:
        """An optimizer has stepped, or would have but for a gradient that overflowed."""
        ended = self.iterations.optimizer_stepped(key)
        if ended > 0:
            self._ended(ended)

    def backward_begins(self) -> None:
        """A backward pass begins: what was taken for an evaluation until now is none."""
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
        """The model as a whole was put into evaluation mode; `still` tells if it is in it.

        Before anything was trained that means little: models are loaded in that mode.
        """
        self._evaluated = still
        self.pulse.follow(None)
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

        begins: the data whose pass begins with this batch, None within a pass and without one.
        """
        if begins is not None and self._base == TRAIN:
            self._pass_begins(begins)
        elif begins is not None and self._base == EVAL:
            self._pending = begins  # some fetch ahead, while the model is still evaluated
        if not got_one:
            self._pending = None
        if self._base != EVAL:
            self._in_training(FORWARD)
        ended = self.iterations.batch_fetched() if got_one else 0
        if ended > 0:
            self._ended(ended)

    def _trains(self, part: str) -> None:
        """The model is trained, whatever it was taken for until now."""
        self._thread = get_ident()
        self._base = TRAIN
        if self._pending is not None:
            data, self._pending = self._pending, None
            self._pass_begins(data)
        if self._detailed or self._phase != TRAIN:
            self._in_training(part)

    def _pass_begins(self, data: Hashable) -> None:
        """Several data sets may be gone through side by side: the one with most passes counts."""
        passes = self._passes[data] = self._passes.get(data, 0) + 1
        if passes > self._epoch and not self._is_silent:
            self._epoch = passes
            self._listener.auto_epoch(passes)

    def checkpoint_begins(self) -> str:
        """Something is about to be saved. Returns what `checkpoint_ended` wants."""
        before = self._phase
        self._go_to(CHECKPOINT)
        return before

    def checkpoint_ended(self, before: str) -> None:
        """It was saved."""
        self._go_to(before)

    # -- how ---------------------------------------------------------------------------------

    def _ended(self, iterations: int) -> None:
        if self._is_silent:
            return
        if self.pulse.by_loop:
            self.pulse.begin()
        self.pulse.reached += iterations
        self._tell(monotonic())
        if self._detailed and self._base == TRAIN and self._backward_depth == 0:
            self._in_training(FORWARD)
        elif self._phase == TRAIN and self._base == TRAIN and self._pending is None:
            if self._evaluated is not None and not self._evaluated():
                self._evaluated = None
            self.pulse.follow(None if self._evaluated is not None else self.iterations.sole())

    def sole_stepped(self, now_s: float) -> None:
        """The sole optimizer has made a step, and it is time to look at the clock."""
        pulse = self.pulse
        pulse.reached += 1
        if now_s >= pulse.due_s:
            self._tell(now_s)
            now_s = monotonic()  # to measure takes as long as some steps do
        pulse.wait(now_s, self._mean_s)

    def _tell(self, now_s: float) -> None:
        """What was reached is due to be told."""
        step = self.pulse.reached
        self._listener.auto_step(step, now_s)
        if self._last_s:
            took_s = (now_s - self._last_s) / (step - self._last_step)
            follows = 1 - (1 - _SMOOTHING) ** (step - self._last_step)
            self._mean_s += follows * (took_s - self._mean_s)
        self._last_s, self._last_step = now_s, step
        self._detailed = self._mean_s >= DETAILED_FROM_S
        if self._detailed:
            self.pulse.follow(None)

    def _in_training(self, part: str) -> None:
        self._go_to(part if self._detailed and self._base == TRAIN else self._base)

    def _go_to(self, phase: str) -> None:
        if self._phase == phase or (self._thread and self._thread != get_ident()):
            return  # threads that do not train have no say
        if self._is_silent:
            return
        self.pulse.follow(None)
        self._phase = phase
        self._listener.auto_phase(phase)
