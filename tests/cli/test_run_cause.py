"""`memdiag run` names the line that leaks in real programs, and changes nothing about them."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "programs"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
pytestmark = pytest.mark.slow

NUMPY = """
    import sys, time
    import numpy as np
    import memdiag
    class Store:
        def __init__(self):
            self.features = {}
        def keep(self, step):
            self.features[step] = np.ones(4000)
    def train(steps, store):
        for step in range(steps):
            store.keep(step)
            np.ones(100_000).sum()
            time.sleep(0.004)
            memdiag.step(step)
        print(len(store.features))
    train(int(sys.argv[1]), Store())
"""

KILL = "threading.Timer(9, os.kill, (os.getpid(), signal.SIGKILL)).start()\n"


def memdiag(tmp_path: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memdiag", *map(str, arguments)]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=200
    )


def recorded(tmp_path: Path, *arguments: object) -> tuple[dict[str, Any], str]:
    """The finding of a run, and what it printed."""
    options = ("--force", "--output", "run.csv", "--json-file", "run.json")
    ended = memdiag(tmp_path, "run", *options, *arguments)
    document = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    return document["recordings"][0], ended.stdout


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(dedent(NUMPY), encoding="utf-8")
    return path


def test_numpy_program_and_its_recording_later(tmp_path: Path, program: Path) -> None:
    found, _ = recorded(tmp_path, "--", sys.executable, program, 2500)
    assert found["verdict"] == "leak"
    (culprit,) = found["cause"]["culprits"]
    assert culprit["code"] == "self.features[step] = np.ones(4000)"
    assert (culprit["line"], culprit["function"]) == (9, "Store.keep")
    assert "store.features" in culprit["holder"]
    assert culprit["share"] > 0.8
    again = json.loads(memdiag(tmp_path, "analyze", "run.csv", "--json").stdout)
    assert again["recordings"][0]["cause"] == found["cause"]
    assert "train.py:9" in memdiag(tmp_path, "analyze", "run.csv").stdout


HOOKS = """
    import sys, time
    import numpy as np
    import memdiag
    class Layer:
        def __init__(self):
            self.before, self.after = {}, {}
    class Watcher:
        def __init__(self, layer, step):
            self.layer, self.image = layer, np.ones(4000)
            layer.before[step] = self.look
            layer.after[step] = self.look
        def look(self):
            return self.image.sum()
    def train(steps, layer):
        for step in range(steps):
            Watcher(layer, step)
            time.sleep(0.004)
            memdiag.step(step)
    train(int(sys.argv[1]), Layer())
"""


def test_hooks_that_lead_back_to_what_has_them_are_counted(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(dedent(HOOKS), encoding="utf-8")
    found, _ = recorded(tmp_path, "--", sys.executable, "train.py", 2500)
    assert found["verdict"] == "leak"
    culprit = found["cause"]["culprits"][0]
    assert culprit["line"] in {11, 12}
    assert culprit["bytes_per_step"] == pytest.approx(32_000, rel=0.15)
    assert found["cause"]["share_explained"] > 0.8


SECRET = """
    import sys, time
    import numpy as np
    import memdiag
    class ZebraStore:
        def __init__(self):
            self.zebra_rows = {}
        def keep_zebra(self, step):
            self.zebra_rows[f"zebra {step}"] = ZebraItem(step)
    class ZebraItem:
        def __init__(self, step):
            self.zebra_array = np.ones(4000)
    def train_zebra(zebra_steps, zebra_store):
        for step in range(zebra_steps):
            zebra_store.keep_zebra(step)
            time.sleep(0.003)
            memdiag.step(step)
    if __name__ == "__main__":
        train_zebra(int(sys.argv[1]), ZebraStore())
        if len(sys.argv) > 2:
            zebra_last = ZebraStore()
            raise MemoryError
