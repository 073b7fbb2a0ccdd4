"""Puts the probe to work in this process: called once per interpreter, before the program."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from time import monotonic

from . import allocators
from .heartbeat import Heartbeat
from .imports import Finder
from .roles import at_end_of_worker, when_child_of_multiprocessing
from .session import Session
from .watcher import watcher_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .census import Census
    from .fits import Fits
    from .hooks import Hooks
    from .libraries import Libraries
    from .loop_steps import LoopSteps
    from .training import Training
    from .watcher import Watcher

# `memdiag.tags` looks for an attribute `listener` of a module of this name.
PACKAGE = "_memdiag_probe"
# A framework that was imported is waited for so long before the iterations of loops are taken for
# steps: what comes before a training is none of it. Chosen.
_FRAMEWORK_S = 30.0
# What a framework has only once its import is complete.
_COMPLETE = {
    "torch": "Tensor",
    "jax": "live_arrays",
    "tensorflow": "config",
    "keras": "callbacks",
    "numpy": "ndarray",
    "tqdm": "trange",
    "sklearn": "clone",
    "gymnasium": "wrappers",
}


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
    atexit.register(session.last_words)
    awaited: dict[str, Callable[[Any], None]] = {}
    for name, loaded in (
        ("torch", probe.torch_loaded),
        ("jax", probe.jax_loaded),
        ("tensorflow", probe.tensorflow_loaded),
        ("keras", probe.keras_loaded),
        ("numpy", probe.numpy_loaded),
        ("tqdm", lambda module: probe.library_loaded("hook_tqdm", module)),
        ("sklearn", lambda module: probe.library_loaded("hook_sklearn", module)),
        ("gymnasium", lambda module: probe.library_loaded("hook_gymnasium", module)),
    ):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, _COMPLETE[name]):
            loaded(module)
        else:
            awaited[name] = loaded
    finder: Any = Finder(awaited)
    sys.meta_path.insert(0, finder)
    return probe


class Probe:
    """What happens in the process, passed on to the parts that care. No method raises."""

    def __init__(self, session: Session, watcher: Watcher | None) -> None:
        """watcher: leave when it does."""
        self._session = session
        self._watcher = watcher
        self._census: Census | None = None
        self._training: Training | None = None
        self._fits: Fits | None = None
        self._hooks: Hooks | None = None
        self._loops: LoopSteps | None = None
        self._libraries: Libraries | None = None
        self._began_s = monotonic()
        self._may_tell_until_s = 0.0
        self._heartbeat = Heartbeat(self._beat)
        self._paused = self._left = False
        # What computes is worth to be measured without a framework, and what one was let into.
        self._measures = watcher is not None
        self._steps_seen = (0, 0)
        self._then: Callable[[], None] | None = None
        if watcher is not None:
            session.after_step = self._tick
            session.beat()  # what that imports is imported in the main thread, while nobody forks
            self._count_loops()
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
        atexit.unregister(self._session.last_words)
        self._session.close()
        self._heartbeat.stop()
        if self._loops is not None:
            self._loops.stop()
        if self._libraries is not None:
            self._libraries.remove()
        self._watcher = self._census = self._training = None
        for finder in [one for one in sys.meta_path if isinstance(one, Finder)]:
            finder.leave()
        if self._hooks is not None:
            self._hooks.remove()
        if self._fits is not None:
            self._fits.remove()
        if self._go_on in gc.callbacks:
            gc.callbacks.remove(self._go_on)
        if self._then is not None:
            self._then()

    def _tick(self) -> None:
        """After each step."""
        if self._paused:
            self._go_on("", {})
        if self._watcher is not None and self._watcher.gone():
            self.leave()
        elif self._census is not None:
            self._census.tick(at_step=True)

    def _beat(self) -> None:
        """Once a second: what the steps would bring, where there are none."""
        if self._watcher is not None and self._watcher.gone():
            self.leave()
            return
        session = self._session
        session.learn_role()
        session.learn_ranks()
        session.catch_up()
        session.look_at_clock()
        if self._loops is not None:
            self._loops.look()
        if session.steps_told == self._steps_seen and self._measures:
            session.beat()
            if self._census is not None:
                self._census.tick()
        self._steps_seen = session.steps_told

    def _begin_to_measure(self) -> None:
        self._measures = True
        self._count_loops()
        self._heartbeat.start()

    def _count_loops(self) -> None:
        """Have iterations of loops be the steps where nobody tells any."""
        try:
            from .loop_steps import LoopSteps, wanted

            if self._loops is None and not self._left and wanted():
                self._loops = LoopSteps(self._session, self._began_s, self._waits)
                self._loops.start()
                self._session.after_step = self._tick
        except Exception:
            return

    def _waits(self, now_s: float) -> bool:
        """Return True if a framework that was loaded may still begin to tell steps."""
        training = self._training
        return now_s < self._may_tell_until_s or (
            training is not None and training.iterations.began
        )

    def torch_loaded(self, torch: Any) -> None:
        """The program has imported torch to the end."""
        parts: dict[str, Callable[[Any], None]] = {
            "step": self._follow_training,
            "tensors": self._count_tensors,
            "vram_allocated_bytes": self._watch_allocators,
        }
        for metric, begin in parts.items():  # what one of them lacks is no loss to the others
            try:
                begin(torch)
            except Exception:
                self._session.note("this version of torch does not let itself be asked", metric)
        self._session.learn_ranks()

    def _follow_training(self, torch: Any) -> None:
        from .hooks import Hooks
        from .training import Training

        self._training = Training(self._session)
        self._may_tell_until_s = monotonic() + _FRAMEWORK_S
        self._hooks = Hooks(torch, self._training)
        for part in self._hooks.install():
            self._session.note(f"this version of torch has no place for the {part} hook", "step")

    def _count_tensors(self, torch: Any) -> None:
        from .census import Census

        self._census = Census(self._session, torch)
        self._session.after_step = self._tick
        self._begin_to_measure()

    def _watch_allocators(self, torch: Any) -> None:
        known = self._session.gauges.allocators
        for name, backend in (("vram", "cuda"), ("xpu", "xpu")):
            module = getattr(torch, backend, None)
            if hasattr(module, "memory_stats_as_nested_dict"):
                known.add(name, allocators.Caching(module))
        mps, census = getattr(torch, "mps", None), self._census
        if census is not None and hasattr(mps, "current_allocated_memory"):
            known.add("mps", allocators.metal(mps, lambda: census.has_seen("mps")))
        self._begin_to_measure()

    def jax_loaded(self, jax: Any) -> None:
        """The program has imported JAX to the end."""
        try:
            self._session.gauges.allocators.add("jax", allocators.jax(jax))
            self._begin_to_measure()
        except Exception:
            return

    def tensorflow_loaded(self, tensorflow: Any) -> None:
        """The program has imported TensorFlow to the end."""
        try:
            self._session.gauges.allocators.add("tensorflow", allocators.tensorflow(tensorflow))
            self._begin_to_measure()
        except Exception:
            return

    def keras_loaded(self, keras: Any) -> None:
        """The program has imported keras to the end."""
        try:
            from .fits import Fits

            self._may_tell_until_s = monotonic() + _FRAMEWORK_S
            self._fits = Fits(self._session, self._fit_began)
            self._fits.install(keras)
        except Exception:
            self._session.note("this version of keras has no place for the callback hook")

    def numpy_loaded(self, _: Any) -> None:
        """The program has imported numpy to the end: it may train without any framework."""
        try:
            self._begin_to_measure()
        except Exception:
            return

    def library_loaded(self, hook: str, module: Any) -> None:
        """The program has imported a library whose iterations may be its steps."""
        try:
            self._begin_to_measure()
            if self._loops is None:
                return
            if self._libraries is None:
                from .libraries import Libraries

                self._libraries = Libraries(self._loops)
            getattr(self._libraries, hook)(module)
        except Exception:
            return  # a version without a place for it

    def _fit_began(self) -> None:
        """Keras may train with torch, whose hooks would count the same once more."""
        if self._training is not None:
            self._training.silence()

    def before_fork(self) -> None:
        """In the parent, before each fork."""
        try:
            self._paused = self._heartbeat.before_fork() or self._paused
        except Exception:
            return

    def after_fork_in_parent(self) -> None:
        """In the parent, after each fork.

        Some versions of Python count the threads, for their warning, only after this: so the
        thread comes back with the next step, or the next time that the collector runs.
        """
        try:
            if self._paused and self._go_on not in gc.callbacks:
                gc.callbacks.append(self._go_on)
            self._session.measure_next()
        except Exception:
            return

    def _go_on(self, when: str, info: dict[str, int]) -> None:
        """Start the thread again that a fork has ended."""
        try:
            if self._paused:
                self._paused = False
                self._heartbeat.start()
        except Exception:
            return

    def after_fork_in_child(self) -> None:
        """In the child, after each fork."""
        try:
            self._paused = False
            if self._left:
                return
            self._heartbeat.after_fork_in_child()
            if self._loops is not None:
                self._loops.forked()
            self._session.after_fork_in_child()
            if self._census is not None:
                self._census.after_fork_in_child()
            if self._training is not None:
                self._training.forked()
            if self._fits is not None:
                self._fits.forked()
            when_child_of_multiprocessing(self._is_worker)
        except Exception:
            return

    def _is_worker(self, role: str) -> None:
        try:
            self._session.say_role(role)
            at_end_of_worker(self._session.last_words)
            if self._measures:
                self._heartbeat.start()
        except Exception:
            return
