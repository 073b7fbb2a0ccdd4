"""Counts the iterations of a training from the events of hooks. Does not use torch.

An iteration ends with a step of the optimizer. Of several optimizers (a GAN's two, a wrapper and
its inner one, one per parameter) the slowest that is still active counts. Without steps the end of
a backward pass counts, and without these a batch of data.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

# Wait for an optimizer that has not stepped yet until another one has stepped this often: critics
# step 5 times before the generator does. Heuristic.
WAIT_STEPS = 8
# This many backward passes without a step show that an existing optimizer is not used; this many
# batches without any of these show that batches are all there is (a pass over the data before the
# training, for its mean, is shorter or does not matter). Heuristic.
WAIT_BACKWARDS = 64
WAIT_BATCHES = 200
# The slowest optimizer has stopped if the others step this much more often than before, or than
# once each. Heuristic.
_STALLED_FACTOR, _STALLED_STEPS = 4, 16


class StepCounter:
    """Each method takes an event and returns how many iterations ended with it, mostly 0 or 1."""

    def __init__(self) -> None:
        self._made: set[Hashable] = set()
        self._counts: dict[Hashable, int] = {}
        self._pace: Hashable = None  # the optimizer whose steps are the iterations
        # By optimizer: steps of the pace since its last step, and its steps since the pace's last.
        self._pace_since: dict[Hashable, int] = {}
        self._since_pace: dict[Hashable, int] = {}
        self._steps = 0  # of the others since the pace's last step
        self._usual = 1  # the same between its last two
        self._latest: Hashable = None  # of the others
        self._changes = 0  # of it since the pace's last step
        self._told = False
        self._backwards = 0  # since an optimizer has made a step
        self._by_backward = False
        self._batches = 0

    @property
    def began(self) -> bool:
        """Return True if any sign of a training was seen."""
        return bool(self._made or self._counts or self._backwards or self._told)

    def sole(self) -> Hashable:
        """The only optimizer, if its steps are the iterations; None otherwise."""
        pace = self._pace
        alone = self._made.union(self._counts) == {pace} and not self._by_backward
        return pace if pace is not None and alone else None

    def optimizer_made(self, key: Hashable) -> None:
        """An optimizer was created."""
        self._made.add(key)

    def optimizer_gone(self, key: Hashable) -> None:
        """An optimizer was destroyed: its key may be reused."""
        self._made.discard(key)
        for known in (self._counts, self._pace_since, self._since_pace):
            known.pop(key, None)
        if self._pace == key:
            self._pace = None

    def optimizer_stepped(self, key: Hashable) -> int:
        """An optimizer made a step."""
        self._counts[key] = self._counts.get(key, 0) + 1
        self._backwards = 0
        if self._pace is None:
            return self._find_pace(key)
        if key == self._pace:
            if self._pace_since:
                self._paced()
            return 1
        return self._other_stepped(key)

    def backward_ended(self) -> int:
        """An outermost backward pass ended."""
        self._backwards += 1
        if self._by_backward:
            return 1
        if self._counts or (self._made and self._backwards < WAIT_BACKWARDS):
            return 0
        ended = 1 if self._told else self._backwards
        self._told = self._by_backward = True
        return ended

    def batch_fetched(self) -> int:
        """A data loader gave a batch."""
        if self.began:
            return 0
        self._batches += 1
        if self._batches < WAIT_BATCHES:
            return 0
        return self._batches if self._batches == WAIT_BATCHES else 1

    def _find_pace(self, key: Hashable) -> int:
        """No optimizer sets the pace: choose one if possible."""
        counts = self._counts
        missing = self._made - counts.keys()
        if not self._told and missing and max(counts.values()) < WAIT_STEPS:
            return 0
        self._set_pace(key if self._told else min(counts, key=counts.__getitem__))
        ended = 1 if self._told else counts[self._pace]
        self._told, self._by_backward = True, False
        return ended

    def _paced(self) -> None:
        for other in self._pace_since:
            self._pace_since[other] += 1
        self._usual = max(1, self._steps)
        self._since_pace.clear()
        self._steps = self._changes = 0

    def _other_stepped(self, key: Hashable) -> int:
        paced = self._pace_since.get(key, 0)
        self._pace_since[key] = 0
        if paced >= 2:  # slower than the pace
            self._set_pace(key)
            return 1
        since = self._since_pace
        since[key] = since.get(key, 0) + 1
        if key != self._latest:
            self._latest = key
            self._changes += 1
        self._steps += 1
        steps = self._steps
        if steps <= _STALLED_FACTOR * max(self._usual, len(since)) + _STALLED_STEPS:
            return 0
        # These were iterations, counted as parts of one: of models that are trained one after the
        # other all of them, of models that are trained side by side those of one.
        ended = steps if 2 * self._changes < steps else max(since.values())
        self._set_pace(key)
        return ended

    def _set_pace(self, key: Hashable) -> None:
        self._pace = key
        self._pace_since = {other: 0 for other in self._counts if other != key}
        self._since_pace.clear()
        self._steps, self._usual, self._changes = 0, 1, 0
