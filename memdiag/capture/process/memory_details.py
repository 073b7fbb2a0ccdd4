"""USS, PSS and swap of a tree, read one process at a time within a budget.

`smaps_rollup` walks the page tables: 11 ms of CPU per GiB, 20 where pages are shared, and `mmap` in
the target waits meanwhile. So the processes take turns, and the totals are sums of the latest
reading of each. RSS counts a shared page once per process: where forked workers make copies of the
parent's pages, its sum stays level, and only PSS shows the growth.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memdiag.capture.process.clock import Clock, MonotonicClock
from memdiag.capture.process.sampler import Reading, totals
from memdiag.capture.process.tree import TREE, Process, ProcessId, ProcessTable
from memdiag.values.measurements import Unavailable

# Shares of a core: where the processes share pages, and where RSS says the same. Heuristic: 40
# readings in the first minute of a tree of 800 MB, of which RSS counts every page.
_SHARE, _ALONE = 0.003, 0.0008
# CPU seconds beyond the share: at once, and in equal parts over the first minute. Heuristic.
_CREDIT_S, _LATER_S, _OVER_S = 0.1, 0.2, 60.0
# A round ends after this time, so that a large tree is read in many of them. Heuristic.
_ROUND_S = 0.02
# A process whose reading takes longer is read once a minute: its `mmap` waits. Heuristic; at 2
# readings a second of 70 ms each, the longest wait measured was 74 ms.
_LONG_S, _PAUSE_S = 0.1, 60.0
# The processes share pages if the sum of RSS exceeds that of PSS by this share. Heuristic.
_SHARED = 0.05


@dataclass(slots=True)
class _Turn:
    """The latest reading of a process. took_s: CPU time of the reading."""

    at_s: float
    took_s: float
    long: bool
    values: Mapping[str, int | Unavailable]
    resident_bytes: int


class DetailSource:
    """USS, PSS and swap: a `Source` to be read in the background, about once a second."""

    def __init__(self, table: ProcessTable, *, clock: Clock | None = None) -> None:
        self._table = table
        self._clock = clock or MonotonicClock()
        self._began_s: float | None = None
        self._spent_s = self._earned_s = self._seen_s = 0.0
        self._latest: dict[ProcessId, _Turn] = {}
        self._pass_s = float("-inf")  # when the current pass over all processes began
        self._sums: Mapping[str, Reading] = {}
        self._rests = False

    def read(self, processes: Sequence[Process]) -> dict[ProcessId, Mapping[str, Reading]]:
        """`uss_bytes`, `pss_bytes` and `swap_bytes` of the processes whose turn it is, and the
        sums over the tree once each process has been read since the last sums. Nothing if the last
        sums of several processes were those before: an idle tree is read half as often.
        """
        if self._rests:
            self._rests = False
            return {}
        now_s = self._clock.now_s()
        identities = [process.id for process in processes]
        self._latest = {i: self._latest[i] for i in identities if i in self._latest}
        self._earn(now_s, is_tree=len(identities) > 1)
        found: dict[ProcessId, Mapping[str, Reading]] = {}
        spent_s, gone = 0.0, set()
        for identity in sorted(identities, key=self._turn):
            if self._is_read(identity) or spent_s >= _ROUND_S or self._earned_s <= self._spent_s:
                break
            if self._waits(identity, now_s):
                continue
            turn = self._read(identity, now_s)
            if turn is None:
                gone.add(identity)
                continue
            found[identity] = turn.values
            self._spent_s += turn.took_s
            spent_s += turn.took_s
        rest = [identity for identity in identities if identity not in gone]
        if rest and all(self._is_done(identity, now_s) for identity in rest):
            self._pass_s = now_s
            sums = totals([self._latest[identity].values for identity in rest], [])
            self._rests = len(rest) > 1 and sums == self._sums
            found[TREE] = self._sums = sums
        return found

    def _turn(self, identity: ProcessId) -> float:
        last = self._latest.get(identity)
        return float("-inf") if last is None else last.at_s

    def _is_read(self, identity: ProcessId) -> bool:
        """Return True if the process was read since the last sums."""
        last = self._latest.get(identity)
        return last is not None and last.at_s > self._pass_s

    def _is_done(self, identity: ProcessId, now_s: float) -> bool:
        """Return True if the process was read in this pass, or is to be read rarely."""
        return self._waits(identity, now_s) or self._is_read(identity)

    def _waits(self, identity: ProcessId, now_s: float) -> bool:
        """Return True if the process takes long to read, and was read less than a minute ago."""
        last = self._latest.get(identity)
        return last is not None and last.long and now_s - last.at_s < _PAUSE_S

    def _earn(self, now_s: float, *, is_tree: bool) -> None:
        """Add to the CPU time that readings may take, for the time since the last round."""
        if self._began_s is None:
            self._began_s = self._seen_s = now_s
            self._earned_s = _CREDIT_S
        elapsed_s, before_s = now_s - self._began_s, self._seen_s - self._began_s
        dense = is_tree and self._shares_pages()
        self._earned_s += (now_s - self._seen_s) * (_SHARE if dense else _ALONE)
        if dense:
            self._earned_s += (
                _LATER_S * (min(elapsed_s, _OVER_S) - min(before_s, _OVER_S)) / _OVER_S
            )
        self._seen_s = now_s

    def _shares_pages(self) -> bool:
        """Return False once the sums show that no pages are shared."""
        known = [
            (turn.resident_bytes, pss)
            for turn in self._latest.values()
            if isinstance(pss := turn.values.get("pss_bytes"), int)
        ]
        resident = sum(rss for rss, _ in known)
        return len(known) < 2 or resident - sum(pss for _, pss in known) > _SHARED * resident

    def _read(self, identity: ProcessId, now_s: float) -> _Turn | None:
        resident = self._table.resident_bytes(identity)
        began_s, cpu_s = time.monotonic(), time.thread_time()
        values = self._table.details(identity)
        took_s, waited_s = time.thread_time() - cpu_s, time.monotonic() - began_s
        if values is None:
            self._latest.pop(identity, None)
            return None
        turn = _Turn(
            at_s=now_s,
            took_s=took_s,
            long=min(took_s * 2, waited_s) > _LONG_S,
            values=values,
            resident_bytes=resident if isinstance(resident, int) else 0,
        )
        self._latest[identity] = turn
        return turn
