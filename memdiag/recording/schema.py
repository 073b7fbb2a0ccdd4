"""The native recording's columns: one row per process and sample."""

from __future__ import annotations

from memdiag.model import Role

# Always there, in this order. `at_s` are seconds since the recording began; `process` is "tree"
# in the row that holds the whole tree's totals.
KEY_COLUMNS = ("at_s", "step", "phase", "pid", "process")

# Always there, blank where there is no reading. Further metrics (tensors by device, counters)
# follow in the order in which they first appear.
METRIC_COLUMNS = {
    "rss_bytes": Role.RESIDENT,
    "uss_bytes": Role.UNIQUE,
    "pss_bytes": Role.PROPORTIONAL,
    "swap_bytes": Role.SWAP,
    "vram_bytes": Role.DEVICE,
    "processes": Role.PROCESSES,
    "tensors": Role.TENSORS,
}
