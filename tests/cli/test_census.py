"""`memdiag census`, `run --census`, crashes and `memdiag.explain()`, on real programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")

WAITS = """
import sys
import numpy as np
class Store:
    def __init__(self):
        self.rows = [np.zeros((100, 1000)) for _ in range(50)]
def main():
    store = Store()
    print("ready", flush=True)
    for line in sys.stdin:
        store.rows += [np.zeros((100, 1000)) for _ in range(25)]
        print("more", flush=True)
    print("end")
main()
"""
RUNS_OUT = """
import resource, time
import numpy as np
import memdiag
def train():
    kept = {}
    for step in range(100_000):
        kept[step] = np.ones((256, 1024))
        memdiag.step(step)
        time.sleep(0.004)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (700 << 20),) * 2)
train()
"""


def memdiag(
    directory: Path, *arguments: object, **options: Any
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memdiag", *map(str, arguments)]
    return subprocess.run(
        command,
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


@contextmanager
def started(*command: object, env: Any = None) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    words = list(map(str, command))
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        out, _ = process.communicate()
        assert out.endswith("end\n")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "serve.py"
    path.write_text(WAITS, encoding="utf-8")
    return path


def pid_of(directory: Path) -> int:
    """The process of the only recording: its command is running."""
    (sidecar,) = directory.glob("*.meta.json")
    pid: int = json.loads(sidecar.read_text())["about"]["pid"]
    return pid


def test_census_of_a_process_under_memdiag(tmp_path: Path, program: Path) -> None:
    run = (sys.executable, "-m", "memdiag", "run", "-q", "-o", tmp_path / "r.csv", "--")
    with started(*run, sys.executable, program) as process:
        pid = pid_of(tmp_path)
        done = memdiag(tmp_path, "census", "--pid", pid, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        first = found["groups"][0]
        assert (first["name"], first["count"]) == ("store.rows[]", 50)
        assert first["holder"] == (
            "`store.rows[]`, attribute of Store, held by local variable of main() `store`"
        )
        assert (first["size_bytes"], first["grown_bytes"]) == (40_000_000, None)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "more\n"
        again = memdiag(tmp_path, "census", "--pid", pid)
        assert "60.0 MB  +20.0 MB      75  float64 [100, 1000]" in again.stdout
    # The recording has what was asked for.
    (recorded,) = json.loads((tmp_path / "r.meta.json").read_text())["censuses"]
    assert [one["why"] for one in recorded["censuses"]] == ["request", "request"]


def test_watch_asks_for_a_census_at_its_beginning_and_end(tmp_path: Path, program: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": _probe_path()}
    with started(sys.executable, program, env=environ) as process:
        options = ("--census", "--explain", "always", "--duration", "4", "-o", "r.csv")
        done = memdiag(tmp_path, "watch", "--pid", process.pid, *options, "--json")
        (found,) = json.loads(done.stdout)["recordings"]
        (census,) = found["census"]
        assert (census["why"], census["groups"][0]["name"]) == ("request", "store.rows[]")
        assert census["groups"][0]["grown_bytes"] == 0
        process.stdin.write("\n")
        process.stdin.flush()


def _probe_path() -> str:
    done = subprocess.run(
        [sys.executable, "-m", "memdiag.probe"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_census_of_a_process_without_a_probe(tmp_path: Path, program: Path) -> None:
    with started(sys.executable, program) as process:
        refused = memdiag(tmp_path, "census", "--pid", process.pid)
        assert refused.returncode == 4
        assert "has no probe" in refused.stderr
        assert "add --attach" in refused.stderr
        process.stdin.write("\n" * 3)
        process.stdin.flush()


def test_program_that_runs_out_of_memory_is_explained(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(RUNS_OUT, encoding="utf-8")
    options = ("-o", "r.csv", "--json-file", "r.json")
    done = memdiag(tmp_path, "run", *options, "--", sys.executable, program)
    assert done.returncode == 1
    assert "MemoryError" in done.stderr
    (found,) = json.loads((tmp_path / "r.json").read_text())["recordings"]
    assert found["ending"]["cause"] == "host_memory"
    (census,) = found["census"]
    assert census["why"] == "out_of_memory"
    assert census["groups"][0]["name"] == "kept[]"
    assert census["groups"][0]["size_bytes"] > 400 << 20
    assert found["grown"][0]["holder"] == "dict `kept`, local variable of train()"
    assert found["grown"][0]["line"] == 8
    text = " ".join(done.stderr.split()).partition("── memdiag")[2]
    named = text.index("kept[step] = np.ones((256, 1024))")
    assert text.index("OUT OF MEMORY") < text.index(" error ") < named
    assert named < text.index("In memory when an allocation failed")


def test_threshold_that_is_crossed_calls_for_a_census(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        RUNS_OUT.replace("700 << 20", "9000 << 20").replace("100_000", "500"), encoding="utf-8"
    )
    options = ("-o", "r.csv", "--json-file", "r.json", "--critical-at", "300MB")
    memdiag(tmp_path, "run", *options, "--", sys.executable, program)
    (found,) = json.loads((tmp_path / "r.json").read_text())["recordings"]
    (census,) = found["census"]
    assert census["why"] == "critical"
    assert census["groups"][0]["name"] == "kept[]"


def test_a_job_that_is_ended_for_its_memory_has_a_census_first(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(RUNS_OUT.replace("700 << 20", "9000 << 20"), encoding="utf-8")
    options = ("-o", "r.csv", "--json-file", "r.json", "--critical-at", "300MB")
    ends = ("--on", "critical=stop")
    memdiag(tmp_path, "run", *options, *ends, "--", sys.executable, program)
    (found,) = json.loads((tmp_path / "r.json").read_text())["recordings"]
    assert [one["why"] for one in found["census"]] == ["critical"]


@pytest.mark.slow
def test_regular_censuses_and_interventions_of_a_run(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        RUNS_OUT.replace("700 << 20", "9000 << 20").replace("100_000", "1500"), encoding="utf-8"
    )
    options = ("-o", "r.csv", "--json-file", "r.json", "--census", "--intervene")
    done = memdiag(tmp_path, "run", *options, "--", sys.executable, program)
    assert done.returncode in (0, 1), done.stderr
    (found,) = json.loads((tmp_path / "r.json").read_text())["recordings"]
    (census,) = found["census"]
    assert census["why"] == "regular"
    assert census["groups"][0]["grown_bytes"] > 0
    actions = {one["action"]: one for one in found["cause"]["interventions"]}
    assert set(actions) == {"malloc_trim", "gc_collect"}
    assert {one["advice"] for one in actions.values()} <= {"useless", "once", "unclear"}
    again = json.loads(memdiag(tmp_path, "analyze", "r.csv", "--json").stdout)["recordings"][0]
    assert (again["cause"], again["census"]) == (found["cause"], found["census"])


EXPLAINS = """
import numpy as np, memdiag
with memdiag.record():
    memdiag.step(0)
