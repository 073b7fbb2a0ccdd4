"""Converts digits in the same columns of equally long texts, all at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memdiag.values.measurements import Floats, Ints

    Bytes = NDArray[np.uint8]

_PLAIN = re.compile(r"([-+]?)([0-9,]+)(?:\.([0-9]*))?")
# Integers of this many digits and this power of ten are exact, so that their quotient is rounded
# like a number that is parsed from text.
_EXACT_DIGITS = 15
_ZERO = ord("0")


def whole_number(marks: Bytes) -> Ints:
    """The numbers whose digits (at most 18, and nothing else) are the rows, shape (n, digits)."""
    value = np.zeros(len(marks), dtype=np.int64)
    for place in range(marks.shape[1]):
        value = value * 10 + (marks[:, place] - _ZERO)
    return value


def numbers_of(marks: Bytes, text: str) -> Floats:
    """The numbers in the rows, shape (n, length), which differ from `text` only in their digits.

    text: a number such as `-17,412.5` or `1e-4`.
    """
    found = _PLAIN.fullmatch(text)
    is_digit = np.array([mark.isdigit() for mark in text])
    if found is None or is_digit.sum() > _EXACT_DIGITS:
        kept = marks[:, np.array([mark != "," for mark in text])]
        return np.ascontiguousarray(kept).view(f"S{kept.shape[1]}").ravel().astype(np.float64)
    weights = np.zeros(len(text))
    weights[is_digit] = 10.0 ** np.arange(is_digit.sum() - 1, -1, -1)
    decimals = len(found.group(3) or "")
    whole: Floats = (marks - _ZERO) @ (-weights if found.group(1) == "-" else weights)
    return whole / 10.0**decimals if decimals else whole
