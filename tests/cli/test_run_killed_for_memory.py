"""A training that outgrows its container, in a real cgroup."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

from cgroups import limited_group

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "programs"
LIMIT_BYTES = 200 << 20
# The shell moves itself into the group, as `systemd-run --scope` would, and becomes the program.
ENTER = 'echo 0 > "$1/cgroup.procs" && shift && exec "$@"'


def test_a_leak_that_the_oom_killer_ends_is_foretold_and_explained(tmp_path: Path) -> None:
    output, report = tmp_path / "run.csv", tmp_path / "report.json"
    options = ["--output", str(output), "--json-file", str(report), "--interval", "0.02s"]
    with limited_group(LIMIT_BYTES) as group:
        program = [sys.executable, str(PROGRAMS / "leak.py"), "--steps", "500", "--pace", "0.01"]
        command = [sys.executable, "-m", "memdiag", "run", *options, "--"]
        command += ["sh", "-c", ENTER, "sh", str(group), *program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 137, done.stderr
    told = " ".join(done.stderr.split())
    assert "killed by the kernel's OOM killer at" in told
    assert "of 210 MB" in told
    document = json.loads(report.read_text())
    assert document["verdict"] == "leak"
    assert document["recordings"][0]["ending"]["limit_bytes"] == LIMIT_BYTES
    _assert_foretold(tmp_path, output)


def _assert_foretold(directory: Path, output: Path) -> None:
    """The first half of the recording already says where the limit is hit, within a quarter."""
    with output.open() as recorded:
        rows = list(csv.DictReader(recorded))
    steps = [int(row["step"]) for row in rows if row["step"]]
    killed_at = max(steps)
    half = directory / "half.csv"
    with half.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(row for row in rows if row["step"] and int(row["step"]) <= killed_at / 2)
    command = [sys.executable, "-m", "memdiag", "analyze", "--json", "--limit", str(LIMIT_BYTES)]
    done = subprocess.run(
        [*command, str(half)], capture_output=True, text=True, timeout=60, check=False
    )
    (found,) = json.loads(done.stdout)["recordings"]
    (series,) = (
        one for one in found["series"] if (one["metric"], one["process"]) == ("rss_bytes", "tree")
    )
    (hit,) = series["limits"]
    assert abs(hit["at_step"]["value"] - killed_at) <= 0.25 * killed_at
