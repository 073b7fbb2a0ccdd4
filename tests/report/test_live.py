import os
import pty
from dataclasses import replace

import pytest
from report import diagnoses
from rich.cells import cell_len
from screens import Screen

from memdiag.report.formats.status_line import SETTLE, LastRow, Status, line, trend, wanted
from memdiag.values.verdict import Reason

FULL = Status(
    elapsed_s=3725.4,
    memory_bytes=17_700_000_000,
    processes=5,
    step=12_345,
    phase="train/forward",
    trend="growing +0.1 MB per step",
    limit="host RAM full in about 13 min",
)


def test_the_line_says_what_is_known():
    assert line(FULL, width=140) == (
        "memdiag 1:02:05 · step 12,345 · 17.7 GB · growing +0.1 MB per step"
        " · host RAM full in about 13 min · train/forward · 5 processes"
    )
    assert line(Status(elapsed_s=65, memory_bytes=None), width=80) == "memdiag 1:05"


def test_no_verdict_is_shown_as_failure_while_it_may_still_come():
    growing = diagnoses.inconclusive().recordings[0].series[0]
    level = replace(growing, growth_per_x=diagnoses.interval(0.0, 1e6))
    early = replace(growing, reason=Reason.TOO_FEW_SAMPLES)
    assert trend(None) == trend(early) == "collecting data"
    assert trend(growing) == "growing +169 MB per step"
    assert trend(level) == "no clear trend yet"
    assert trend(diagnoses.stable().recordings[0].series[0]) == "flat so far"
    assert trend(diagnoses.warmup().recordings[0].series[0]) == "flat since step 90"
    assert trend(diagnoses.leak()) == "LEAK 99%, +291 MB per step"


@pytest.mark.parametrize("width", range(20, 120))
def test_the_line_fits_whatever_the_width(width):
    assert cell_len(line(FULL, width=width)) <= width


@pytest.mark.parametrize("phase", ["\x1b[2J\x07", "a\nb", "[bold]x", "漢字" * 40])
def test_a_phase_name_from_outside_cannot_act_on_the_terminal(phase):
    shown = line(Status(elapsed_s=1, phase=phase), width=79)
    assert "\x1b" not in shown
    assert "\n" not in shown
    assert cell_len(shown) <= 79


class OnTerminal:
    """A `LastRow` on a terminal that a target writes to as well."""

    def __init__(self, rows: int = 10, columns: int = 60) -> None:
        self.ours, self.theirs = pty.openpty()
        self.resize(rows, columns)
        self.screen = Screen(rows, columns)
        self.row = LastRow(self.theirs, is_wanted=lambda: True)

    def resize(self, rows: int, columns: int) -> None:
        import fcntl
        import struct
        import termios

        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, size)

    def target(self, text: str) -> None:
        os.write(self.theirs, text.encode())

    def look(self) -> Screen:
        os.write(self.theirs, b"\x1b[0m!")
        data = b""
        while not data.endswith(b"\x1b[0m!"):
            data += os.read(self.ours, 65536)
        self.screen.feed(data[: -len(b"\x1b[0m!")])
        return self.screen

    def close(self) -> None:
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def terminal():
    terminal = OnTerminal()
    yield terminal
    terminal.close()


def test_lines_written_in_pieces_stay_whole(terminal):
    terminal.row.reserve()
    for number in range(40):
        for piece in ("line ", str(number), " of the", " target"):
            terminal.target(piece)
            terminal.row.show(lambda n=number: Status(elapsed_s=n))
            terminal.look()
        terminal.target("\n")
    screen = terminal.look()
    assert screen.rows[-1].startswith("memdiag 0:39")
    terminal.row.release()
    wanted_text = [f"line {number} of the target" for number in range(40)]
    assert terminal.look().text == wanted_text


def test_progress_bars_that_return_to_the_lines_start_work_as_ever(terminal):
    terminal.row.reserve()
    for percent in range(0, 101, 10):
        terminal.target(f"\rprogress {percent:3} %")
        terminal.row.show(lambda p=percent: Status(elapsed_s=p))
    terminal.target("\ndone\n")
    terminal.row.release()
    assert terminal.look().text == ["progress 100 %", "done"]


def test_after_the_release_the_whole_screen_scrolls_again(terminal):
    terminal.target("\n" * 9)
    terminal.row.reserve()
    terminal.row.show(lambda: Status(elapsed_s=1))
    terminal.row.release()
    screen = terminal.look()
    assert (screen.top, screen.bottom) == (0, 9)
    assert screen.text == []


def test_the_row_follows_a_resize(terminal):
    terminal.row.reserve()
    terminal.resize(8, 60)
    terminal.screen = Screen(8, 60)
    terminal.row.show(lambda: Status(elapsed_s=61))
    screen = terminal.look()
    assert (screen.bottom, screen.rows[-1]) == (6, "memdiag 1:01")


def test_nothing_is_written_where_nothing_changed(terminal):
    terminal.row.reserve()
    terminal.row.show(lambda: Status(elapsed_s=1.0))
    terminal.look()
    before = list(terminal.screen.rows)
    terminal.row.show(lambda: Status(elapsed_s=1.4))
    os.write(terminal.theirs, b"!")
    assert os.read(terminal.ours, 100) == b"!"
    assert before == terminal.screen.rows


def test_without_a_reserved_row_nothing_is_ever_shown(terminal):
    terminal.row.show(lambda: Status(elapsed_s=1.0))
    terminal.row.release()
    assert terminal.look().text == []


def test_a_terminal_that_went_away_is_no_error():
    terminal = OnTerminal()
    terminal.row.reserve()
    terminal.close()
    terminal.row.show(lambda: Status(elapsed_s=1.0))
    terminal.row.release()


@pytest.mark.parametrize("term", ["dumb", "", "unknown"])
def test_no_line_on_a_terminal_that_cannot_move_its_cursor(term):
    assert not wanted(0, {"TERM": term})


def test_no_line_where_there_is_no_terminal(tmp_path):
    with (tmp_path / "log").open("w") as log:
        assert not wanted(log.fileno(), {"TERM": "xterm"})


def test_what_settles_the_terminal_needs_no_knowledge_of_it():
    screen = Screen(10, 60)
    screen.feed(b"\x1b7\x1b[1;9r\x1b8text" + SETTLE + b" goes on")
    assert screen.text == ["text goes on"]
    assert (screen.top, screen.bottom) == (0, 9)
