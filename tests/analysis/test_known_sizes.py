"""What the match of growth with known sizes promises."""

from __future__ import annotations

import pytest

from memdiag.analysis.attribution.known_sizes import match, matched, sizes
from memdiag.values.findings import Interval, KnownSize, PhaseGrowth

GPT2 = sizes(124_000_000)


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


def test_plain_sgd_has_no_state_to_copy() -> None:
    assert set(sizes(1000, optimizer_values=0)) == {KnownSize.MODEL}


def test_half_precision_halves_the_model() -> None:
    assert sizes(1000, parameter_bytes=2)[KnownSize.MODEL] == 2000


def test_a_model_without_parameters_is_an_error() -> None:
    with pytest.raises(ValueError, match="parameters"):
        sizes(0)


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
