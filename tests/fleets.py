"""Recordings on disk, for tests of many of them."""

from __future__ import annotations

from pathlib import Path


def write(path: Path, *, leak_mb: float = 0.0, steps: int = 600, warmup: int = 40) -> Path:
    """A CSV log that warms up, and then grows by `leak_mb` a step."""
    rows = [
        f"{n},{1000 + 5 * min(n, warmup) + leak_mb * n + n * 7919 % 13 / 10:.1f}"
        for n in range(steps)
    ]
    path.write_text("step,rss_mb\n" + "\n".join(rows) + "\n")
    return path


def fleet(folder: Path, healthy: int, leaking: int) -> list[Path]:
    """Files of both kinds: `h0.csv` ..., `l0.csv` ..."""
    folder.mkdir(exist_ok=True)
    found = [write(folder / f"h{n}.csv", warmup=20 + n) for n in range(healthy)]
    return found + [write(folder / f"l{n}.csv", leak_mb=1 + n / 10) for n in range(leaking)]
