"""Puts the probe to work in this process: called once per interpreter, before the program."""

from __future__ import annotations

import os
import sys

from .imports import AfterImport
from .session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .census import Census
    from .training import Training

# `memdiag.tags` looks for an attribute `listener` of a module of this name.
PACKAGE = "_memdiag_probe"


def boot(directory: str) -> None:
    """Announce this process in the channel `directory`, and listen to its tags and to torch."""
    package = sys.modules[PACKAGE]
    session = Session(directory)
    session.announce()
    package.listener = session  # type: ignore[attr-defined]
    probe = Probe(session)
    os.register_at_fork(
        before=probe.before_fork,
        after_in_parent=probe.after_fork_in_parent,
        after_in_child=probe.after_fork_in_child,
    )
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor"):
        probe.torch_loaded(torch)
    else:
        sys.meta_path.insert(0, AfterImport("torch", probe.torch_loaded))


class Probe:
    """What happens in the process, passed on to the parts that care. No method raises."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._census: Census | None = None
        self._training: Training | None = None

    def torch_loaded(self, torch: Any) -> None:
        """The program has imported torch to the end."""
        parts: dict[str, Callable[[Any], None]] = {
            "vram_allocated_bytes": self._session.watch_vram,
            "step": self._follow_training,
            "tensors": self._count_tensors,
        }
        for metric, begin in parts.items():  # what one of them lacks is no loss to the others
            try:
                begin(torch)
            except Exception:
                self._session.note("this version of torch does not let itself be asked", metric)
        self._session.say_ranks()

    def _follow_training(self, torch: Any) -> None:
        from .hooks import Hooks
        from .training import Training

        self._training = Training(self._session)
        for part in Hooks(torch, self._training).install():
            self._session.note(f"this version of torch has no place for the {part} hook", "step")

    def _count_tensors(self, torch: Any) -> None:
        from .census import Census

        self._census = Census(self._session, torch)
        self._session.after_step = self._census.tick
        self._census.start_thread()

    def before_fork(self) -> None:
        """In the parent, before each fork."""
        try:
            if self._census is not None:
                self._census.before_fork()
        except Exception:
            return

    def after_fork_in_parent(self) -> None:
        """In the parent, after each fork."""
        try:
            if self._census is not None:
                self._census.after_fork_in_parent()
        except Exception:
            return

    def after_fork_in_child(self) -> None:
        """In the child, after each fork."""
        try:
            from .roles import when_child_of_multiprocessing

            self._session.after_fork_in_child()
            if self._census is not None:
                self._census.after_fork_in_child()
            if self._training is not None:
                self._training.forked()
            when_child_of_multiprocessing(self, self._is_worker)
        except Exception:
            return

    def _is_worker(self, role: str) -> None:
        try:
            self._session.say_role(role)
            if self._census is not None:
                self._census.start_thread()
        except Exception:
            return
