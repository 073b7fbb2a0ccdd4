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
JOBS = {
    "rank1": [
        *("-m", "torch.distributed.run", "--nproc-per-node", "2"),
        *(str(PROGRAMS / "torch_leak_in_rank.py"), *_SHORT),
    ],
    "DataLoader worker 1": [
        *(str(PROGRAMS / "torch_leak_in_worker.py"), *_SHORT, "--only-worker", "1"),
    ],
}

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple]]:
    """Both at once, for most of what they do is wait."""
    pytest.importorskip("torch")
    started = {}
    for name, job in JOBS.items():
        where = tmp_path_factory.mktemp("job")
        command = [*MEMDIAG, "run", "-o", "r.csv", "--json-file", "r.json", "--", sys.executable]
        pipe = subprocess.PIPE
        started[name] = (
            where,
            subprocess.Popen([*command, *job], cwd=where, stdout=pipe, stderr=pipe, text=True),
        )
    yield started
    for _, process in started.values():
        with process:
            process.kill()


@pytest.mark.parametrize("guilty", JOBS)
def test_the_one_process_that_leaks_is_found_and_named(jobs, guilty):
    where, process = jobs[guilty]
    _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 1, said
    (found,) = json.loads((where / "r.json").read_text())["recordings"]
    decisive = found["series"][found["decided_by"]]
    assert (decisive["process"], decisive["verdict"]) == (guilty, "leak")
    assert decisive["growth_bytes_per_step"]["value"] == pytest.approx(256 << 10, rel=0.15)
    assert f"Look at what {guilty} does and the other processes do not." in said
    about = json.loads((where / "r.meta.json").read_text())["about"]
    roles = {p["label"]: (p["rank"], p["local_rank"], p["world_size"]) for p in about["processes"]}
    if guilty == "rank1":
        assert roles["rank0"] == (0, 0, 2)
        assert roles["rank1"] == (1, 1, 2)
        assert "all 2 ranks are in this recording" in said
    else:
        assert roles["DataLoader worker 1"] == (None, None, None)
