"""`memdiag run --snapshot`: torch's snapshot of GPU memory lies beside the recording."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import frameworks
import pytest
from terminals import MEMDIAG, PATIENCE_S

# Allocates for some steps, once memdiag has found the device.
TRAINING = """
import sys, time, torch
session = sys.modules["_memdiag_probe"].listener
torch.cuda.allocate(1)
until = time.monotonic() + 10
step = 0
while not torch._C._cuda_isHistoryEnabled() and time.monotonic() < until:
    session.step(step)
    step += 1
    time.sleep(0.01)
print(torch.cuda.memory.recorded)
for _ in range({steps}):
    torch.cuda.allocate(1)
    session.step(step)
    step += 1
    time.sleep(0.002)
print(torch.cuda.memory.recorded)
"""


def run(
    directory: Path, program: str, *options: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    frameworks.write_torch(directory / "fake")
    return subprocess.run(
        [*MEMDIAG, "run", "--snapshot", *options, "--", sys.executable, "-c", program],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory / "fake"), **(env or {})},
        text=True,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )


def only_snapshot(directory: Path) -> Path:
    (found,) = directory.rglob("*.pickle")
    return found


def notes(report: Path) -> str:
    (found,) = json.loads(report.read_text())["recordings"]
    return " ".join(found["notes"])


def test_a_run_out_of_device_memory_leaves_it(tmp_path: Path) -> None:
    done = run(tmp_path, TRAINING.format(steps=1000), "--json-file", "r.json")
    assert done.returncode == 1
    assert done.stdout == "('all', 'python', 100000)\n"
    found = only_snapshot(tmp_path)
    assert found.parent.parent == tmp_path / ".memdiag" / "runs"
    assert found.stat().st_mode & 0o777 == 0o600
    (events,) = pickle.loads(found.read_bytes())["device_traces"]
    assert [one["action"] for one in events[-2:]] == ["alloc", "oom"]
    said = f"torch's snapshot of GPU memory is in {found.relative_to(tmp_path)}"
    assert f"memdiag: {said}\n" in done.stderr
    assert said in notes(tmp_path / "r.json")

    read = subprocess.run(
        [*MEMDIAG, "analyze", "--json", found], capture_output=True, text=True, check=False
    )
    assert "allocated" in read.stdout, read.stderr
    cleaned = subprocess.run(
        [*MEMDIAG, "clean", "--keep", "0", "--yes"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "removed" in cleaned.stderr
    assert not found.exists()


def test_an_error_that_is_caught_leaves_it_and_ends_the_recording(tmp_path: Path) -> None:
    program = (
        TRAINING.format(steps=20)
        + """
try:
    torch.cuda.allocate(500)
except torch.OutOfMemoryError:
    print(torch.cuda.memory.recorded)
"""
    )
    done = run(tmp_path, program, "--inconclusive", "pass")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "None"), done.stderr
    (events,) = pickle.loads(only_snapshot(tmp_path).read_bytes())["device_traces"]
    assert events[-1]["action"] == "oom"


def test_a_run_that_ends_well_leaves_it_at_the_end(tmp_path: Path) -> None:
    done = run(tmp_path, TRAINING.format(steps=20), "-o", "r.csv", "--inconclusive", "pass")
    assert (done.returncode, done.stdout.count("python")) == (0, 2), done.stderr
    found = only_snapshot(tmp_path)
    assert found.parent == tmp_path
    assert found.name.startswith("r.snapshot-")
    (events,) = pickle.loads(found.read_bytes())["device_traces"]
    assert {one["action"] for one in events} == {"alloc"}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_that_uses_the_gpu_leaves_it(tmp_path: Path, method: str) -> None:
    """Workers of multiprocessing end without Python's functions of `atexit`."""
    work = TRAINING.format(steps=20).replace("\n", "\n    ")
    program = tmp_path / "train.py"
    program.write_text(f"""
import multiprocessing
def work():
    {work}
if __name__ == "__main__":
    worker = multiprocessing.get_context("{method}").Process(target=work)
    worker.start()
    worker.join()
""")
    done = run(tmp_path, f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")
    assert done.stdout.count("python") == 2, done.stderr
    (events,) = pickle.loads(only_snapshot(tmp_path).read_bytes())["device_traces"]
    assert len(events) == 20


def test_a_history_of_the_program_stays_its_own(tmp_path: Path) -> None:
    program = """
import sys, time, torch
session = sys.modules["_memdiag_probe"].listener
torch.cuda.allocate(1)
torch.cuda.memory._record_memory_history("all", "all", 7)
until = time.monotonic() + 10
step = 0
while not torch._C.observers and time.monotonic() < until:
    session.step(step)
    step += 1
    time.sleep(0.01)
torch.cuda.allocate(2)
print(torch.cuda.memory.recorded)
"""
    done = run(tmp_path, program, "--inconclusive", "pass")
    assert done.stdout == "('all', 'all', 7)\n"
    (events,) = pickle.loads(only_snapshot(tmp_path).read_bytes())["device_traces"]
    assert [one["size"] for one in events] == [2 << 20]


@pytest.mark.parametrize("place", ["taken", "moved"])
def test_no_other_file_is_touched(tmp_path: Path, place: str) -> None:
    hurt = {
        "taken": "os.symlink('/etc/passwd', f'r.snapshot-{os.getpid()}.pickle')",
        "moved": "here = os.getcwd(); os.rename(here, here + '.moved'); os.mkdir(here)",
    }[place]
    work = tmp_path / "work"
    work.mkdir()
    options = ("-o", "r.csv", "--json-file", str(tmp_path / "r.json"))
    done = run(work, f"import os\n{TRAINING.format(steps=5)}\n{hurt}", *options)
    assert done.stdout.count("python") == 2, done.stderr
    assert not [one for one in tmp_path.rglob("*.pickle") if not one.is_symlink()]
    assert "memdiag: there is no snapshot of torch's GPU memory" in done.stderr
    why = {"taken": "File exists", "moved": "the directory of the recording was replaced"}[place]
    assert f"snapshot of GPU memory could not be written: {why}" in notes(tmp_path / "r.json")


def test_a_program_without_a_gpu_has_none(tmp_path: Path) -> None:
    done = run(tmp_path, "import os; print(sorted(k for k in os.environ if 'BESIDE' in k))")
    assert done.stdout == "['MEMDIAG_BESIDE']\n"
    assert not list(tmp_path.rglob("*.pickle"))


def test_a_run_without_options_sets_two_variables(tmp_path: Path) -> None:
    program = "import os; print(*sorted(k for k in os.environ if 'MEMDIAG' in k))"
    command = [*MEMDIAG, "run", "--", sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "MEMDIAG_CHANNEL\n"