"""


def test_no_name_and_no_line_of_the_program_is_in_any_file(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(dedent(SECRET), encoding="utf-8")
    options = ("--no-source", "--census", "--explain", "always", "-o", "run.csv", "--force")
    outputs = ("--json-file", "run.json", "--markdown", "run.md")
    ended = memdiag(tmp_path, "run", *options, *outputs, "--", sys.executable, program, 1500)
    names = ("run.csv", "run.meta.json", "run.json", "run.md")
    texts = [(tmp_path / name).read_text(encoding="utf-8") for name in names]
    assert [t for t in (*texts, ended.stdout, ended.stderr) if "zebra" in t.lower()] == []
    (recording,) = json.loads(texts[1])["holders"]
    assert recording["holders"]  # there was something to leave out
    lines = [line["line"] for one in recording["holders"] for line in one["lines"]]
    assert 9 in lines
    again = memdiag(tmp_path, "run", *options, *outputs, "--", sys.executable, program, 300, "oom")
    texts = [(tmp_path / name).read_text(encoding="utf-8") for name in names]
    assert [text for text in (*texts, again.stdout) if "zebra" in text.lower()] == []
    assert json.loads(texts[1])["censuses"]


def test_a_watch_writes_no_name_and_no_line_either(tmp_path: Path) -> None:
    program, watched = tmp_path / "train.py", tmp_path / "watched"
    watched.mkdir()
    text = dedent(SECRET).replace("time\n", "time, os\nprint(os.getpid(), flush=True)\n", 1)
    program.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "memdiag", "run", "-q", "-o", "own.csv", "--"]
    command += [sys.executable, str(program), "100000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            pid = running.stdout.readline().strip()
            options = ("--no-source", "--census", "--explain", "always", "--duration", "10")
            outputs = ("-o", "run.csv", "--json-file", "run.json", "--markdown", "run.md")
            ended = memdiag(watched, "watch", "--pid", pid, *options, *outputs)
        finally:
            os.kill(int(pid), signal.SIGTERM)
    names = ("run.csv", "run.meta.json", "run.json", "run.md")
    texts = [(watched / name).read_text(encoding="utf-8") for name in names]
    assert [t for t in (*texts, ended.stdout, ended.stderr) if "zebra" in t.lower()] == []
    (recording,) = json.loads(texts[1])["holders"]
    assert recording["holders"]


def test_explain_never_records_nothing_of_the_program(tmp_path: Path, program: Path) -> None:
    found, _ = recorded(tmp_path, "--explain", "never", "--", sys.executable, program, 500)
    assert found["cause"] is None
    assert "features" not in (tmp_path / "run.meta.json").read_text(encoding="utf-8")


def test_killed_program_leaves_what_its_last_walk_saw(tmp_path: Path, program: Path) -> None:
    options = ("--force", "--output", "run.csv", "-q")
    command = [sys.executable, "-m", "memdiag", "run", *options, "--", sys.executable, program]
    killed = tmp_path / "killed.py"
    text = "import os, signal, threading\n" + dedent(NUMPY).replace("train(int", KILL + "train(int")
    killed.write_text(text, encoding="utf-8")
    command[-1:] = [str(killed), "100000"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=100)
    assert ended.returncode == 128 + signal.SIGKILL
    sidecar = json.loads((tmp_path / "run.meta.json").read_text(encoding="utf-8"))
    names = [n["name"] for p in sidecar["holders"] for h in p["holders"] for n in h["path"]]
    assert "features" in names


@needs_torch
@pytest.mark.torch
def test_torch_training_is_named_and_trains_the_same(tmp_path: Path) -> None:
    program = (sys.executable, PROGRAMS / "torch_leak.py", "--steps", 300, "--pace", 0.03)
    alone = subprocess.run(
        list(map(str, program)), capture_output=True, text=True, check=True, cwd=tmp_path
    )
    found, printed = recorded(tmp_path, "--explain", "always", "--", *program)
    assert printed == alone.stdout
    assert found["verdict"] == "leak"
    first = found["cause"]["culprits"][0]
    assert first["code"].startswith("reconstructions.append(restored)")
    assert "`reconstructions`, local variable of main()" in first["holder"]


def test_a_recording_whose_memdiag_was_killed_with_the_program_has_the_cause(
    tmp_path: Path, program: Path
) -> None:
    """As the kernel does to all processes of a container whose memory is full."""
    options = ("--quiet", "--output", "run.csv")
    command = [sys.executable, "-m", "memdiag", "run", *options, "--", sys.executable, program]
    sidecar = tmp_path / "run.meta.json"
    with subprocess.Popen([*command, "50000"], cwd=tmp_path, start_new_session=True) as process:
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s and process.poll() is None:
            time.sleep(0.2)
            if sidecar.exists() and json.loads(sidecar.read_text(encoding="utf-8"))["holders"]:
                break
        os.killpg(process.pid, signal.SIGKILL)
    found = json.loads(memdiag(tmp_path, "analyze", "run.csv", "--json").stdout)["recordings"][0]
    assert found["cause"]["culprits"][0]["code"] == "self.features[step] = np.ones(4000)"
    assert "ends in the middle" in " ".join(found["notes"])


BUSY = """
    import time
    class Record:
        def __init__(self, n):
            self.values = {n: [n, str(n)]}
    class Journal:
        def __init__(self):
            self.known = [Record(n) for n in range(8000)]  # a walk takes some milliseconds
            self.rows = []
    def work(journal, n):
        total = 0
        for i in range(40_000):
            total += i * n % 7
        journal.rows.append([total] * 1000)
    def main():
        journal, n, until_s = Journal(), 0, time.monotonic() + 14
        while time.monotonic() < until_s:
            work(journal, n)
            n += 1
    main()
"""


def test_lines_are_watched_in_a_program_that_never_waits(tmp_path: Path) -> None:
    """Its thread runs only in the midst of a walk, or once the probe has nothing to do."""
    path = tmp_path / "busy.py"
    path.write_text(dedent(BUSY))
    recorded(tmp_path, "--explain", "always", "--", sys.executable, path)
    sidecar = json.loads((tmp_path / "run.meta.json").read_text(encoding="utf-8"))
    (process,) = sidecar["holders"]
    assert process["watched_steps"] > 0
