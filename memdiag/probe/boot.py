"""Starts the probe in this process: called once per interpreter, before the program."""

from __future__ import annotations

import atexit
import os
import sys
from time import monotonic, process_time

from . import framework_allocators
from .collector import CollectionCallback
from .guard import never_raises, ours
from .heartbeat import Heartbeat
from .import_hooks import ImportHook
from .multiprocessing_role import on_multiprocessing_child, on_worker_exit
from .pressure import LOOK_S, PressureCalls, registered
from .ring_format import INTERVENE_VARIABLE
from .session import Session
from .watcher_lock import find_watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .census_sampler import CensusSampler
    from .holder_sampler import HolderSampler
    from .interventions import Interventions
    from .libraries import Libraries
    from .loop_steps import LoopSteps
    from .tensor_sampler import TensorSampler
    from .torch_hooks import TorchHooks
    from .torch_training import TorchTraining
    from .watcher_lock import Watcher

# `memdiag.tags` looks for an attribute `listener` of a module of this name.
PACKAGE = "_memdiag_probe"
# For this long after the import of a framework, iterations of loops are not steps: what precedes a
# training is not part of it. Heuristic.
_FRAMEWORK_S = 30.0
# While the program imports its modules it is not measured yet, for at most this time: a program may
# run inside of an import. Heuristic.
_LONGEST_IMPORT_S = 20.0
# A process of this age that collects garbage computes, whatever it imports. So does one that
# memdiag or multiprocessing has started, if it has used this much CPU time by then, or more than a
# process that waits in the second after that. Shorter programs, and launchers that wait for others,
# are not measured. Heuristic.
_COMPUTES_AFTER_S, _COMPUTES_CPU_S, _WAITS_CPU_S, _WAITS_S = 2.0, 0.1, 0.001, 1.0
# An attribute that each framework has only once its import is complete.
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
    """Announce this process in the channel `directory`, and follow its tags and frameworks."""
    package = sys.modules[PACKAGE]
    session = Session(directory)
    session.announce()
    package.listener = session  # type: ignore[attr-defined]
    maker = os.path.basename(directory).partition("-")[0]  # noqa: PTH119
    is_first = maker in (str(os.getppid()), str(os.getpid()))
    # (It may compute without the libraries by which others are noticed, as may forked children.)
    may_work = is_first or session.is_spawned
    probe = Probe(session, find_watcher(directory), may_work=may_work)
    os.register_at_fork(
        before=probe.before_fork,
        after_in_parent=probe.after_fork_in_parent,
        after_in_child=probe.after_fork_in_child,
    )
    atexit.register(probe.at_exit)
    awaited: dict[str, Callable[[Any], None]] = {}
    for name, attribute in _COMPLETE.items():
        module, loaded = sys.modules.get(name), getattr(probe, f"{name}_loaded")
        if module is not None and hasattr(module, attribute):
            loaded(module)
        else:
            awaited[name] = loaded
    hook: Any = ImportHook(awaited)
    sys.meta_path.insert(0, hook)
    return probe


