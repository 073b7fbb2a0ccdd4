"""Steps, epochs and phases of Keras, from the callback list that every `fit` uses on any backend.

Counting continues from one `fit` to the next. With several steps per execution Keras reports only
the last one; the others are counted as well.
"""

from __future__ import annotations

from time import monotonic

from .wrap import undo_all, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .session import Session

TRAIN, EVAL, PREDICT = "train", "eval", "predict"
_EVENTS = (
    "on_train_begin",
    "on_train_end",
    "on_epoch_begin",
    "on_train_batch_end",
    "on_test_begin",
    "on_test_end",
    "on_predict_begin",
    "on_predict_end",
)


class KerasFits:
    """Follows the fits of one process. Each `on_...` method may raise."""

    def __init__(self, listener: Session, began: Callable[[], None]) -> None:
        """began: called when a fit begins, for hooks that would count the same steps again."""
        self._listener = listener
        self._began = began
        self._undo: list[Callable[[], None]] = []
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Start from zero in a forked child."""
        self._step = 0
        self._epochs = 0
        self._batch = -1
        self._trains = False

    def install(self, keras: Any) -> None:
        """Set all hooks. Raises if this version of Keras lacks the methods."""
        callbacks = keras.callbacks.CallbackList
        for name in _EVENTS:
            self._undo.append(wrap(callbacks, name, before=self._calls(getattr(self, name))))

    def remove(self) -> None:
        """Restore Keras. Methods that somebody has wrapped since stay, without effect."""
        undo_all(self._undo)

    @staticmethod
    def _calls(event: Callable[..., None]) -> Callable[[tuple[Any, ...], dict[str, Any]], None]:
        return lambda args, kwargs: event(*args[1:], *kwargs.values())

    def on_train_begin(self, *_: Any) -> None:
        """A fit begins."""
        self._trains = True
        self._began()
        self._listener.auto_phase(TRAIN)

    def on_train_end(self, *_: Any) -> None:
        """A fit has ended."""
        self._trains = False
        self._listener.auto_phase("")

    def on_epoch_begin(self, *_: Any) -> None:
        """A pass over the data begins. Keras counts from 0 again in each fit."""
        self._epochs += 1
        self._batch = -1
        self._listener.auto_epoch(self._epochs)

    def on_train_batch_end(self, batch: int, *_: Any) -> None:
        """Training on batch `batch` of the epoch (from 0), and those before it, has ended."""
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
        """An evaluation or a prediction has ended."""
        self._listener.auto_phase(TRAIN if self._trains else "")

    on_predict_end = on_test_end
