"""Finds the places that grow, by a walk now and then within a share of the process's time.

The walk runs at steps, in the thread of the step, and without steps in the probe's own thread, as
the tensor counts do. What grows is written to a file beside the ring, as JSON: the places with the
history of their sizes, and what one more item keeps. What it means is decided outside.
"""

from __future__ import annotations

import os
from math import inf
from time import monotonic, thread_time

from . import ring_format
from .activation_sizes import ActivationSizes
from .allocation_recording import AllocationRecording
from .guard import Attempts, never_raises, ours
from .kept_bytes import COMPILED, Arrays, Kept, of_object, per_item, per_link
from .line_windows import (
    LineWindows,
    growth_in_use,
    growth_on_devices,
    in_use,
    is_program_thread,
)
from .main_thread import MainThreadCall
from .name_walk import RUNNING, NameWalk
from .places import Place, Places
from .plain_access import container_name, is_compiling
from .size_log import SizeLog
from .spacing import Spacing
from .unnamed import MOST_LOOKS, Unnamed
from .unreached import MOST_LOOKS as MOST_COUNTS
from .unreached import Unreached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence, TypeVar

    from .name_walk import Found
    from .session import Session

    T = TypeVar("T")

VERSION = 1
# Share of the process's time for walks and measuring what they found, and what the first may take
# beyond it. A walk takes 4 ms beside torch, 40 ms with 10,000 objects of modules. Heuristic.
SHARE = 0.0004
ALWAYS_SHARE = 0.02
# While memory grows: walks of 40 ms are six in half a minute, not three. Heuristic.
_SHARE_IF_GROWING = 0.004
CREDIT_S = 0.12
_AT_LEAST_S = 0.2
# Between walks the sizes of what grows are read through their names: share of the time, what may be
# taken beyond it, and how far apart at least. Heuristic: 50 us each.
_READING_SHARE, _READING_CREDIT_S, _READINGS_APART_S = 0.0002, 0.002, 0.25
# Places that are written, and files of the program. Heuristic.
_MOST_SUSPECTS, _MOST_FILES = 16, 200
# Time for measuring items after one walk; the rest waits for the next. Heuristic.
_MEASURING_S = 0.04
# Measured again once it is this many times as large: items may have become larger.
_AGAIN = 2.0
_MOST_WALKS = 48
# Looks beside the names: if at least so much has grown since the middle of the walks, and places
# hold less than half of it. The first takes 0.5% of the time until then (10% if always), the others
# come at so many times the age of the one before: what grows has grown meanwhile. Counts of objects
# are cheaper, and come sooner until they have found something. Heuristic.
_LEAST_UNEXPLAINED, _FIRST_LOOK_S, _ALWAYS_FIRST_LOOK_S, _LATER = 1 << 20, 30.0, 1.5, 1.6
_ALWAYS_FIRST_COUNT_S, _SOONER = 0.5, 1.2
# Items of a large container that are visited beside the oldest and the newest once memory grows
# that nothing explains, and by what this is divided where the walk did not come to the end of all
# names. Heuristic: half of the visits of a walk, which takes 20 ms longer.
_MORE_ITEMS, _FEWER = 10_000, 16
# Walks after which young generators are looked for, whether memory grows or not. Heuristic: a loop
# that has just begun.
_FIRST_WALKS = 3
# Part of the growth that nothing explains that a class of objects has to hold. Heuristic.
_LEAST_PART = 0.05
# What a place has grown by since it was found counts for at most so many times as much. Heuristic.
_MOST_TIMES = 4.0
# CPU time of one look for what refers to containers that grow, and if always. Heuristic.
_SEARCH_S, _ALWAYS_SEARCH_S = 0.2, 1.0
# The same for the objects of a class. Heuristic: 10 to 60 ms for each of some steps.
_COUNTED_S = 0.3
# Recordings of allocations in one process. Heuristic: the growth may change.
_MOST_RECORDINGS = 2


def is_enabled() -> bool:
    """Return True unless the user has disabled the walks (`memdiag run --explain never`)."""
    return os.environ.get(ring_format.EXPLAIN_VARIABLE) != "never"


