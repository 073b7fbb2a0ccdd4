"""Where a live screen is possible, and what is said where it is not."""

import os

import pytest
from terminals import Terminal, python

from memdiag.screen.possible import why_not

XTERM = {"TERM": "xterm"}
_ASKS = """
import os, sys
from memdiag.screen.possible import why_not
{before}
print("<" + why_not(2, {{"TERM": "xterm"}}) + ">")
"""
_WITHOUT_TEXTUAL = "sys.path[:] = []"
_BEHIND = """
if os.fork():
    os.wait()
    sys.exit()
os.setpgid(0, 0)
"""


def said_on_a_terminal(directory, *, before="", size=(24, 80)):
    command = python(_ASKS.format(before=before))
    with Terminal(command, directory=directory, size=size) as terminal:
        return terminal.until(r"<(.*)>").group(1).decode()


def test_a_dumb_terminal():
    assert "TERM=dumb" in why_not(2, {"TERM": "dumb"})
    assert "TERM=" in why_not(2, {})


def test_a_file(tmp_path):
    with (tmp_path / "log").open("w") as file:
        assert why_not(file.fileno(), XTERM) == "stderr is not a terminal"


def test_the_terminal_of_another_session():
    ours, theirs = os.openpty()
    assert why_not(theirs, XTERM) == "stderr is not memdiag's own terminal"
    os.close(ours)
    os.close(theirs)


def test_its_own_terminal_can(tmp_path):
    pytest.importorskip("textual")
    assert said_on_a_terminal(tmp_path) == ""


def test_a_small_terminal(tmp_path):
    found = said_on_a_terminal(tmp_path, size=(8, 30))
    assert found == "the terminal has 30x8 characters, fewer than 40x12"


def test_the_background(tmp_path):
    assert said_on_a_terminal(tmp_path, before=_BEHIND) == "memdiag runs in the background"


def test_without_textual(tmp_path):
    found = said_on_a_terminal(tmp_path, before=_WITHOUT_TEXTUAL)
    assert found == "Textual is not installed (pip install 'memdiag[live]')"