class Probe:
    """Passes what happens in the process on to the parts of the probe. No method raises."""

    def __init__(self, session: Session, watcher: Watcher | None, *, may_work: bool) -> None:
        """watcher: detach when it exits. may_work: memdiag has started this process, it is the one
        that has made the channel, or multiprocessing has spawned it."""
        self._session = session
        self._watcher = watcher
        self._tensor_sampler: TensorSampler | None = None
        self._holder_sampler: HolderSampler | None = None
        self._census_sampler: CensusSampler | None = None
        self._interventions: Interventions | None = None
        self._pressure: PressureCalls | None = None
        self._training: TorchTraining | None = None
        self._frameworks: list[Any] = []  # each has `remove` and `after_fork_in_child`
        self._hooks: TorchHooks | None = None
        self._loops: LoopSteps | None = None
        self._libraries: Libraries | None = None
        self._began_s = monotonic()
        self._framework_until_s = 0.0
        self._heartbeat = Heartbeat(self._beat)
        self._collections = CollectionCallback(self._collected)
        self._paused = self._detached = False
        self._await_work()
        # A process is measured once it computes (imports a framework, collects garbage after a
        # while, or has used the processor by then), or if memdiag attached.
        self._measures = watcher is not None
        self._steps_seen = (0, 0)
        # Until when the main thread may be importing the program's modules.
        self._may_import_until_s = monotonic() + _LONGEST_IMPORT_S
        self._beats = self._beats_in_imports = 0
        self._begins_with_imports = False
        self._on_detach: Callable[[], None] | None = None
        if watcher is not None:
            session.after_step = self._tick
            session.beat()  # do its imports in the main thread, while nothing forks
            self._count_loops()
            self._find_holders()
            self._heartbeat.start()
        else:
            self._collections.begin()
            if may_work:
                self._heartbeat.start(_COMPUTES_AFTER_S)
        session.follow_pressure = self._follow_pressure
        self._follow_pressure()

    def on_detach(self, then: Callable[[], None]) -> None:
        """Call `then` when the probe detaches."""
        self._on_detach = then

    def detach(self) -> None:
        """Undo everything: the program continues as if there had never been a probe."""
        self._detached = True
        package = sys.modules.get(PACKAGE)
        if package is not None and getattr(package, "listener", None) is self._session:
            package.listener = None  # type: ignore[attr-defined]
        atexit.unregister(self.at_exit)
        self._session.close()
        self._heartbeat.stop()
        imports = [one.detach for one in sys.meta_path if isinstance(one, ImportHook)]
        parts = (self._libraries, self._hooks, *self._frameworks)
        undo = [*imports, *(part.remove for part in parts if part is not None)]
        if self._loops is not None:
            undo.append(self._loops.stop)
        if self._census_sampler is not None:
            undo.append(self._census_sampler.stop)
        if self._holder_sampler is not None:
            undo.append(self._holder_sampler.close)
        if self._interventions is not None:
            undo.append(self._interventions.close)
        self._watcher = self._tensor_sampler = self._holder_sampler = self._training = None
        self._census_sampler = self._interventions = self._pressure = None
        for one in undo:  # a failure of one must not leave the others behind
            never_raises(one)()
        self._collections.remove()
        if self._on_detach is not None:
            self._on_detach()

    @never_raises
    def at_exit(self) -> None:
        """The program has ended; Python is about to free what it holds."""
        self._heartbeat.end()
        if self._census_sampler is not None:
            never_raises(self._census_sampler.before_exit)()
        if self._holder_sampler is not None:
            never_raises(self._holder_sampler.at_exit)()
        if self._interventions is not None:
            self._interventions.at_exit()
        self._session.record_exit()

    def _tick(self) -> None:
        """Called after each step."""
        if self._paused:
            self._start_thread()
        if self._watcher is not None and self._watcher.is_gone():
            self.detach()
            return
        if self._pressure is not None:  # first: the program may be about to run out of memory
            self._pressure.tick()
        if self._tensor_sampler is not None:
            self._tensor_sampler.tick(at_step=True)
        if self._holder_sampler is not None:
            self._holder_sampler.tick(at_step=True)
        if self._census_sampler is not None:
            self._census_sampler.tick()
        if self._interventions is not None:
            self._interventions.tick()

    def _beat(self) -> None:
        """Called once a second. Measures if no step did."""
        if self._watcher is not None and self._watcher.is_gone():
            self.detach()
            return
        if not (self._measures or self._computes()):
            return
        if not self._measures:
            self._measures = True
            self._collections.end()
        session = self._session
        self._count_loops()
        self._find_holders()
        session.update_role()
        session.update_ranks()
        session.catch_up()
        session.check_clock_next()
        if self._loops is not None:
            self._loops.update()
        is_idle = session.steps_recorded == self._steps_seen
        is_importing = self._is_importing()
        self._follow_imports(is_importing)
        is_idle = is_idle and self._measures and not is_importing
        if is_idle:
            session.beat()
            if self._tensor_sampler is not None:
                self._tensor_sampler.tick()
            if self._holder_sampler is not None:
                self._holder_sampler.tick()
        if self._census_sampler is not None:
            self._census_sampler.tick(is_idle=is_idle)
        self._steps_seen = session.steps_recorded

    def _await_work(self) -> None:
        """This process is young: it may be one that only waits."""
        self._computes_at_s = monotonic() + _COMPUTES_AFTER_S
        self._began_cpu_s = process_time()
        self._looked_s = self._looked_cpu_s = 0.0

    def _computes(self) -> bool:
        """Return True if the program has used enough CPU time; stop to look if it only waits.

        Where others keep the processor busy, a program that computes comes to it later.
        """
        now_s, now_cpu_s = monotonic(), process_time()
        if not self._looked_s:
            self._looked_s, self._looked_cpu_s = now_s, now_cpu_s
            return now_cpu_s - self._began_cpu_s >= _COMPUTES_CPU_S
        if now_cpu_s - self._looked_cpu_s >= _WAITS_CPU_S:
            return True
        if now_s - self._looked_s >= _WAITS_S:
            self._heartbeat.stop()
        return False

    def _is_importing(self) -> bool:
        """Return True while the main thread imports modules before the program's first step."""
        if self._session.steps_recorded != (0, 0) or monotonic() > self._may_import_until_s:
            self._may_import_until_s = 0.0
            return False
        return self._session.is_main_thread_in("<frozen importlib._bootstrap>")

    def _follow_imports(self, is_importing: bool) -> None:
        """Record the end of the imports that the program begins with: most of its time so far."""
        self._beats += 1
        self._beats_in_imports += is_importing
        if is_importing:
            self._begins_with_imports = 2 * self._beats_in_imports >= self._beats
        elif self._begins_with_imports:
            self._begins_with_imports = False
            self._session.work_begins()

    def _start_measuring(self) -> None:
        self._count_loops()
        self._find_holders()
        self._start_thread()

    @never_raises
    def _find_holders(self) -> None:
        """Look for the names of the program that hold more and more."""
        from .census_sampler import CensusSampler
        from .holder_sampler import HolderSampler, is_enabled

        if self._census_sampler is not None or self._detached:
            return
        if is_enabled() and self._holder_sampler is None:
            self._holder_sampler = HolderSampler(self._session)
        self._session.after_step = self._tick
        self._census_sampler = CensusSampler(self._session, lambda: self._holder_sampler)
        self._session.at_out_of_memory = self._census_sampler.out_of_memory
        self._session.at_end = self._census_sampler.at_end
        self._session.take_census = self._census_sampler.take_now
        if os.environ.get(INTERVENE_VARIABLE) == "1":
            from .interventions import Interventions

            self._interventions = Interventions(self._session)

    @never_raises
    def _follow_pressure(self) -> None:
        """Call the program's functions under memory pressure, once it has given some."""
        if self._pressure is None and not self._detached and registered():
            self._pressure = PressureCalls(self._session)
            self._session.after_step = self._tick
            self._session.under_pressure = self._pressure.tick
            self._heartbeat.look_every(LOOK_S, self._pressure.look)
            self._heartbeat.start()

    @never_raises
    def _count_loops(self) -> None:
        """Use iterations of loops as steps while no better source reports any."""
        from .loop_steps import LoopSteps, is_enabled

        if self._loops is None and not self._detached and is_enabled():
            self._loops = LoopSteps(self._session, self._began_s, self._awaits_framework)
            self._loops.start()
            self._session.after_step = self._tick

    def _awaits_framework(self, now_s: float) -> bool:
        """Return True if an imported framework may still report steps."""
        training = self._training
        return now_s < self._framework_until_s or (
            training is not None and training.iterations.began
        )

    # -- a framework was imported completely ---------------------------------------------------

    def torch_loaded(self, torch: Any) -> None:
        """Follow the training, count tensors, read the allocators of GPUs."""
        parts: dict[str, Callable[[Any], None]] = {
            "step": self._follow_training,
            "tensors": self._count_tensors,
            "vram_allocated_bytes": self._read_torch_allocators,
        }
        for metric, begin in parts.items():  # a failure of one must not affect the others
            try:
                begin(torch)
            except ours(Exception):
                self._session.note("not supported by this version of torch", metric)
        self._session.update_ranks()

    @never_raises
    def jax_loaded(self, jax: Any) -> None:
        """Read the allocators of JAX."""
        self._session.schedule.allocators.add("jax", framework_allocators.jax(jax))
        self._start_measuring()

    @never_raises
    def tensorflow_loaded(self, tensorflow: Any) -> None:
        """Read the allocators of TensorFlow."""
        read = framework_allocators.tensorflow(tensorflow)
        self._session.schedule.allocators.add("tensorflow", read)
        self._start_measuring()

    def keras_loaded(self, keras: Any) -> None:
        """Follow the fits."""
        try:
            from .keras_fit import KerasFits

            self._framework_until_s = monotonic() + _FRAMEWORK_S
            fits = KerasFits(self._session, self._fit_began)
            self._frameworks.append(fits)
            fits.install(keras)
        except ours(Exception):
            self._session.note("this version of keras does not support the callback hook")

    @never_raises
    def numpy_loaded(self, _: Any) -> None:
        """Measure: the program may train without any framework."""
        self._start_measuring()

    @never_raises
    def tqdm_loaded(self, tqdm: Any) -> None:
        """Count the iterations of progress bars."""
        self._follow_library("hook_tqdm", tqdm)

    @never_raises
    def sklearn_loaded(self, sklearn: Any) -> None:
        """Count the fits."""
        self._follow_library("hook_sklearn", sklearn)

    @never_raises
    def gymnasium_loaded(self, gymnasium: Any) -> None:
        """Count the episodes."""
        self._follow_library("hook_gymnasium", gymnasium)

    def _follow_library(self, hook: str, module: Any) -> None:
        """Set a hook of `Libraries`. Raises if this version of the library does not support it."""
        self._start_measuring()
        if self._loops is None:
            return
        if self._libraries is None:
            from .libraries import Libraries

            self._libraries = Libraries(self._loops)
        getattr(self._libraries, hook)(module)

    def _follow_training(self, torch: Any) -> None:
        from .torch_hooks import TorchHooks
        from .torch_training import TorchTraining

        self._training = TorchTraining(self._session)
        self._framework_until_s = monotonic() + _FRAMEWORK_S
        self._hooks = TorchHooks(torch, self._training)
        hooks = self._hooks
        self._session.model_bytes = hooks.model_bytes
        self._session.batch_bytes = lambda: hooks.batch_bytes
        for part in self._hooks.install():
            self._session.note(f"this version of torch does not support the {part} hook", "step")

    def _count_tensors(self, torch: Any) -> None:
        from .tensor_sampler import TensorSampler

        self._tensor_sampler = TensorSampler(self._session, torch)
        self._session.after_step = self._tick
        self._start_measuring()

    def _read_torch_allocators(self, torch: Any) -> None:
        allocators = self._session.schedule.allocators
        for name, backend in (("vram", "cuda"), ("xpu", "xpu")):
            module = getattr(torch, backend, None)
            if hasattr(module, "memory_stats_as_nested_dict"):
                allocators.add(name, framework_allocators.TorchAllocator(module))
        mps, sampler = getattr(torch, "mps", None), self._tensor_sampler
        if sampler is not None and hasattr(mps, "current_allocated_memory"):
            allocators.add("mps", framework_allocators.metal(mps, lambda: sampler.has_seen("mps")))
        self._start_measuring()

    def _fit_began(self) -> None:
        """Keras may train with torch, whose hooks would count the same steps again."""
        if self._training is not None:
            self._training.silence()

    # -- forks ---------------------------------------------------------------------------------

    @never_raises
    def before_fork(self) -> None:
        """In the parent, before each fork."""
        self._paused = self._heartbeat.before_fork() or self._paused

    @never_raises
    def after_fork_in_parent(self) -> None:
        """In the parent, after each fork.

        Some versions of Python count the threads for their warning only after this. So the thread
        starts again with the next step, or the next garbage collection.
        """
        if self._paused:
            self._collections.begin()
        self._session.measure_next()

    @never_raises
    def _collected(self, when: str, info: dict[str, int]) -> None:
        """Start the thread that a fork has stopped, or that the program was too young for.

        Called before and after each garbage collection, at any place of the program: it does
        nothing else.
        """
        if self._paused or not (self._measures or monotonic() < self._computes_at_s):
            self._start_thread()

    def _start_thread(self) -> None:
        self._paused, self._measures = False, True
        self._collections.end()
        self._heartbeat.start()

    @never_raises
    def after_fork_in_child(self) -> None:
        """In the child, after each fork."""
        self._paused = False
        if self._detached:
            return
        self._await_work()
        self._heartbeat.after_fork_in_child()
        self._session.after_fork_in_child()
        samplers = (
            self._tensor_sampler,
            self._holder_sampler,
            self._census_sampler,
            self._interventions,
            self._pressure,
        )
        for part in (self._loops, *samplers, self._training, *self._frameworks):
            if part is not None:
                part.after_fork_in_child()
        on_multiprocessing_child(self._worker_started)

    @never_raises
    def _worker_started(self, role: str) -> None:
        self._session.write_role(role)
        on_worker_exit(self._session.record_exit)
        self._heartbeat.start(0.0 if self._measures else _COMPUTES_AFTER_S)
