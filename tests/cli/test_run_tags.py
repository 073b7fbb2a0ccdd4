"""Steps and phases from the target's output: real processes, whose output is unchanged."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import MEMDIAG, PATIENCE_S, Terminal, python

PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "programs"
STEP = ("--step-regex", r"[Ss]tep +(\d+)")


def run(directory: Path, *arguments: str, **more: object) -> subprocess.CompletedProcess[bytes]:
    pipe = subprocess.PIPE
    settings = {"stdout": pipe, "stderr": pipe, "stdin": subprocess.DEVNULL, **more}
    command = [*MEMDIAG, "run", "-q", "-o", "r.csv", *arguments]
    return subprocess.run(command, cwd=directory, check=False, timeout=PATIENCE_S, **settings)


def rows(directory: Path, name: str = "r.csv") -> list[dict[str, str]]:
    with (directory / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def notes(directory: Path) -> str:
    return "\n".join(json.loads((directory / "r.meta.json").read_text())["notes"])


# -- the output --------------------------------------------------------------------------------

_NOISE = """
import os, random, sys
random.seed(5)
for n in range(400):
    stream = random.choice((1, 2))
    os.write(stream, random.randbytes(random.choice((0, 1, 7, 4096, 70000))) + b"step %d\\n" % n)
sys.exit(9)
"""


def test_every_byte_arrives_in_its_stream_and_the_status_too(tmp_path):
    plain = subprocess.run(python(_NOISE), capture_output=True, check=False)
    watched = run(tmp_path, *STEP, "--", *python(_NOISE))
    assert watched.stdout == plain.stdout
    assert watched.stderr.startswith(plain.stderr)
    assert watched.returncode == plain.returncode == 9


def test_streams_that_lead_to_one_place_keep_their_order(tmp_path):
    with (tmp_path / "both.log").open("wb") as both:
        run(tmp_path, *STEP, "--", *python(_NOISE), stdout=both, stderr=both)
    with (tmp_path / "plain.log").open("wb") as both:
        subprocess.run(python(_NOISE), stdout=both, stderr=both, check=False)
    plain = (tmp_path / "plain.log").read_bytes()
    assert (tmp_path / "both.log").read_bytes().startswith(plain)


def test_without_these_options_the_streams_are_the_very_same(tmp_path):
    program = "import os; s = os.fstat(1); print(s.st_dev, s.st_ino)"
    ours, theirs = os.pipe()
    with os.fdopen(ours) as reading:
        run(tmp_path, "--", *python(program), stdout=theirs)
        os.close(theirs)
        here = os.fstat(reading.fileno())
        assert reading.read().split() == [str(here.st_dev), str(here.st_ino)]


def test_closed_reader_ends_the_target_as_without_memdiag(tmp_path):
    script = '"$@" | head -1; echo "${PIPESTATUS[0]}"'
    program = "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile 1: print('y')"
    command = [*MEMDIAG, "run", "-q", "-o", "r.csv", *STEP, "--", *python(program)]
    ended = subprocess.run(
        ["bash", "-c", script, "-", *command],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ended.stdout.split() == [b"y", b"141"], ended.stderr


def test_surviving_processes_can_still_write(tmp_path):
    daemon = "import sys; sys.stdin.readline(); print('late', flush=True)"
    program = (
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {daemon!r}])\n"
        "print('step 1', flush=True)"
    )
    command = [*MEMDIAG, "run", "-q", "-o", "r.csv", *STEP, "--", *python(program)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as memdiag:
        assert memdiag.stdout.readline() == "step 1\n"
        memdiag.wait(PATIENCE_S)
        memdiag.stdin.write("\n")
        memdiag.stdin.flush()
        assert memdiag.stdout.read() == "late\n"


def test_sigkill_of_memdiag_leaves_the_targets_output_whole(tmp_path):
    program = "print('ready', flush=True); input(); print('over' * 99999)"
    command = [*MEMDIAG, "run", "-q", "-o", "r.csv", *STEP, "--", *python(program)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True) as memdiag:
        assert memdiag.stdout.readline() == "ready\n"
        memdiag.kill()
        memdiag.wait()
        memdiag.stdin.write("\n")
        memdiag.stdin.flush()
        assert memdiag.stdout.read() == "over" * 99999 + "\n"


# -- the terminal ------------------------------------------------------------------------------

_ON_TERMINAL = """
import os, signal, sys, termios
print(*map(os.isatty, (0, 1, 2)), os.get_terminal_size(1), flush=True)
sizes = []
def resized(*_):
    size = os.get_terminal_size(1)
    if size not in sizes:
        sizes.append(size)
        print("now", size.lines, flush=True)
