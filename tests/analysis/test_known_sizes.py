"""What the match of growth with known sizes promises."""

from __future__ import annotations

import pytest

from memdiag.analysis.attribution.known_sizes import as_large_as, match, matched, sizes
from memdiag.values.findings import Interval, KnownSize, PhaseGrowth

GPT2 = sizes(4 * 124_000_000)


def test_the_hybrid_runs_quantum_is_2_93_copies_of_the_model() -> None:
    found = match(1456e6, {KnownSize.MODEL: GPT2[KnownSize.MODEL]})
    assert found is not None
    assert found.what is KnownSize.MODEL
    assert found.size_bytes == 496_000_000
    assert found.multiple == pytest.approx(2.935, abs=0.001)


def test_a_broken_multiple_is_with_model_sizes() -> None:
    found = match(1456e6, GPT2)
    assert found is not None
    assert found.what is KnownSize.MODEL


def test_one_copy_of_the_model_is_one_model() -> None:
    found = match(497e6, GPT2, spread=0.0)
    assert found is not None
    assert found.what is KnownSize.MODEL
    assert round(found.multiple) == 1


def test_a_whole_training_state_is_named_rather_than_four_models() -> None:
    found = match(4 * 496e6, GPT2)
    assert found is not None
    assert found.what is KnownSize.TRAINING_STATE


@pytest.mark.parametrize("growth", [1e3, 1e12])
def test_growth_of_another_order_matches_nothing(growth: float) -> None:
    assert match(growth, GPT2) is None


def test_every_phase_gets_its_own_match() -> None:
    row = PhaseGrowth(
        phase="eval",
        events=3,
        growing_events=3,
        growth_per_event=Interval(value=496e6, low=490e6, high=500e6),
        spread=0.01,
        share=1.0,
        p_value=0.001,
    )
    (found,) = matched([row], GPT2)
    assert found.match is not None
    assert found.match.what is KnownSize.MODEL


def test_an_item_may_be_as_large_as_the_model_or_what_its_training_keeps() -> None:
    model_bytes = 1_000_000
    found = {size: as_large_as(size, model_bytes) for size in (1.0e6, 1.03e6, 2.01e6, 4.1e6)}
    assert list(found.values()) == [
        KnownSize.MODEL,
        KnownSize.MODEL,
        KnownSize.OPTIMIZER_STATE,
        KnownSize.TRAINING_STATE,
    ]
    for size in (0.98e6, 1.2e6, 3.0e6):
        assert as_large_as(size, model_bytes) is None
    assert as_large_as(0.0, 0) is None
    assert as_large_as(100.0, 100) is None
