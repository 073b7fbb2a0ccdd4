"""How often verdicts turned out right. Written by tools/refit_confidence.py; do not edit."""

from __future__ import annotations

# (verdict group, reason) -> share of such verdicts that were right, for each of
# `confidence.SIZES`; None where there were none. Of a whole group below.
RIGHT: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("leak", "exact_metric"): (None, None, None, None, 0.9983),
    ("leak", "growth_after_plateau"): (0.9199, 0.8512, 0.9954, 0.9982, 0.9990),
    ("leak", "outlasts_warmup"): (0.9972, 0.9986, 0.9972, 0.9990, 0.9970),
    ("leak", "regular_growth"): (0.9972, 0.9965, None, 0.9954, 0.9990),
    ("open", "few_pages"): (0.9094, None, None, None, 0.7018),
    ("open", "irregular"): (None, 0.8447, 0.8641, 0.8261, 0.7275),
    ("open", "not_collected"): (None, 0.8792, None, None, None),
    ("open", "not_memory"): (0.5459, None, None, None, None),
    ("open", "recent_step"): (None, 0.9094, 0.9714, 0.8804, 0.4647),
    ("open", "reclaimed_before"): (0.4913, 0.5913, 0.6284, 0.4094, None),
    ("open", "slowing"): (0.9360, 0.9164, 0.7913, 0.8641, 0.5570),
    ("open", "still_climbing"): (0.8637, 0.9475, 0.9681, 0.9868, 0.8913),
    ("open", "uncertain_trend"): (0.5268, 0.6076, 0.5254, 0.6177, 0.3723),
    ("stable", "bounded_cycles"): (0.9895, 0.9964, 0.9841, 0.9731, 0.9990),
    ("stable", "falling"): (0.9859, 0.9903, 0.9964, 0.9958, 0.9978),
    ("stable", "flat"): (0.9983, 0.9988, 0.9990, 0.9989, 0.9923),
    ("stable", "negligible"): (None, None, None, None, 0.9930),
    ("stable", "overruled"): (None, None, 0.4895, None, 0.9895),
    ("stable", "plateau"): (0.9416, 0.9899, 0.9263, 0.9477, 0.9973),
}
RIGHT_OF_GROUP = {
    "leak": 0.9948,
    "open": 0.8195,
    "stable": 0.9794,
}
