"""The status line of `memdiag run` on a terminal that the target writes to."""

import os
import re
import signal

import pytest
from screens import Screen
from terminals import CONCLUSION, MEMDIAG, Terminal, python

from memdiag.report.formats.status_line import SETTLE

_PRINTS = """
import sys, time
for n in range(60):
    sys.stdout.write(f"line {n}"); sys.stdout.flush(); time.sleep(0.03)
    sys.stderr.write(f" and on\\n"); sys.stderr.flush()
print("over")
"""
_LINES = [f"line {n} and on" for n in range(60)] + ["over"]


def test_the_targets_lines_stay_whole_beside_the_status_line(tmp_path):
    with Terminal([*MEMDIAG, "run", "--", *python(_PRINTS)], directory=tmp_path) as terminal:
        terminal.until(r"line 40 ")
        screen = Screen()
        screen.feed(terminal.screen)
        assert re.match(r"memdiag 0:0\d · ", screen.rows[-1])
        terminal.until(CONCLUSION)
        terminal.finish()
    before_report, settled, _ = terminal.screen.rpartition(SETTLE)
    screen = Screen()
    screen.feed(before_report + settled)
    assert screen.text == _LINES
    assert (screen.top, screen.bottom) == (0, 23)


@pytest.mark.slow
def test_quiet_and_dumb_terminals_see_the_targets_bytes_alone(tmp_path):
    with Terminal(python(_PRINTS), directory=tmp_path) as terminal:
        terminal.finish()
        plain = terminal.screen
    for options, term in ((["--quiet"], "xterm"), ([], "dumb")):
        command = [*MEMDIAG, "run", *options, "--", *python(_PRINTS)]
        with Terminal(command, directory=tmp_path, environ={"TERM": term}) as terminal:
            terminal.finish()
            assert terminal.screen.startswith(plain)


def test_sigkill_of_memdiag_leaves_the_terminal_in_order(tmp_path):
    program = (
        "import os; print('of', os.getppid(), 'ready'); input(); print('over'); open('done', 'w')"
    )
    # A shell leads the session, until the command has ended: its end would hang up the terminal.
    script = '"$@"; until test -e done; do sleep 0.05; done'
    command = ["sh", "-c", script, "-", *MEMDIAG, "run", "--", *python(program)]
    with Terminal(command, directory=tmp_path) as terminal:
        memdiag = int(terminal.until(r"of (\d+) ready").group(1))
        terminal.until(r"memdiag 0:0")
        os.kill(memdiag, signal.SIGKILL)
        terminal.until(re.escape(SETTLE.decode()))
        terminal.type("\n")
        terminal.until("over")
        screen = Screen()
        screen.feed(terminal.screen)
    assert (screen.top, screen.bottom) == (0, 23)
    assert "memdiag" not in "".join(screen.rows)
