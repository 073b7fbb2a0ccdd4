"""A run, its rows and its end, as destinations get them."""

from __future__ import annotations

from pathlib import Path

from memdiag.destinations.messages import End, Judgment, Row, Run

RUN = Run(
    name="train-4711", program="train", pid=4711, host="box", started_s=1_700_000_000.0, memdiag="1"
)
LEAK = Judgment(
    verdict="leak",
    confidence=0.97,
    metric="rss_bytes",
    process="tree",
    growth_per_step=2e6,
    growth_per_s=4e6,
    onset_step=10.0,
    limits_bytes={"cgroup memory.max": 16 * 10**9, "GPU 0": 24 * 10**9},
    full_in_s=3600.0,
    is_final=True,
)


def rows(steps: int = 200) -> list[Row]:
    """A leak of 2 MB per step of 0.5 s, with the readings of a rank."""
    return [
        Row(
            at_s=0.5 * step,
            step=step,
            phase="train",
            readings={
                "tree": {"rss_bytes": 10**9 + 2 * 10**6 * step, "processes": 2},
                "rank0": {"rss_bytes": 5 * 10**8 + 10**6 * step, "copies/now": step % 3},
            },
        )
        for step in range(steps)
    ]


def end(directory: Path) -> End:
    """The end of the leak, with a page and a picture."""
    page, picture = directory / "memdiag.html", directory / "memdiag.png"
    page.write_text("<!DOCTYPE html>")
    picture.write_bytes(
        b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + b"\0\0\0\x02\0\0\0\x03" + b"\0" * 9
    )
    return End(judgment=LEAK, files={page.name: str(page), picture.name: str(picture)})
