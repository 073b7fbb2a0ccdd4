"""Draw what docs/method.md shows: a dozen real traces with the regimes that were found, and each
window with the growth in it.

    python tools/method_pictures.py

Needs matplotlib (`pip install -e .[bench]`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from memdiag.analysis.decision import decide
from memdiag.analysis.decision.case import Case, Context, Rule, Window
from memdiag.analysis.diagnose import diagnose
from memdiag.analysis.policy import DEFAULT
from memdiag.analysis.preprocessing.prepare import prepare
from memdiag.analysis.stats.changepoint import stretches
from memdiag.recording.read import read
from memdiag.values.findings import Finding
from memdiag.values.measurements import Recording
from memdiag.values.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import _jobs  # noqa: E402
import _series  # noqa: E402

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
GREY, RED, BLUE = "#aaaaaa", "#b2182b", "#2166ac"


def main() -> None:
    figure, axes = plt.subplots(4, 3, figsize=(13, 13))
    for axis, (name, metric) in zip(axes.ravel(), TRACES, strict=True):
        found = diagnose(corpus(name))
        draw(axis, name, next(f for f in found.series if f.metric == metric))
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "method_traces.png", dpi=80)
    figure, axes = plt.subplots(2, 3, figsize=(13, 7))
    for axis, panel in zip(axes.ravel(), PANELS, strict=False):
        draw_window(axis, *panel)
    axes.ravel()[-1].axis("off")
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "method_windows.png", dpi=80)


def corpus(name: str) -> Recording:
    """A recording of the labelled corpus."""
    return read(str(ROOT / "fixtures" / "corpus" / f"{name}.csv"))


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


Mark = Callable[["Axes", Case, Window], None]


def draw_window(axis: Axes, recording: Recording, metric: str, proposal: Rule, mark: Mark) -> None:
    """One series, the window that proposes a leak in it, and what that window looks at."""
    series = next(s for s in recording.series if s.metric == metric)
    case = Case(prepare(series, DEFAULT), DEFAULT, Context())
    window = case.propose(proposal)
    assert window is not None
    prepared = case.prepared
    first = float(prepared.x[min(window.first_sample, len(prepared.x) - 1)])
    if proposal is decide.WAVES:
        first = float(window.fit.prepared.x[0])
    axis.axvspan(first, float(prepared.x[-1]), color="#fddbc7", alpha=0.5, linewidth=0)
    axis.plot(prepared.all_x, prepared.all_y / 1e6, ".", color=GREY, markersize=2)
    mark(axis, case, window)
    name = Path(recording.source).stem
    found = f"posterior {window.posterior:.3f}"
    axis.set_title(f"{proposal.name}: {name}, {found}", fontsize=9)
    axis.set_xlabel(prepared.axis.name, fontsize=7)
    axis.set_ylabel("MB", fontsize=7)
    axis.tick_params(labelsize=7)


def by_steps(axis: Axes, case: Case, window: Window) -> None:
    """The level after each step."""
    steps = case.staircase
    assert steps is not None
    axis.plot(steps.at, steps.level / 1e6, "o-", color=RED, markersize=4, linewidth=1)


def by_regimes(axis: Axes, case: Case, window: Window) -> None:
    """The regimes; those of the window in red, each with a dot where it begins."""
    x, y = case.fit.binned.x, case.fit.binned.y
    for piece in case.fit.segmentation.pieces:
        at, level = x[piece.first : piece.last], y[piece.first : piece.last].mean()
        fitted = level + piece.slope * (at - at.mean())
        inside = piece.first >= window.fit.tail
        axis.plot(at, fitted / 1e6, color=RED if inside else BLUE, linewidth=1.8)
        if inside:
            axis.plot(at[:1], fitted[:1] / 1e6, "o", color=RED, markersize=4)


def by_blocks(axis: Axes, case: Case, window: Window) -> None:
    """The averages of its blocks, and the line through them."""
    first, common = window.first_sample, DEFAULT.common
    x, y = case.prepared.x[first:], case.prepared.y[first:]
    blocks = stretches(x, y, common.blocks, DEFAULT)
    line = np.polyval(np.polyfit(blocks.x, blocks.y, 1), blocks.x)
    axis.plot(blocks.x, blocks.y / 1e6, "s", color=RED, markersize=5)
    axis.plot(blocks.x, line / 1e6, color=RED, linewidth=1)


def by_turns(axis: Axes, case: Case, window: Window) -> None:
    """The turning points, highs brought down by the height of the waves."""
    turned = window.fit.prepared
    axis.plot(turned.x, turned.y / 1e6, "o-", color=RED, markersize=4, linewidth=1)


STAIRCASE, LAST_REGIME, WHOLE_CLIMB = decide.WINDOWS
PANELS: tuple[tuple[Recording, str, Rule, Mark], ...] = (
    (_series.make("leak_stairs", 77, 6).recording(), "rss_bytes", STAIRCASE, by_steps),
    (_series.make("leak_late", 77, 10).recording(), "rss_bytes", LAST_REGIME, by_regimes),
    (corpus("own_leak_dict_5k_steps"), "malloc_inuse_bytes", WHOLE_CLIMB, by_regimes),
    (_series.make("leak_pausing", 77, 5).recording(), "rss_bytes", decide.COARSE, by_blocks),
    (_jobs.make("waves_rise", 1, 0).recording, "rss_bytes", decide.WAVES, by_turns),
)


if __name__ == "__main__":
    main()
