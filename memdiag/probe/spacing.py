"""When work of the probe that takes milliseconds is done again."""

from __future__ import annotations

from time import monotonic

# Work is this part of the time since the start apart, until the share alone allows more: it is
# spread over a run of any length. Heuristic.
_PART_OF_AGE = 0.2


class Spacing:
    """When one kind of work is due: in all, it takes at most a share of the time.

    credit_s: CPU time that it may take beyond the share. at_least_s: time from the start to the
    first, and between two. began_s: the start. spent_s: CPU time so far.
    """

    def __init__(self, share: float, credit_s: float, at_least_s: float) -> None:
        self._share, self._credit_s, self._at_least_s = share, credit_s, at_least_s
        self.began_s = self._due_s = self.spent_s = 0.0

    def is_due(self) -> bool:
        """Return True if the work is due. The first call is the start."""
        now_s = monotonic()
        if not self._due_s:
            self.began_s, self._due_s = now_s, now_s + self._at_least_s
        return now_s >= self._due_s

    def took(self, cost_s: float, next_s: float, share: float = 0.0) -> None:
        """Set when the work is due again: it took `cost_s`, and will take `next_s`.

        share: of the time, for now, if that is larger.
        """
        now_s = monotonic()
        self.spent_s += cost_s
        share = max(share, self._share)
        # The next one must fit into the share of all time until then.
        enough_s = self.began_s + (self.spent_s + next_s - self._credit_s) / share
        apart_s = min((now_s - self.began_s) * _PART_OF_AGE, next_s / share)
        self._due_s = max(now_s + max(self._at_least_s, apart_s), enough_s)
