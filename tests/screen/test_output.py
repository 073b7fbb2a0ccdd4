"""The last lines of the job's output, as the screen shows them."""

import os

import pytest

from memdiag.capture.launch.output_tee import FRAME
from memdiag.screen.output import LastLines, Said


@pytest.fixture
def copy():
    ours, theirs = os.pipe()

    def write(data: bytes) -> None:
        os.write(theirs, FRAME.pack(0.0, 0, len(data)) + data)

    yield LastLines([ours]), write
    os.close(ours)
    os.close(theirs)


def test_lines_and_the_unfinished_last_one(copy):
    lines, write = copy
    write(b"one\ntwo\r\nthr")
    assert lines.look()
    assert lines.last(9) == ["one", "two", "thr"]
    write(b"ee\n")
    lines.look()
    assert lines.last(2) == ["two", "three"]
    assert not lines.look()


def test_a_progress_bar_shows_its_present_state(copy):
    lines, write = copy
    write(b"10% |#   |\r20% |##  |\r30% |### |")
    lines.look()
    assert lines.last(1) == ["30% |### |"]


def test_what_a_terminal_would_act_upon_is_inert(copy):
    lines, write = copy
    write(b"\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2J\x1b(B[bold]x[/] \x07\x9b \xff\n")
    lines.look()
    (line,) = lines.last(1)
    assert line.startswith("red [bold]x[/] \\x07")
    assert line.isprintable()


def test_a_character_split_between_two_writes_is_whole(copy):
    lines, write = copy
    write("é".encode()[:1])
    lines.look()
    write("é\n".encode()[1:])
    lines.look()
    assert lines.last(1) == ["é"]


def test_a_flood_costs_a_bounded_amount_of_memory(copy):
    lines, write = copy
    for _ in range(200):
        write(b"x" * 30_000)
        lines.look()
    assert len(lines.last(1)[0]) <= 500
    write(b"\nend\n")
    lines.look()
    assert lines.last(1) == ["end"]


def test_a_closed_copy_is_the_end(copy):
    ours, theirs = os.pipe()
    os.close(theirs)
    lines = LastLines([ours])
    assert not lines.look()
    assert lines.last(5) == []
    os.close(ours)


def test_the_latest_message_of_memdiag(tmp_path):
    with (tmp_path / "said").open("w+b", buffering=0) as file:
        said = Said(file.fileno())
        assert not said.look()
        file.write(b"memdiag: first\nmemdiag: RSS is above 1 GB\x1b[2J\n")
        assert said.look()
        assert said.latest == "RSS is above 1 GB\\x1b[2J"
        assert not said.look()
