"""Lines read together by their form hold just what a search of each line finds in it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from memdiag.recording.inputs.lines import blocks, stamped
from memdiag.recording.inputs.source import Source
from memdiag.recording.parsing.fast_digits import numbers_of
from memdiag.recording.textlog import read_text
from memdiag.recording.textlog.discover_fields import find_fields
from memdiag.recording.textlog.extract_blocks import Collector
from memdiag.recording.textlog.line_templates import lines_of
from memdiag.recording.textlog.read_text import _to_look_at
from memdiag.recording.textlog.search_lines import TAGS

_WORDS = ["step", "rss", "vram:", "MB", "GB", "MB,", "|", "(", ")", "+", "-", "/", "/9", "[", "]"]
_WORDS += [",", ".", ":", "=", " ", "  ", "tensors", "mem", "e", "x", "%", "s", "é", "step:", "→"]
_WORDS += ["gpu0 mem", "gpu1 mem", "phase: fit", "phase: fit2", "pid 4711", "rank 0:", "Phase"]
_FRONTS = [
    "",
    "",
    "2026-02-07 12:00:05",
    "[2026-02-07 12:00:05,123] ",
    "  12:00:59.5 ",
    "(7:05:09)",
]
_FRONTS += ["INFO 2026/02/07T23:59:59 - ", "a 12:00:05 ", "2026-13-45 12:00:05 ", "\x1b[32m", "\t"]
_figures = st.one_of(
    st.integers(0, 99999).map(str),
    st.integers(0, 99999).map(lambda n: f"{n:,}"),
    st.integers(0, 999).map(lambda n: f"{n / 10}"),
    st.sampled_from(
        ["-5", "+7", "1e-4", "2.5e3", "0x1", "7b", "1.2.3", "1" * 20, "0.1" + "7" * 18]
    ),
)


@st.composite
def _logs(draw: st.DrawFn) -> bytes:
    """Lines of a few templates, whose figures and a few words are drawn anew for each."""
    lines = []
    for _ in range(draw(st.integers(1, 2))):
        front = draw(st.sampled_from(_FRONTS))
        template = draw(st.lists(st.sampled_from([*_WORDS, "#", "#", "#", "#"]), min_size=2))
        gap = draw(st.sampled_from(["", " ", " "]))
        for _ in range(draw(st.integers(4, 8))):
            words = [draw(_figures) if word == "#" else word for word in template]
            lines.append(front + gap.join(words))
    lines += draw(st.lists(st.sampled_from(lines), max_size=9))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    return end.join(draw(st.permutations(lines))).encode() + draw(st.sampled_from([b"", b"\n"]))


def _source(content: bytes) -> Source:
    return Source(name="log", path=None, content=content, whole=True, tail=content)


def _collected(content: bytes, lines_alike: int) -> pl.DataFrame | None:
    """All that is found, where so many lines of one form are read together."""
    (block,) = blocks(_source(content))
    fields = find_fields([line for line in stamped(block)["line"].to_list() if line])
    if not fields:
        return None
    collector = Collector(fields, lines_alike)
    collector.read(lines_of(block))
    found = collector.collected()
    columns = {f"field {n}": figures for n, figures in enumerate(found.values)}
    tagged = [name for name in TAGS if name in found.tags and (found.tags[name] >= 0).any()]
    frame = pl.DataFrame({**columns, "stamp": found.stamps}, nan_to_null=True)
    return frame.with_columns(collector.tags(name, found.tags[name]) for name in tagged)


@settings(max_examples=150)
@given(content=_logs())
@example(content=b"step 7 rss 5 MB\n\n\n" * 5 + b"\n" * 9)
@example(content=b"== Phase: fit ==\nstep 7 rss 5 MB\n" * 5 + b"in this phase we wait\n" * 3)
@example(content="é step 7 rss 5 MB\n".encode() * 3)
@example(content=b"step 7 gpu0 mem 5 MB\nstep 7 gpu1 mem 6 MB\n" * 3 + b"gpu1 mem 5 MB\n" * 3)
@example(content=b"rss/9|rss/9MB\n" * 4)
@example(content=b"rss /9 rss 0 MB\n" * 4)
@example(content=b"/9 Phase\n" * 4)
@example(content=b"0 rss /9\n10.0 rss /9\n49.3 rss /9\n1.2.3 rss /9")
@example(content=b"\xff step 7 rss 5 MB\n" * 5 + b"  \n\n \n")
@example(content=b"2026-02-07 12:00:05step phase: fit\n" * 4 + b"rss/9\n" * 4)
@example(content=b"step 7 rss 5 MB" + b" " * 3000 + b"\n" + b"step 8 rss 6 MB\n" * 5)
def test_forms_find_what_a_search_finds(content: bytes) -> None:
    searched = _collected(content, 10**9)
    together = _collected(content, 1)
    if searched is None or together is None:
        assert searched is together
        return
    assert_frame_equal(together, searched, check_exact=False, rel_tol=1e-14, abs_tol=0)


@settings(max_examples=100)
@given(content=_logs())
def test_fields_are_looked_for_on_the_same_lines_however_many_forms_there_are(
    content: bytes,
) -> None:
    (block,) = blocks(_source(content))
    few = _to_look_at(lines_of(block))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_text, "_FORMS_AT_MOST", 0)
        assert _to_look_at(lines_of(block)) == few


def _marks(texts: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.frombuffer("".join(texts).encode(), dtype=np.uint8).reshape(len(texts), -1)


@pytest.mark.parametrize(
    "texts",
    [
        ["0", "7", "9"],
        ["0.1", "0.3", "9.9"],
        ["-17,412.5", "-99,999.9"],
        ["+1.", "+2."],
        ["123456789012345", "999999999999999"],
        ["1e-4", "9e-9"],
        ["12345678901234567890", "99999999999999999999"],
        ["0.12345678901234567", "0.30000000000000004"],
    ],
    ids=lambda texts: texts[0],
)
def test_figures_are_those_that_python_reads(texts: list[str]) -> None:
    expected = [float(text.replace(",", "")) for text in texts]
    assert numbers_of(_marks(texts), texts[0]).tolist() == expected


def test_lines_of_many_forms_come_in_their_order() -> None:
    """Interleaved, of equal and of different lengths, with a few that are like no other."""
    lines = []
    for n in range(400):
        lines.append(f"step {n} rss {9000 + n} MB")
        lines.append([f"eval {n % 10} rss {n % 7} MB", f"save {n % 10} rss {n % 7} MB"][n % 3 % 2])
        if n % 50 == 0:
            lines.append(f"<{'x' * (n // 50)}> rss {n} MB")
    frame = _collected("\n".join(lines).encode(), 24)
    assert frame is not None
    expected = [float(line.split(" rss ")[1].split()[0]) * 1e6 for line in lines]
    assert frame["field 0"].to_list() == expected


@pytest.mark.parametrize("times", [3, 40], ids=["by search", "by form"])
def test_phases_named_above_the_lines_hold_for_the_lines_below(times: int) -> None:
    block = "=== Phase: {} ===\n" + "step 1 rss 5 MB\nthe phase goes on\n" * 2
    frame = _collected("".join(block.format(p) for p in ("fit", "eval") * times).encode(), 24)
    assert frame is not None
    named = frame.drop_nulls("field 0")["phase"].to_list()
    assert named == ["fit", "fit", "eval", "eval"] * times