signal.signal(signal.SIGWINCH, resized)
print("step 1 ready", flush=True)
for line in sys.stdin:
    print("read", line.strip(), flush=True)
print("end of input")
"""


def test_a_terminal_stays_one_with_its_size_and_its_end_of_input(tmp_path):
    command = [*MEMDIAG, "run", "-q", "-o", "r.csv", *STEP, "--", *python(_ON_TERMINAL)]
    with Terminal(command, directory=tmp_path, size=(31, 97)) as terminal:
        terminal.until(r"True True True os.terminal_size\(columns=97, lines=31\)")
        terminal.until("ready")
        terminal.resize(44, 66)
        terminal.until("now 44")
        terminal.type("hello\n")
        terminal.until("read hello")
        terminal.type("\x04")
        terminal.until("end of input\r\n")
        assert terminal.finish() in (0, 3)
        assert b"\r\r" not in terminal.screen
    assert "1" in {row["step"] for row in rows(tmp_path)}


def test_ctrl_c_and_ctrl_z_are_the_real_terminals(tmp_path):
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, lambda *_: print('got it', flush=True))\n"
        "print('step 1 ready', flush=True)\n"
        "while (line := sys.stdin.readline()) != 'end\\n': pass\n"
        "print('over')\n"
        "sys.exit(5)"
    )
    (tmp_path / "target.py").write_text(program)
    memdiag = " ".join([*MEMDIAG, "run", "-q", "-o", "r.csv", "--step-regex", "'step (.)'", "--"])
    with Terminal(["bash", "--norc", "-i"], directory=tmp_path, environ={"PS1": "PROMPT "}) as term:
        term.until("PROMPT")
        term.type(f"{memdiag} {sys.executable} -u target.py\n")
        term.until("ready")
        term.type("\x1a")
        term.until("Stopped.*PROMPT")
        term.type("fg\n")
        # (The shell names the job before it gives the terminal to it.)
        term.until(r"fg\r\n.*target.py.*memdiag \d:\d")
        term.type("\x03")
        term.until("got it")
        term.type("end\n")
        term.until("over.*PROMPT")
        term.type("exit\n")
        term.finish()
    assert term.screen.count(b"got it") == 1


# -- the tags ----------------------------------------------------------------------------------


def test_steps_phases_and_counters_are_recorded(tmp_path):
    program = (
        "import time\n"
        "for n in range(1, 21):\n"
        "    print('step', n, 'phase:', 'abc'[n // 5 % 3], 'copies', n // 2, flush=True)\n"
        "    time.sleep(0.02)"
    )
    patterns = ["--phase-regex", r"phase: (\w)", "--counter-regex", r"copies=copies (\d+)"]
    patterns += ["--phase-regex", r"stage (\w)"]
    run(tmp_path, *STEP, *patterns, "--", sys.executable, "-I", "-c", program)
    tree = [row for row in rows(tmp_path) if row["process"] == "tree"]
    assert {row["step"]: row["copies"] for row in tree if row["copies"]} == {
        str(n): str(n // 2) for n in range(1, 21)
    }
    phases = {row["phase"] for row in tree if row["rss_bytes"]}
    assert phases >= {"a", "b", "c"}
    assert r"--phase-regex stage (\w) did not match any of 20 lines" in notes(tmp_path)


def test_slow_regex_delays_only_itself(tmp_path):
    program = (
        "import time\n"
        "for n in range(60):\n"
        "    print('step', n, 'a' * 4000 + '!' * 30000, flush=True)\n"
        "    time.sleep(0.01)\n"
        "print('written', flush=True)\n"
        "while ',59,' not in open('r.csv').read(): time.sleep(0.02)"
    )
    bomb = ("--phase-regex", r"((?:a+)+)\d$")
    ended = run(tmp_path, *bomb, *STEP, "--", *python(program))
    assert ended.stdout.endswith(b"written\n")
    assert "was disabled after line 3" in notes(tmp_path)
    steps = [int(row["step"]) for row in rows(tmp_path) if row["step"]]
    assert steps[-1] == 59


def test_a_log_that_the_target_writes_is_followed(tmp_path):
    (tmp_path / "t.log").write_text("step: 900\nstep: 901\n")  # of the run before
    program = (
        "import os, time\n"
        "for n in range(1, 41):\n"
        "    if n == 20: os.rename('t.log', 't.log.1')\n"
        "    if n == 30: os.truncate('t.log', 0)\n"
        "    with open('t.log', 'a') as log: log.write(f'step: {n}\\n')\n"
        "    time.sleep(0.02)\n"
        "time.sleep(0.2)"
    )
    ended = run(tmp_path, "--tags-from", "t.log", "--", sys.executable, "-I", "-c", program)
    steps = [int(row["step"]) for row in rows(tmp_path) if row["step"]]
    assert steps == sorted(steps)
    assert steps[0] < 20
    assert steps[-1] == 40
    assert b"step" not in ended.stdout


def test_watch_learns_from_a_log_where_the_job_is(tmp_path):
    log = tmp_path / "t.log"
    log.write_text("".join(f"step: {n}\n" for n in range(500)))
    pipe = subprocess.PIPE
    target = subprocess.Popen(
        [sys.executable, "-I", "-c", "input()"], stdin=pipe, stdout=pipe, text=True
    )
    command = [*MEMDIAG, "watch", "-p", str(target.pid), "-q", "-o", "r.csv", "--tags-from", log]
    with target, subprocess.Popen(command, cwd=tmp_path, stderr=pipe, text=True) as watching:
        path = tmp_path / "r.csv"
        while not path.exists() or ",499," not in path.read_text():
            os.sched_yield()
            assert watching.poll() is None, watching.stderr.read()
        with log.open("a") as file:
            file.write("step: 777\n")
        while ",777," not in path.read_text():
            os.sched_yield()
        target.communicate("\n")
        watching.communicate(timeout=PATIENCE_S)
    steps = [int(row["step"]) for row in rows(tmp_path) if row["step"]]
    assert set(steps) == {499, 777}


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["run", "--step-regex", "(", "--", "true"], "invalid regular expression '('"),
        (["run", "--tags-from", ".", "--", "true"], "not a regular file"),
        (["watch", "-p", "1", "--step-regex", "(.)"], "cannot be read"),
    ],
)
def test_impossible_requests_are_refused_before_the_start(tmp_path, arguments, what):
    ended = subprocess.run(
        [*MEMDIAG, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert what in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_trainer_of_another_language_leaks_in_the_phases_that_its_log_names(tmp_path):
    program = [sys.executable, "-I", str(PROGRAMS / "burn_trainer.py"), "--pace", "0.035"]
    patterns = ["--step-regex", r"^Step +(\d+)/", "--phase-regex", r"→ (\w+) \|"]
    patterns += ["--counter-regex", r"copies=Copies: (\d+)"]
    ended = run(tmp_path, *patterns, "--json-file", "r.json", "--", *program)
    assert ended.returncode == 1, ended.stderr.decode()
    (found,) = json.loads((tmp_path / "r.json").read_text())["recordings"]
    decisive = next(s for s in found["series"] if s["metric"] == "rss_bytes")
    guilty = {p["phase"]: p["growth_per_event"] for p in decisive["phases"] if p["attributed"]}
    assert set(guilty) == {"Predict", "Correct"}
    # Where one ends the other begins: a line read late gives a little of the one to the other.
    grown = guilty.values()
    assert all(0.97 * one["low"] < 4 << 20 < 1.03 * one["high"] for one in grown), guilty
    assert sum(one["value"] for one in grown) == pytest.approx(8 << 20, rel=0.1)
    assert decisive["verdict"] == "leak"


# -- steps that nobody reads -------------------------------------------------------------------

_EVERY_100TH = """
import time
for n in range(1, 401):
    time.sleep(0.002)
    if n % 100 == 0:
        print(f"Step {n:>5}: loss 0.5", flush=True)
"""


def test_steps_in_an_output_file_are_proposed_and_then_recorded(tmp_path):
    with (tmp_path / "out").open("wb") as out:
        run(tmp_path, "--", *python(_EVERY_100TH), stdout=out)
    (proposed,) = (note for note in notes(tmp_path).split("\n") if "names steps" in note)
    regex = proposed.split("'")[1]
    run(tmp_path, "--force", "--step-regex", regex, "--", *python(_EVERY_100TH))
    assert {row["step"] for row in rows(tmp_path)} >= {"100", "300"}
