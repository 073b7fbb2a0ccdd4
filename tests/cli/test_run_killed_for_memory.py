"""A training that outgrows its container, in a real cgroup."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cgroups import limited_group

from memdiag.analysis.diagnose import diagnose
from memdiag.recording.read import read
from memdiag.values.measurements import Limit, Role
from memdiag.values.verdict import Verdict

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "programs"
LIMIT_BYTES = 200 << 20
# The shell moves itself into the group, as `systemd-run --scope` would, and becomes the program.
ENTER = 'echo 0 > "$1/cgroup.procs" && shift && exec "$@"'


@pytest.mark.slow
def test_leak_that_the_oom_killer_ends_is_forecast_and_explained(tmp_path: Path) -> None:
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
    ending = document["recordings"][0]["ending"]
    assert (ending["cause"], ending["limit_bytes"]) == ("oom_killer", LIMIT_BYTES)
    assert " last RSS of all processes" in told
    assert "forecast halfway, at step" in told
    told = document["recordings"][0]["early_forecast"]
    assert abs(told["at_x"] - _killed_at(output)) <= 0.25 * _killed_at(output)
    assert "at this rate" not in done.stderr
    _assert_foretold(tmp_path, output)


def _killed_at(output: Path) -> int:
    with output.open() as recorded:
        return max(int(row["step"]) for row in csv.DictReader(recorded) if row["step"])


def _assert_foretold(directory: Path, output: Path) -> None:
    """From the first half of the recording on it says where the limit is hit, within a quarter."""
    with output.open() as recorded:
        rows = list(csv.DictReader(recorded))
    killed_at = _killed_at(output)
    for part in (0.5, 0.65, 0.8, 0.95):
        cut = directory / f"{part}.csv"
        with cut.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            before = part * killed_at
            writer.writerows(row for row in rows if row["step"] and int(row["step"]) <= before)
        verdict, step = _foretold(cut)
        # The first 300 steps are those in which trainings warm up.
        known = {Verdict.LEAK} if before > 300 else {Verdict.LEAK, Verdict.INCONCLUSIVE}
        assert verdict in known, part
        assert abs(step - killed_at) <= 0.25 * killed_at, part


def _foretold(recording: Path) -> tuple[Verdict, float]:
    """The verdict, and the step at which all processes together reach the limit."""
    limit = Limit(name="--limit", value_bytes=LIMIT_BYTES, roles=frozenset({Role.RESIDENT}))
    found = diagnose(replace(read(str(recording)), limits=(limit,)))
    (series,) = (f for f in found.series if (f.metric, f.process) == ("rss_bytes", "tree"))
    (hit,) = series.limit_hits
    return series.verdict, hit.at_x.value