def main():
    kept = []
    for _ in range(4):
        kept += [np.zeros((50, 4000)) for _ in range(20)]
        found = memdiag.explain()
    return found
found = main()
assert {one.type for one in found.census.groups} == {"ndarray"}  # (memdiag's own are not listed)
print(found.census.groups[0].name, found.census.groups[0].count, found.grown[0].holder)
print(found)
"""


@pytest.mark.parametrize("is_watched", [False, True])
def test_explain_in_a_program_with_and_without_memdiag(tmp_path: Path, is_watched: bool) -> None:
    program = tmp_path / "notebook.py"
    program.write_text(EXPLAINS, encoding="utf-8")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environ = {**os.environ, "TMPDIR": str(temporary), "XDG_RUNTIME_DIR": ""}
    command = (sys.executable, program)
    if is_watched:
        command = (
            sys.executable,
            "-m",
            "memdiag",
            "run",
            "-q",
            "--inconclusive",
            "pass",
            "-o",
            tmp_path / "r.csv",
            "--",
            *command,
        )
    done = subprocess.run(
        list(map(str, command)),
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    first, *text = done.stdout.splitlines()
    assert first == "kept[] 80 list `kept`, local variable of main()"
    assert "128 MB  +96.0 MB      80  float64 [50, 4000]  kept[]" in done.stdout
    assert any("Grew most: notebook.py:8" in line for line in text)
    left = [path for path in temporary.rglob("*") if path.is_file() or "-" in path.name[8:]]
    assert left == []


AT_A_BREAKPOINT = """
import sys, numpy as np
def inner():
    mine = [np.zeros((10, 5000)) for _ in range(30)]
    breakpoint()
    print("then", mine)
inner()
"""


def test_explain_at_a_breakpoint_sees_local_variables_and_changes_none(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(AT_A_BREAKPOINT, encoding="utf-8")
    typed = (
        "import memdiag; found = memdiag.explain()\nfound\nmine = 7\nfound = memdiag.explain()\nc\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        input=typed,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "12.0 MB      30  float64 [10, 5000]  mine[]" in done.stdout
    assert done.stdout.rstrip().endswith("then 7")
