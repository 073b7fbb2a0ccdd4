"""The probe is in under other people's launchers, which go on as without it (`make trainers`)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memdiag.capture.probelink.channel import ChannelReader, prepare

pytestmark = [pytest.mark.trainers, pytest.mark.slow]

# One step in this process, one in a child of each kind; says what it was started with.
PROGRAM = """\
import multiprocessing, subprocess, sys
import memdiag
STEP = "import memdiag; memdiag.step(8)"
def child(): memdiag.step(9)
if __name__ == "__main__":
    memdiag.step(7)
    subprocess.run([sys.executable, "-c", STEP], check=True)
    for how in ("fork", "spawn"):
        one = multiprocessing.get_context(how).Process(target=child)
        one.start()
        one.join()
        assert one.exitcode == 0
    print("done", *sys.argv[1:])
"""
# Module that has to be there -> how it starts a script.
LAUNCHERS = {
    "coverage": ["-m", "coverage", "run"],
    "coverage of children": ["-m", "coverage", "run", "--rcfile", "coverage.ini"],
    "debugpy": ["-m", "debugpy", "--listen", "127.0.0.1:0"],
    "ddtrace": [str(Path(sys.executable).with_name("ddtrace-run")), sys.executable],
    "memray": ["-m", "memray", "run", "--quiet", "--force", "--output", "run.bin"],
    "viztracer": ["-m", "viztracer", "--quiet", "--output_file", "run.json"],
}


def started(directory: Path, *command: str, channel: Path | None = None) -> tuple[int, str]:
    """Exit status and standard output, with the probe where there is a channel for it."""
    # Nothing listens for what a tracer sends, and nobody is to be asked.
    environ = {**os.environ, "DD_TRACE_ENABLED": "false", "DD_REMOTE_CONFIGURATION_ENABLED": "0"}
    environ |= {"DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false"}
    done = subprocess.run(
        command,
        env=environ if channel is None else prepare(environ, channel),
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    return done.returncode, done.stdout or done.stderr


def told(directory: Path, *command: str) -> list[int]:
    """The steps that a command tells; it ends and prints as it does without the probe."""
    channel = directory / "channel"
    channel.mkdir(mode=0o700)
    reader = ChannelReader(channel)
    assert started(directory, *command, channel=channel) == started(directory, *command)
    found = [event.step for event in reader.drain() if event.step is not None]
    reader.close()
    return sorted(found)


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_launchers_program_and_its_children_have_the_probe(tmp_path: Path, name: str) -> None:
    if importlib.util.find_spec(name.partition(" ")[0]) is None:
        pytest.skip(f"{name} is not installed")
    (tmp_path / "train.py").write_text(PROGRAM)
    children = "[run]\nparallel = true\nconcurrency = multiprocessing\npatch = subprocess\n"
    (tmp_path / "coverage.ini").write_text(children)
    how = LAUNCHERS[name]
    python = [] if how[0].startswith("/") else [sys.executable]
    assert told(tmp_path, *python, *how, "train.py", "--rate", "3") == [7, 8, 9, 9]


def test_accelerate_launchs_program_has_the_probe(tmp_path: Path) -> None:
    for needed in ("accelerate", "torch"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    (tmp_path / "train.py").write_text(PROGRAM)
    launch = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1"]
    launch += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    assert told(tmp_path, sys.executable, *launch, "train.py") == [7, 8, 9, 9]
