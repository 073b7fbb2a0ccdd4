"""Steps, epochs and phases of Keras: told by the list of callbacks that every `fit` goes through,
with whatever backend.

Counting goes on from one `fit` to the next. With several steps in one execution Keras tells the
last one alone: the others count as well.
"""

from __future__ import annotations

from functools import wraps
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .session import Session

TRAIN, EVAL, PREDICT = "train", "eval", "predict"


class Fits:
    """Listens to one process's fits. Every method is called from hooks, and may raise."""

    def __init__(self, listener: Session, began: Callable[[], None]) -> None:
        """began: called when a fit begins, for those who would count the same once more."""
        self._listener = listener
        self._began = began
        self._undo: list[Callable[[], None]] = []
        self._start_anew()

    def _start_anew(self) -> None:
        self._step = 0
        self._epochs = 0
        self._batch = -1
        self._trains = False

    def forked(self) -> None:
        """In a forked child: it starts from nothing."""
        self._start_anew()

    def install(self, keras: Any) -> None:
        """Set all hooks. Raises where this Keras has no place for them."""
        callbacks = keras.callbacks.CallbackList
        for name in (
            "on_train_begin",
            "on_train_end",
            "on_epoch_begin",
            "on_train_batch_end",
            "on_test_begin",
            "on_test_end",
            "on_predict_begin",
            "on_predict_end",
        ):
            self._undo.append(_before(callbacks, name, getattr(self, name)))

    def remove(self) -> None:
        """Leave keras as it was; what somebody has wrapped since stays, and tells nobody."""
        for undo in self._undo:
            try:
                undo()
            except Exception:
                continue

    def on_train_begin(self, *_: Any) -> None:
        """A fit begins."""
        self._trains = True
        self._began()
        self._listener.auto_phase(TRAIN)

    def on_train_end(self, *_: Any) -> None:
        """It has ended."""
        self._trains = False
        self._listener.auto_phase("")

    def on_epoch_begin(self, *_: Any) -> None:
        """A pass over the data begins; Keras counts from 0 again in each fit."""
        self._epochs += 1
        self._batch = -1
        self._listener.auto_epoch(self._epochs)

    def on_train_batch_end(self, batch: int, *_: Any) -> None:
        """Batch number `batch` of the epoch, from 0, has been trained on, and those before it."""
        self._step += max(1, int(batch) - self._batch)
        self._batch = int(batch)
        self._listener.auto_step(self._step, monotonic())

    def on_test_begin(self, *_: Any) -> None:
        """An evaluation begins."""
        self._listener.auto_phase(EVAL)

    def on_predict_begin(self, *_: Any) -> None:
        """A prediction begins."""
        self._listener.auto_phase(PREDICT)

    def on_test_end(self, *_: Any) -> None:
        """It has ended."""
        self._listener.auto_phase(TRAIN if self._trains else "")

    on_predict_end = on_test_end


def _before(owner: Any, name: str, tell: Callable[..., None]) -> Callable[[], None]:
    """Have `tell` called with the arguments before each call of `owner.name`. Returns what takes
    that back, where nobody else has wrapped it since.
    """
    original = getattr(owner, name)

    @wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            tell(*args, *kwargs.values())
        except Exception:
            return original(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    def undo() -> None:
        if vars(owner).get(name) is wrapper:
            setattr(owner, name, original)

    setattr(owner, name, wrapper)
    return undo
