"""Puts the probe to work in this process: called once per interpreter, before the program."""

from __future__ import annotations

import os
import sys

from .heartbeat import Heartbeat
from .imports import AfterImport
from .session import Session
from .watcher import watcher_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .census import Census
    from .hooks import Hooks
    from .training import Training
    from .watcher import Watcher

# `memdiag.tags` looks for an attribute `listener` of a module of this name.
PACKAGE = "_memdiag_probe"


def boot(directory: str) -> Probe:
    """Announce this process in the channel `directory`, and listen to its tags and to torch."""
    package = sys.modules[PACKAGE]
    session = Session(directory)
    session.announce()
    package.listener = session  # type: ignore[attr-defined]
    probe = Probe(session, watcher_of(directory))
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
    return probe


class Probe:
    """What happens in the process, passed on to the parts that care. No method raises."""

    def __init__(self, session: Session, watcher: Watcher | None) -> None:
        """watcher: leave when it does."""
        self._session = session
        self._watcher = watcher
        self._census: Census | None = None
        self._training: Training | None = None
        self._hooks: Hooks | None = None
        self._heartbeat = Heartbeat(self._beat)
        self._paused = self._left = False
        self._then: Callable[[], None] | None = None
        if watcher is not None:
            session.after_step = self._tick
            self._heartbeat.start()

    def when_gone(self, then: Callable[[], None]) -> None:
        """Have `then` called when the probe leaves."""
        self._then = then

    def leave(self) -> None:
        """Let go of everything: the program goes on as if there had never been a probe."""
        self._left = True
        package = sys.modules.get(PACKAGE)
        if package is not None and getattr(package, "listener", None) is self._session:
            package.listener = None  # type: ignore[attr-defined]
        self._session.close()
        self._heartbeat.stop()
        self._watcher = self._census = self._training = None
        for finder in [one for one in sys.meta_path if isinstance(one, AfterImport)]:
            finder.leave()
        if self._hooks is not None:
            self._hooks.remove()
        if self._then is not None:
            self._then()

    def _tick(self) -> None:
        """After each step."""
        if self._watcher is not None and self._watcher.gone():
            self.leave()
        elif self._census is not None:
            self._census.tick()

    def _beat(self) -> None:
        """Once a second."""
        if self._watcher is not None and self._watcher.gone():
            self.leave()
        elif self._census is not None:
            self._census.beat()

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
        self._hooks = Hooks(torch, self._training)
        for part in self._hooks.install():
            self._session.note(f"this version of torch has no place for the {part} hook", "step")

    def _count_tensors(self, torch: Any) -> None:
        from .census import Census

        self._census = Census(self._session, torch)
        self._session.after_step = self._tick
        self._heartbeat.start()

    def before_fork(self) -> None:
        """In the parent, before each fork."""
        try:
            self._paused = self._heartbeat.before_fork()
        except Exception:
            return

    def after_fork_in_parent(self) -> None:
        """In the parent, after each fork."""
        try:
            if self._paused:
                self._heartbeat.start()
        except Exception:
            return

    def after_fork_in_child(self) -> None:
        """In the child, after each fork."""
        try:
            if self._left:
                return
            from .roles import when_child_of_multiprocessing

            self._heartbeat.after_fork_in_child()
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
            if self._census is not None or self._watcher is not None:
                self._heartbeat.start()
        except Exception:
            return