class HolderSampler:
    """The walks of one process, and what they have found."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._running = self._is_in_program = False
        self._attempts, self._attempts_beside = Attempts(), Attempts()
        self._main_thread = MainThreadCall(self._tick_in_main_thread)
        self._activations = ActivationSizes()
        explain = os.environ.get(ring_format.EXPLAIN_VARIABLE)
        is_always = explain == "always"
        self._share = ALWAYS_SHARE if is_always else SHARE
        self._first_look_s = self._first_count_s = _FIRST_LOOK_S
        self._search_s = _SEARCH_S
        if is_always:
            self._look_often()
        self._begin()

    @never_raises
    def tick(self, *, at_step: bool = False) -> None:
        """Walk if it is due. Called at steps, and by the heartbeat."""
        try:
            if self._running or not self._attempts.may_begin():
                return
            self._is_in_program = at_step and is_program_thread()
            if self._recording is not None and (at_step or not self._recording.is_overdue()):
                self._record(at_step=at_step)
                return
            if at_step and self._activations.is_open:
                self._end_activations()
            # (At the first call, imports and the like are over.)
            if self._follows_lines():
                return
            if self._spacing.is_due():
                self._take()
            elif self._growing and self._reading_spacing.is_due():
                self._read_sizes()
            # (The main thread does nothing for a window in the midst of a walk.)
            if self._windows.needs_main_thread:
                self._main_thread.request()
        except ours(Exception) as error:
            self._failed(error)

    def _follows_lines(self) -> bool:
        """Go on with a window of lines, or open one; True while there is one."""
        windows = self._windows
        if self._is_in_program:
            windows.step_ended()
            if windows.is_wanted:
                self._alone(lambda: windows.open_wanted(in_program=True))
        if not windows.is_open:
            return False
        if windows.needs_main_thread:
            self._main_thread.request()
        self._in_window()
        return True

    @never_raises
    def _tick_in_main_thread(self) -> None:
        """Open a window of lines, or go on with it, where no step ends in the main thread."""
        if self._running or not self._attempts.may_begin():
            return
        try:
            if self._windows.is_wanted:
                self._alone(lambda: self._windows.open_wanted(in_program=True))
            elif self._windows.is_open:
                self._in_window()
        except ours(Exception) as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if self._attempts.failed(error):
            text = f"the walk of the program's names failed ({type(error).__name__})"
            self._session.note(text, "cause")
            self._main_thread.close()
        self._undo()

    @never_raises
    def close(self) -> None:
        """Undo everything: the probe detaches, or the program ends."""
        self._main_thread.close()
        self._undo()

    def _undo(self) -> None:
        """End what changes how the program runs."""
        try:
            self._windows.close()
            self._activations.end()
            if self._recording is not None:
                self._recording.close()
        except ours(Exception):
            self._attempts.is_over = True

    @never_raises
    def at_exit(self) -> None:
        """Write what was read since the last walk."""
        self.close()
        if self._walked and not self._running and not self._attempts.is_over:
            self._write()

    def walk_now(
        self,
        then: Callable[[Arrays, NameWalk | None], None],
        frames: Sequence[Any] = (),
        until_s: float = inf,
    ) -> None:
        """Walk, whether it is due or not, and call `then` while the walk holds what it has found;
        with None if it cannot.

        frames: of functions that have failed: places as well. until_s: when all of it is to be over
        on the monotonic clock; half of the time is for `then`. Raises what `then` raises.
        """
        is_following = self._windows.is_open and not self._windows.rest()
        if self._attempts.is_over or self._running or is_following:
            then(Arrays(), None)
        else:
            self._looked(then, frames, (monotonic() + until_s) / 2)

    def walk_often(self) -> None:
        """Walk as with `--explain always` from now on."""
        self._share = ALWAYS_SHARE
        self._look_often()
        self._spacing = Spacing(self._share, CREDIT_S, _AT_LEAST_S)

    def _look_often(self) -> None:
        self._first_look_s = self._look_due_s = _ALWAYS_FIRST_LOOK_S
        self._first_count_s = self._count_due_s = _ALWAYS_FIRST_COUNT_S
        self._search_s = _ALWAYS_SEARCH_S

    def after_fork_in_child(self) -> None:
        """Start from zero in a forked child."""
        self._running = False
        self._main_thread.after_fork_in_child()
        self._windows.after_fork_in_child()
        self._activations.end()
        if self._recording is not None:
            self._recording.after_fork_in_child()
        self._begin()

    def _begin(self) -> None:
        self._places = Places()
        self._walks: list[tuple[int, int, float, int, int, int]] = []
        self._measured: dict[Place, tuple[float, dict[str, Any]]] = {}
        self._unnamed = Unnamed()
        self._unreached = Unreached(self._places)
        self._look_due_s, self._count_due_s = self._first_look_s, self._first_count_s
        self._growing: list[Place] = []
        self._more_items, self._possible_items = 0, _MORE_ITEMS
        # Else one look would be the reason for the next.
        self._own_bytes = 0
        self._windows = LineWindows(self._session, self._places, self._unnamed)
        self._recording: AllocationRecording | None = None
        self._recordings = 0
        self._allocated: list[tuple[str, str, int, str, float]] = []
        self._walked: dict[str, Any] = {}
        self._size_log = SizeLog(self._places, self._unnamed)
        self._number = 0
        self._spacing = Spacing(self._share, CREDIT_S, _AT_LEAST_S)
        self._reading_spacing = Spacing(_READING_SHARE, _READING_CREDIT_S, _READINGS_APART_S)

    def _take(self) -> None:
        began_s = thread_time()
        beside_s = self._looked()
        cost_s = thread_time() - began_s - beside_s
        self._spacing.took(cost_s, cost_s, _SHARE_IF_GROWING if self._is_growing() else 0.0)
        grown = {
            place: self._growth(place)
            for place in self._growing
            if place not in self._unreached.found and place.kind != RUNNING
        }
        in_program = self._is_in_program
        self._alone(lambda: self._windows.consider(grown, self._walks, in_program=in_program))
        if in_program:
            self._consider_activations()
        if in_program and not self._windows.is_open and not self._windows.is_wanted:
            self._consider_recording()

    def _is_growing(self) -> bool:
        """Return True if memory has grown steadily since the middle of the walks."""
        kept = sum(map(self._growth, self._growing))
        return max(kept, growth_in_use(self._walks)) > _LEAST_UNEXPLAINED

    def _consider_activations(self) -> None:
        """Look at the outputs of modules for a step if a place keeps tensors."""
        if self._activations.is_wanted and any(
            place.unit == "items" and self._measured[place][1]["kind"] == "tensors"
            for place in self._growing
        ):
            self._activations.begin()
            self._session.measure_next()

    def _end_activations(self) -> None:
        self._activations.end()
        self._walked["activations"] = list(self._activations.found.items())
        self._alone(self._write)

    def _consider_recording(self) -> None:
        """Record where memory is allocated if nothing else has found what holds most of it."""
        looks, walks = self._unnamed.looks, self._walks
        if self._recordings >= _MOST_RECORDINGS or len(walks) < 2:
            return
        growing = [place for place in self._growing if place not in self._unreached.found]
        explained = sum(self._growth(place) for place in growing)
        on_devices = sum(self._growth(place, "device_bytes") for place in growing)
        # (What is on devices, the looks beside the names do not search for.)
        has_looked = looks > self._recordings or self._unreached.found
        grown = growth_in_use(walks) if has_looked else 0.0
        is_host = grown > max(_LEAST_UNEXPLAINED, 2 * (explained - on_devices))
        is_device = growth_on_devices(walks) > max(_LEAST_UNEXPLAINED, 2 * on_devices)
        if is_host or is_device:
            self._recordings += 1
            (_, first, first_s, *_), (_, last, last_s, *_) = walks[-2:]
            step_s = (last_s - first_s) / max(1, last - first)
            self._recording = self._alone(
                lambda: AllocationRecording(step_s, is_host=is_host, is_device=is_device)
            )
            self._session.measure_next()

    def _record(self, *, at_step: bool) -> None:
        recording: Any = self._recording
        if at_step:
            self._alone(recording.at_step)
        else:
            recording.check()
        if recording.is_closed:
            self._recording = None
            self._allocated = recording.found or self._allocated
            self._write()
        else:
            self._session.measure_next()

    def _in_window(self) -> None:
        if self._windows.rest():
            if self._spacing.is_due():
                self._take()
            elif self._growing and self._reading_spacing.is_due():
                self._read_sizes()
        if self._alone(self._windows.tick):
            self._alone(self._write)

    def _read_sizes(self) -> None:
        began_s = thread_time()
        self._alone(lambda: self._size_log.read(self._session.step_now()))
        cost_s = thread_time() - began_s
        self._reading_spacing.took(cost_s, cost_s)

    def _looked(self, then: Any = None, frames: Sequence[Any] = (), until_s: float = inf) -> float:
        return self._alone(lambda: self._look(then, frames, until_s))

    def _alone(self, work: Callable[[], T]) -> T:
        """Do work of the probe. A signal handler that tags a step meanwhile begins none."""
        self._running = True
        try:
            with self._session.own_objects:
                return work()
        finally:
            self._running = False

    def _look(self, then: Any, frames: Sequence[Any], until_s: float) -> float:
        """Walk, and look beside the names if need be; the seconds of the latter."""
        number = self._number = self._number + 1
        now = (self._session.step_now(), monotonic(), *self._in_use_now())
        arrays = Arrays()
        walk = self._walk(arrays, frames, until_s)
        self._walks.append((number, *now))
        spent_s = 0.0
        unexplained = 0.0 if then is not None else self._unexplained()
        if unexplained and self._is_due_beside(walk):
            self._more_items = self._possible_items
            spent_s = self._look_beside(walk, arrays, unexplained)
        elif then is None and (unexplained or number <= _FIRST_WALKS) and walk.has_all_names:
            never_raises(self._unnamed.look_at_young_generators)(walk.seen)
        _keep_first_names(walk.found, self._growing)
        nodes: set[int] = set()
        for place, found in walk.found.items():
            _mark_seen(place, number)
            never_raises(found.set_size_of)(place, number, nodes)
        for place, about in self._unreached.found.items():
            _mark_seen(place, number)
            self._measured[place] = place.sizes[-1][1], about
        if not walk.is_cut or self._places.is_full:
            self._places.forget(number)
        growing = self._places.growing()
        self._measured = {p: known for p, known in self._measured.items() if p in set(growing)}
        if any(map(self._is_due, growing)):
            self._measure(growing, walk, arrays, until_s)
        growing = [place for place in growing if place in self._measured]
        growing.sort(key=self._growth, reverse=True)
        if then is None:
            self._size_log.follow(growing)
        self._growing = growing[:_MOST_SUSPECTS]
        self._walked = {
            "visits": walk.visits,
            "is_cut": walk.is_cut,
            "unread": list(walk.unread.items()),
            "model_bytes": self._model_bytes(),
            "batch_bytes": self._session.batch_bytes(),
            "activations": list(self._activations.found.items()),
            "files": sorted({os.path.abspath(one) for one in walk.files})[:_MOST_FILES],  # noqa: PTH100
        }
        self._write()
        if len(self._walks) > _MOST_WALKS:
            del self._walks[1:-1:2]
        if then is not None:
            then(arrays, walk)
        return spent_s

    def _walk(self, arrays: Arrays, frames: Sequence[Any], until_s: float) -> NameWalk:
        if self._more_items != self._places.more_items:
            self._places.visit_more_items(self._more_items)
            self._growing = [place for place in self._growing if place.sizes]
        walk = NameWalk(self._places, arrays, self._unnamed, frames, until_s)
        walk.run()
        if not walk.has_all_names:
            self._more_items = self._possible_items = self._more_items // _FEWER
        return walk

    def _due(self) -> tuple[float, bool, bool]:
        """Seconds since the first walk, and whether a look and a count beside the names are due.

        In programs with steps at these only, in their thread: what steps make is in no list then.
        (Unless the probe's thread counts them.)
        """
        age_s = monotonic() - self._walks[0][2]
        may_look = self._is_in_program or not self._windows.has_steps
        is_look = age_s >= self._look_due_s and self._unnamed.looks < MOST_LOOKS
        is_count = age_s >= self._count_due_s and self._unreached.looks < MOST_COUNTS
        may_look = may_look and self._attempts_beside.may_begin()
        return age_s, is_look and may_look, is_count and may_look

    def _look_beside(self, walk: NameWalk, arrays: Arrays, unexplained: float) -> float:
        """Look beside the names for what has grown by so many bytes; the seconds that it takes."""
        began_s = thread_time()
        age_s, is_look, is_count = self._due()
        before, *_ = self._in_use_now()
        try:
            if is_look and walk.has_all_names:
                self._look_due_s = _LATER * age_s
                self._unnamed.look(walk.seen, self._search_s)
            if is_count:
                # (What these hold has a name in the next walk.)
                has_new = walk.has_all_names and self._unnamed.look_at_generators(walk.seen)
                least = inf if has_new else _LEAST_PART * unexplained
                longest_s = max(_COUNTED_S, self._search_s)
                self._unreached.look(self._number, walk, arrays, least, longest_s)
                self._count_due_s = (_LATER if self._unreached.found else _SOONER) * age_s
        except ours(Exception) as error:
            if self._attempts_beside.failed(error):
                text = f"the look beside the program's names failed ({type(error).__name__})"
                self._session.note(text, "cause")
        after, *_ = self._in_use_now()
        if min(before, after) >= 0:  # else not read
            self._own_bytes += after - before
        return thread_time() - began_s

    def _in_use_now(self) -> tuple[int, int, int]:
        """What malloc has in use without what looks have left, Python's blocks, and the memory of
        devices; each is negative if it is not read.
        """
        malloc, blocks, on_devices = self._session.schedule.in_use_now()
        return malloc - self._own_bytes if malloc >= 0 else malloc, blocks, on_devices

    def _model_bytes(self) -> int:
        try:
            return self._session.model_bytes()
        except ours(Exception):
            return 0

    def _is_due_beside(self, walk: NameWalk) -> bool:
        _, is_look, is_count = self._due()
        return is_count or (is_look and walk.has_all_names)

    def _unexplained(self) -> float:
        """Bytes by which memory has grown and still grows, if that is more than twice what the
        places keep that have grown until the walk before; else 0.
        """
        # (Not within a window, whose steps are slow already.)
        if self._windows.is_open:
            return 0.0
        number = len(self._walks)
        middle, later, last = (self._walks[at] for at in (number // 2, 3 * number // 4, -1))
        if min(middle[3:5] + later[3:5] + last[3:5]) < 0:  # not read
            return 0.0
        grown = in_use(last) - in_use(middle)
        if last[3] != later[3]:  # (else malloc was not read again)
            # What has filled since then grows no more.
            grown = min(grown, 2 * (in_use(last) - in_use(later)))
        kept = sum(map(self._growth, self._growing))
        return grown if grown > max(_LEAST_UNEXPLAINED, 2 * kept) else 0.0

    def _is_due(self, place: Place) -> bool:
        known = self._measured.get(place)
        return known is None or place.sizes[-1][1] >= _AGAIN * known[0]

    def _measure(
        self, growing: list[Place], walk: NameWalk, arrays: Arrays, until_s: float
    ) -> None:
        """Measure what one more unit of each place keeps, all of them together. What several keep
        counts for the first of them.

        First come places for which there was no time before, then those with most names of the
        program, then the shortest way, then the largest. Places that no name leads to are the last,
        since names may lead to what they keep. What a place keeps may refer to containers of other
        growing places (a hook refers to the module that has all hooks): these are left out, unless
        they are below the place.
        """
        counted = Kept(arrays)
        containers = [
            (place.path(), list(map(id, walk.found[place].samples)))
            for place in growing
            if place.unit == "items" and place in walk.found
        ]
        cpu_until_s = thread_time() + _MEASURING_S
        for place in sorted(growing, key=self._measuring_order):
            found = walk.found.get(place)
            if found is None or thread_time() > cpu_until_s or monotonic() > until_s:
                continue
            others = (keys for path, keys in containers if place not in path)
            outside = {key for keys in others for key in keys if key not in counted.found}
            counted.found.update(dict.fromkeys(outside, 0))
            about = _measured(place, found, arrays, counted)
            for key in outside:
                counted.found.pop(key, None)
            is_unread = about is not None and about.get("has_unread_graph", False)
            if about is not None and not (is_unread and place in self._measured):
                self._measured[place] = place.sizes[-1][1], about

    def _measuring_order(self, place: Place) -> tuple[bool, bool, int, int, float]:
        names, length = _order(place)
        return not names, place in self._measured, names, length, -place.sizes[-1][1]

    def _write(self) -> None:
        import json

        document = {
            "version": VERSION,
            "walks": self._walks,
            "spent_s": self._spacing.spent_s,
            **self._walked,
            "window": self._windows.about(),
            "allocated": self._allocated,
            "places": [self._described(place) for place in self._growing],
        }
        data = json.dumps(document).encode("ascii")
        self._session.write_beside(data, ring_format.HOLDERS_SUFFIX)

    def _growth(self, place: Place, of: str = "bytes") -> float:
        """Bytes that a place has grown by since the middle of the walks. What was found later, as
        if it had grown before as it has since. of: "device_bytes" for those on devices.
        """
        times = {number: at_s for number, _, at_s, *_ in self._walks}
        middle, last = self._walks[len(self._walks) // 2], self._walks[-1]
        before = [one for one in place.sizes if one[0] <= middle[0]]
        number, size = before[-1] if before else place.sizes[0]
        grown: float = (place.sizes[-1][1] - size) * self._measured[place][1][of]
        since_s = last[2] - times.get(number, last[2])
        if before or since_s <= 0:
            return grown
        return grown * min(_MOST_TIMES, max(1.0, (last[2] - middle[2]) / since_s))

    def _described(self, place: Place) -> dict[str, Any]:
        return {
            "path": [[p.kind, p.name, p.owner, p.file, p.line] for p in place.path()],
            "aliases": place.aliases,
            "unit": place.unit,
            "sizes": place.sizes,
            "last_walk": place.last_walk,
            "watched": self._windows.lines_of(place),
            "readings": self._size_log.of(place),
            "is_chain": place.is_chain(),
            **self._measured[place][1],
        }


@never_raises
def _measured(place: Place, found: Found, arrays: Arrays, counted: Kept) -> dict[str, Any] | None:
    """What one more unit of a place keeps, None if an object of it cannot be read."""
    if place.unit == "items":
        is_compiled = is_compiling(type(found.samples[0]))
        about = {**COMPILED} if is_compiled else per_item(found.samples, arrays, counted)
        about["container"] = container_name(found.samples[0])
    elif place.unit == "objects" and place.is_in_chain:
        about = {**per_link(found.samples, arrays, counted), "container": ""}
    else:
        first_bytes = place.sizes[0][1] if place.unit == "bytes" else None
        about = of_object(found.samples[0], arrays, counted, first_bytes=first_bytes)
        about["container"] = ""
    about["is_estimated"] = found.is_estimated
    return about


def _keep_first_names(found: dict[Place, Found], growing: Sequence[Place]) -> None:
    """Count a container that grows at the place where it was found first, whatever name leads to it
    in this walk: of a generator or of a function that it calls, by which of them runs.
    """
    first_places = {
        place.first_object: place
        for place in growing
        if place.unit == "items" and place not in found
    }
    for place, one in list(found.items()):
        if place not in found or not one.is_container or len(one.samples) != 1:
            continue
        first = first_places.get(id(one.samples[0]))
        # (Else the address is that of another container now.)
        if first is not None and one.items >= first.sizes[-1][1]:
            found[first] = found.pop(place)
            for below in [other for other in found if place in other.path()]:
                del found[below]


def _order(place: Place) -> tuple[int, int]:
    path = place.path()
    return -sum(1 for one in path if one.file), len(path)


def _mark_seen(place: Place, walk: int) -> None:
    at: Place | None = place
    while at is not None and at.seen != walk:
        at.seen = walk
        at = at.parent
