"""Jobs of several processes: the one that leaks is found and named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminals import MEMDIAG

PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "programs"
LONGEST_S = 200
_SHORT = ["--steps", "300", "--pace", "0.015"]
_IN_WORKER = [str(PROGRAMS / "torch_leak_in_worker.py"), *_SHORT, "--only-worker"]
NOBODY = "nobody"
JOBS = {
    "rank1": [
        *("-m", "torch.distributed.run", "--nproc-per-node", "2"),
        *(str(PROGRAMS / "torch_leak_in_rank.py"), *_SHORT),
    ],
    "DataLoader worker 1": [*_IN_WORKER, "1"],
    NOBODY: [*_IN_WORKER, "99"],
}

pytestmark = [pytest.mark.torch, pytest.mark.slow]


class Jobs:
    """All at once, for most of what they do is wait; a test that is repeated has a run anew."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._all: list[subprocess.Popen[str]] = []
        self._started = {name: self._start(name) for name in JOBS}

    def _start(self, name: str) -> tuple[Path, subprocess.Popen[str]]:
        where, pipe = self._factory.mktemp("job"), subprocess.PIPE
        command = [*MEMDIAG, "run", "-o", "r.csv", "--json-file", "r.json", "--", sys.executable]
        command += JOBS[name]
        process = subprocess.Popen(command, cwd=where, stdout=pipe, stderr=pipe, text=True)
        self._all.append(process)
        return where, process

    def finished(self, name: str) -> tuple[Path, int, str]:
        """Directory, exit code and report of one."""
        where, process = self._started.pop(name, None) or self._start(name)
        _, said = process.communicate(timeout=LONGEST_S)
        return where, process.returncode, said

    def end(self) -> None:
        for process in self._all:
            with process:
                process.kill()


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    pytest.importorskip("torch")
    started = Jobs(tmp_path_factory)
    yield started
    started.end()


@pytest.mark.parametrize("guilty", [name for name in JOBS if name != NOBODY])
def test_the_one_process_that_leaks_is_found_and_named(jobs: Jobs, guilty: str) -> None:
    where, code, said = jobs.finished(guilty)
    assert code == 1, said
    (found,) = json.loads((where / "r.json").read_text())["recordings"]
    decisive = found["series"][found["decided_by"]]
    assert (decisive["process"], decisive["verdict"]) == (guilty, "leak")
    assert decisive["growth_per_x"]["value"] == pytest.approx(256 << 10, rel=0.15)
    text, culprits = " ".join(said.split()), found["cause"]["culprits"]
    if culprits:
        assert {culprit["process"] for culprit in culprits} == {guilty}
        assert f" of the growth) in {guilty}: " in text
    else:
        assert f"Check what {guilty} does that the other processes do not." in text
    about = json.loads((where / "r.meta.json").read_text())["about"]
    roles = {p["label"]: (p["rank"], p["local_rank"], p["world_size"]) for p in about["processes"]}
    if guilty == "rank1":
        assert roles["rank0"] == (0, 0, 2)
        assert roles["rank1"] == (1, 1, 2)
        assert "a distributed job: all 2 ranks are in this recording" in found["notes"]
    else:
        assert roles["DataLoader worker 1"] == (None, None, None)


def test_a_job_of_healthy_processes_is_no_leak(jobs: Jobs) -> None:
    """Three hundred steps take six seconds, in which workers touch some pages evenly."""
    where, code, said = jobs.finished(NOBODY)
    assert code == 0, said
    (found,) = json.loads((where / "r.json").read_text())["recordings"]
    leaks = [(s["process"], s["metric"]) for s in found["series"] if s["verdict"] == "leak"]
    assert leaks == []
