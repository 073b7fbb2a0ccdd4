"""The lines of the live screen at every size, for every state of a run."""

import os

import pytest
from rich.cells import cell_len
from screen.views import flat, leaking, view_of

from memdiag.capture.launch.output_tee import FRAME
from memdiag.screen import panes
from memdiag.screen.layout import Layout
from memdiag.screen.messages import About
from memdiag.screen.view import View

SIZES = [(60, 20), (80, 24), (200, 60), (40, 12), (79, 13), (131, 23)]


def text_of(view, width=80, height=24, **state):
    state = {"is_paused": False, "message": "", **state}
    return [line.plain for line in Layout(view).lines(width, height, **state)]


@pytest.fixture
def output():
    ours, theirs = os.pipe()
    data = b"".join(b"step %d loss 0.5\n" % at for at in range(50))
    os.write(theirs, FRAME.pack(0.0, 0, len(data)) + data)
    yield ours
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_every_size_is_filled_and_no_line_is_too_long(size, ascii_only, output):
    ranks = tuple(f"rank{at}" for at in range(12))
    view = view_of(processes=ranks, ticks=40, phase="eval", ascii_only=ascii_only, copies=(output,))
    view.look()
    lines = text_of(view, *size)
    assert len(lines) == size[1]
    assert max(cell_len(line) for line in lines) <= size[0]
    assert not ascii_only or all(line.isascii() for line in lines)


def test_a_leak_shows_its_rate_its_confidence_and_the_nearest_limit():
    lines = text_of(view_of(leaking, metric="malloc_bytes", ticks=700))
    assert lines[0].startswith("  LEAK  +1.00 MB per step since step 0, malloc of main")
    assert lines[0].endswith("% confident")
    assert lines[1].startswith(" host RAM (16.0 GB) full in about 23 min")
    assert lines[2].startswith(" 0:01:10 · step 699 · 1.70 GB · memdiag ")
    assert "onset, step 0" in "\n".join(lines)


def test_an_open_verdict_says_what_it_needs():
    lines = text_of(view_of(leaking, ticks=40))
    assert lines[0].startswith("  NO VERDICT YET  +1.00 MB per step")
    assert "more steps" in lines[1]
    assert "onset" not in "\n".join(lines)


def test_a_stable_run_shows_its_level_and_what_is_left():
    lines = text_of(view_of(flat, ticks=400))
    assert lines[0].startswith("  STABLE SO FAR  flat at 1.00 GB, RSS of main")
    assert "15.0 GB below host RAM (16.0 GB)" in lines[1]


def test_before_any_sample_there_is_a_screen():
    view = View(About(title="x", is_ours=True, can_stop=True, ascii_only=False, directory="/"))
    lines = text_of(view)
    assert "COLLECTING DATA" in lines[0]
    assert "waiting for samples" in "\n".join(lines)


def test_the_output_is_below_the_table_or_beside_it(output):
    view = view_of(copies=(output,))
    view.look()
    narrow = text_of(view, 80, 24)
    assert narrow[-2] == " step 49 loss 0.5"
    wide = text_of(view, 200, 60)
    (row,) = [line for line in wide if "main (100)" in line]
    assert "step " in row


def test_the_phases_are_a_band_under_the_axis():
    view = view_of(phase="train", ticks=100)
    band = text_of(view, 80, 30)
    assert any(set(line.strip()) <= set("train ") and "train" in line for line in band)


def test_names_from_outside_are_inert():
    hostile = "\x1b[2J[red]\n\u202erank\x07"
    view = view_of(processes=(hostile, "b"), phase=hostile, title=hostile, ticks=60)
    view.has_output = True
    for size in SIZES:
        for line in Layout(view).lines(*size, is_paused=False, message=""):
            assert line.plain.isprintable()
            assert cell_len(line.plain) <= size[0]
    assert "[red]" in "\n".join(text_of(view, 200, 60))


def test_many_processes_are_sorted_and_the_rest_is_counted():
    view = view_of(processes=tuple(f"rank{at}" for at in range(30)), ticks=30)
    for at, process in enumerate(view.processes.values()):
        process.readings["rss_bytes"] = 1e9 + 1e6 * at
    view.order = "rss_bytes"
    lines = panes.table(view, 80, 6)
    assert lines[1].plain.split()[0] == "rank29"
    assert "26 more processes" in lines[-1].plain
    assert len(lines) == 6


def test_a_reading_that_is_missing_is_a_question_mark():
    view = view_of(processes=("main", "loader1"), ticks=30)
    view.processes[100].readings["tensors"] = 12.0
    rows = [line.plain.split() for line in panes.table(view, 100, 5)]
    assert rows[0][:3] == ["process", "↓", "RSS"]
    assert rows[1][0] == "loader1"
    assert rows[1][4] == "?"
    assert rows[2][4] == "12"


def test_a_process_that_has_ended_leaves_the_table():
    view = view_of(processes=("main", "loader1"), ticks=30)
    view.processes[101].seen_s -= 5.0
    assert [process.name for process in view.alive()] == ["main"]


def test_the_series_that_decides_is_shown_until_another_is_chosen():
    view = view_of(processes=("a", "b"))
    assert view.frame.found is not None
    assert view.shown == (view.frame.found.process, "rss_bytes")
    names = [key[0] for key in view.series()]
    view.choose(names.index("b"))
    assert view.shown == ("b", "rss_bytes")
    view.choose_next(1)
    assert view.shown == (names[(names.index("b") + 1) % 3], "rss_bytes")
    view.choose(99)
    assert view.shown in view.series()


def test_user_marks_are_drawn_where_they_were_set():
    view = view_of()
    view.mark()
    assert "mark 1" in "\n".join(text_of(view))


def test_paused_and_messages_are_shown():
    lines = text_of(view_of(), is_paused=True, message=" saved to x.svg")
    assert "PAUSED" in lines[2]
    assert lines[-1] == " saved to x.svg"
