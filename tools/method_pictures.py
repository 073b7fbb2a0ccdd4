"""Draw a dozen real traces with the regimes that were found: docs/method_traces.png.

    python tools/method_pictures.py

Needs matplotlib (`pip install -e .[bench]`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from memdiag.analysis.diagnose import diagnose
from memdiag.findings import Finding
from memdiag.recording.reading import read
from memdiag.verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).resolve().parent.parent
TRACES = (
    ("modelgarden_run1_prefix", "rss_bytes"),
    ("modelgarden_run2", "rss_bytes"),
    ("burn_hybrid_vram", "vram_bytes"),
    ("ppwwyyxx_naive_worker_uss", "uss_bytes"),
    ("jax20296_mps", "rss_bytes"),
    ("phppm156_before", "heap_bytes"),
    ("bun28632_mysql_gappy", "rss_bytes"),
    ("edgeshard_decode", "vram_allocated_bytes"),
    ("keras9807_predict", "rss_bytes"),
    ("own_sawtooth_gc_steps", "malloc_inuse_bytes"),
    ("own_leak_losses_steps", "main_rss_bytes"),
    ("siphon519_8h", "rss_bytes"),
)
COLOURS = {
    Verdict.STABLE: "#1b7837",
    Verdict.WARMUP: "#1b7837",
    Verdict.INCONCLUSIVE: "#777777",
    Verdict.LEAK: "#b2182b",
}


def main() -> None:
    figure, axes = plt.subplots(4, 3, figsize=(13, 13))
    for axis, (name, metric) in zip(axes.ravel(), TRACES, strict=True):
        found = diagnose(read(str(ROOT / "fixtures" / "corpus" / f"{name}.csv")))
        draw(axis, name, next(f for f in found.series if f.metric == metric))
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "method_traces.png", dpi=80)


def draw(axis: Axes, name: str, finding: Finding) -> None:
    x, y = zip(*finding.trace, strict=True)
    axis.plot(x, [v / 1e6 for v in y], ".-", color="#bbbbbb", markersize=3, linewidth=0.6)
    for part in finding.segments:
        ends = (part.start_value / 1e6, part.end_value / 1e6)
        axis.plot((part.start_x, part.end_x), ends, color=COLOURS[finding.verdict], linewidth=1.8)
    if finding.onset_x is not None:
        axis.axvline(finding.onset_x.value, color="#b2182b", linestyle=":")
    title = f"{name}: {finding.verdict.value} ({finding.confidence:.0%}), {finding.reason.value}"
    axis.set_title(title, fontsize=8)
    axis.set_xlabel(finding.axis.name, fontsize=7)
    axis.set_ylabel("MB", fontsize=7)
    axis.tick_params(labelsize=7)


if __name__ == "__main__":
    main()
