"""How long a browser takes to open the HTML report of ten series of a million samples.

    python benchmarks/html_page.py [PAIRS]

Beside a page of the same library with an empty chart; interleaved pairs, so that whatever else the
machine does hits both alike. The figure is the median of the pairs' ratios, from the start of the
navigation to the first frame after the page has loaded. Fails above 3, or if the file is larger
than 8 MB. Needs Chromium and Playwright.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from memdiag.analysis.diagnose import diagnose
from memdiag.analysis.readings import with_readings
from memdiag.report.formats.html import page
from memdiag.values.findings import Diagnosis
from memdiag.values.measurements import Axis, AxisKind, Phases, Recording, Role, Series, Unit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from browser import browser, why_not

BAR, LARGEST_BYTES = 3.0, 8_000_000
SAMPLES, PROCESSES = 1_000_000, 10
FIRST_FRAME = """() => new Promise(done =>
    requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)))"""


def recording() -> Recording:
    """Ten processes, of which one leaks, with phases."""
    steps = np.arange(float(SAMPLES))
    noise = np.random.default_rng(1)
    codes = np.asarray((steps // 1000) % 2, dtype=int)
    series = [
        Series(
            metric="rss_bytes",
            column="rss_bytes",
            role=Role.RESIDENT,
            unit=Unit.BYTES,
            axis=Axis(name="step", kind=AxisKind.STEP),
            x=steps,
            y=1e9 + (100.0 * steps if rank == 3 else 0) + noise.normal(0, 1e6, SAMPLES),
            process=f"rank{rank}",
            phases=Phases(codes=codes, names=("train", "eval")),
        )
        for rank in range(PROCESSES)
    ]
    return Recording(source="run.csv", series=tuple(series))


def empty() -> str:
    """A page of the same library with two readings of one series."""
    full = recording().series[0]
    short = replace(full, x=full.x[:2], y=full.y[:2], phases=None)
    known = Recording(source="empty.csv", series=(short,))
    return page.diagnosis(Diagnosis(recordings=(with_readings(diagnose(known), known),)), 0)


def opened_ms(tab: Any, path: Path) -> float:
    tab.goto(path.as_uri())
    return float(tab.evaluate(FIRST_FRAME))


def main() -> int:
    if why_not():
        print(why_not())
        return 0
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    long = recording()
    found = diagnose(long)
    began_s = time.perf_counter()
    text = page.diagnosis(Diagnosis(recordings=(with_readings(found, long),)), 0)
    took_s = time.perf_counter() - began_s
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        ours, base = Path(folder, "ours.html"), Path(folder, "base.html")
        ours.write_text(text, encoding="utf-8")
        base.write_text(empty(), encoding="utf-8")
        tab = chromium.new_page()
        opened_ms(tab, ours), opened_ms(tab, base)
        measured = [(opened_ms(tab, ours), opened_ms(tab, base)) for _ in range(pairs)]
    ratio = statistics.median(one / other for one, other in measured)
    ours_ms, base_ms = (statistics.median(column) for column in zip(*measured, strict=True))
    size = len(text.encode())
    print(
        f"{PROCESSES} series of {SAMPLES:,} samples: {size / 1e6:.2f} MB, made in {took_s:.1f} s, "
        f"opened in {ours_ms:.0f} ms; an empty chart {base_ms:.0f} ms; median ratio of {pairs} "
        f"pairs {ratio:.2f} (bar: {BAR:g})"
    )
    return 0 if ratio <= BAR and size <= LARGEST_BYTES else 1


if __name__ == "__main__":
    raise SystemExit(main())
