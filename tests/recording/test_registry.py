"""Which format reads a source does not depend on the order of the table of formats."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from pathlib import Path

import pytest

from memdiag.recording.inputs.source import open_source
from memdiag.recording.registry import FORMATS

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = sorted(
    path
    for folder in ("corpus", "documents", "exports", "runs", "comparisons")
    for path in (FIXTURES / folder).rglob("*")
    if path.is_file()
)


def test_each_name_is_given_once() -> None:
    names = [family.name for family in FORMATS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_formats_of_one_confidence_exclude_each_other(path: Path) -> None:
    by_confidence: dict[float, list[str]] = defaultdict(list)
    with contextlib.closing(open_source(str(path))) as source:
        for family in FORMATS:
            if family.kind is source.kind and family.sniff(source):
                by_confidence[family.confidence].append(family.name)
    assert all(len(names) == 1 for names in by_confidence.values()), dict(by_confidence)
