"""Several ranks or processes that print into one text log: the same steps once for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from logs import read_log

from memdiag.analysis.diagnose import diagnose
from memdiag.values.verdict import Verdict

PRINTS: dict[str, Callable[[int, int, float], str]] = {
    "ranks": lambda rank, n, gib: f"[rank{rank}] step {10 * n} | rss {gib:.2f}GiB | loss 2.0",
    "pids": lambda rank, n, gib: f"(worker pid={4700 + rank}) iter {n} | rss {gib:.2f}GiB",
    "steps above": lambda rank, n, gib: (
        f"step {n}\nrank {rank}: rss {gib:.2f}GiB"
        if rank == 0
        else f"rank {rank}: rss {gib:.2f}GiB"
    ),
}


@pytest.mark.parametrize("form", PRINTS)
def test_flat_ranks_of_different_size_are_stable(tmp_path: Path, form: str) -> None:
    log = "".join(
        PRINTS[form](rank, n, (12 if rank == 0 else 3) + 0.01 * (n % 3)) + "\n"
        for n in range(200)
        for rank in range(4)
    )
    found = diagnose(read_log(tmp_path, log))
    assert len(found.series) == 4
    assert found.verdict in {Verdict.STABLE, Verdict.WARMUP}
    assert not any("amounts at each" in note for note in found.notes)


def test_of_open_series_the_one_that_grows_is_named(tmp_path: Path) -> None:
    log = "".join(
        PRINTS["pids"](rank, n, 2 + (0.05 * n if rank == 2 else 0.01 * (n % 2))) + "\n"
        for n in range(40)
        for rank in range(4)
    )
    found = diagnose(read_log(tmp_path, log))
    assert found.deciding is not None
    assert found.deciding.process == "pid 4702"
