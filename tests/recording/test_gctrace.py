"""The lines of Go's garbage collector."""

from __future__ import annotations

from pathlib import Path

from logs import read_log

MIB = 2.0**20
LINE = (
    "gc {n} @{at:.3f}s 2%: 0.037+5.7+0.002 ms clock, 0.54+0.8/3.5/2.1+0.036 ms cpu, "
    "{start}->{end}->{live} MB, {start} MB goal, 0 MB stacks, 0 MB globals, 8 P"
)


def test_the_live_heap_counts_over_the_seconds_of_the_program(tmp_path: Path) -> None:
    lines = []
    for n in range(1, 31):
        live = 40 + n % 3
        lines += [
            f"2025/06/17 10:02:{n:02d} served {n * 700} requests of 900 MB in total",
            "stderr: " * (n % 2) + LINE.format(n=n, at=1.5 * n, start=80, end=81, live=live),
        ]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [(40 + n % 3) * MIB for n in range(1, 31)]
    assert series.x.tolist() == [1.5 * n for n in range(1, 31)]
