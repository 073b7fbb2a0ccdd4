"""Budgets as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdiag.errors import UsageError
from memdiag.values.budgets import BudgetKind, Stretch, parse_budget
from memdiag.values.measurements import AxisKind

GROWTH = BudgetKind.GROWTH


@pytest.mark.parametrize(
    ("text", "metric", "amount", "length", "axis"),
    [
        ("1GB/50steps", "", 1e9, 50, AxisKind.STEP),
        ("1GB/step", "", 1e9, 1, AxisKind.STEP),
        ("1 GB / 1,000 steps", "", 1e9, 1000, AxisKind.STEP),
        ("5GiB/1000iterations", "", 5 * 2**30, 1000, AxisKind.STEP),
        ("1MB/batch", "", 1e6, 1, AxisKind.STEP),
        ("1MB/2batches", "", 1e6, 2, AxisKind.STEP),
        ("10MB/epoch", "", 1e7, 1, AxisKind.EPOCH),
        ("50MB/min", "", 5e7, 60, AxisKind.SECONDS),
        ("50MB/1.5h", "", 5e7, 5400, AxisKind.SECONDS),
        ("1KB/1000requests", "", 1e3, 1000, AxisKind.REQUEST),
        ("rss=1GB/50steps", "rss", 1e9, 50, AxisKind.STEP),
        ("RSS (MB)=1GB/50steps", "RSS (MB)", 1e9, 50, AxisKind.STEP),
    ],
)
def test_growth_is_an_amount_per_stretch_of_an_axis(
    text: str, metric: str, amount: float, length: float, axis: AxisKind
) -> None:
    budget = parse_budget(GROWTH, text, given_as="--max-growth")
    assert (budget.metric, budget.amount, budget.in_bytes) == (metric, amount, True)
    assert budget.per == Stretch(length=length, axis=axis)
    assert budget.text == f"--max-growth {text}"


@pytest.mark.parametrize(("text", "amount"), [("100/1000steps", 100), ("0.5/step", 0.5)])
def test_plain_number_is_a_count(text: str, amount: float) -> None:
    budget = parse_budget(GROWTH, text, given_as="--max-tensors-growth", metric="tensors")
    assert (budget.metric, budget.amount, budget.in_bytes) == ("tensors", amount, False)


@pytest.mark.parametrize("kind", [BudgetKind.PEAK, BudgetKind.VARIATION])
def test_peak_and_variation_have_no_stretch(kind: BudgetKind) -> None:
    assert parse_budget(kind, "vram=16GB", given_as="x").amount == 16e9
    with pytest.raises(UsageError, match=r"not a \w+ budget"):
        parse_budget(kind, "16GB/step", given_as="--max-peak")


@pytest.mark.parametrize(
    "text",
    ["", "1GB", "GB/step", "1GB/", "1GB/0steps", "1GB/parsec", "-1GB/step", "nan/step", "inf/step",
     "1GB/step/step", "=1GB/step", "a=b=1GB/step", "-5/step"],
)  # fmt: skip
def test_invalid_budget_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match="not a growth budget") as caught:
        parse_budget(GROWTH, text, given_as="--max-growth")
    assert "1GB/50steps" in caught.value.remedy


@given(st.text(max_size=30), st.sampled_from(BudgetKind))
def test_any_text_is_a_budget_or_a_usage_error(text: str, kind: BudgetKind) -> None:
    try:
        budget = parse_budget(kind, text, given_as="--x")
    except UsageError:
        return
    assert 0 <= budget.amount < float("inf")
