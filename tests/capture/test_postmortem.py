"""How a target ended, by the evidence that the kernel leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cgroups import limited_group

from memdiag.capture.cgroup import MemoryGroup, OomCounters, memory_group, oom_counters
from memdiag.capture.postmortem import explained
from memdiag.model import Ending

KILLED = Ending(signal=signal.SIGKILL)
NONE = OomCounters(group=0, machine=5)
MIB = 1 << 20


def test_a_kill_counted_by_the_group_is_the_oom_killers(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("100\n")
    group = MemoryGroup(levels=(tmp_path,), version=2)
    after = OomCounters(group=1, machine=6)
    how = explained(KILLED, before=NONE, after=after, group=group, at_bytes=98)
    assert how == Ending(
        signal=9, why="killed by the kernel's OOM killer", at_bytes=98, limit_bytes=100
    )


def test_a_shell_that_hands_the_kill_on_counts_too() -> None:
    how = explained(Ending(code=137), before=NONE, after=OomCounters(group=1, machine=6))
    assert how.why == "killed by the kernel's OOM killer"


def test_a_kill_that_only_the_machine_counted_is_said_with_care() -> None:
    how = explained(KILLED, before=NONE, after=OomCounters(group=0, machine=6))
    assert how.why == "killed while the kernel's OOM killer was at work on this machine"
    assert how.limit_bytes is None


@pytest.mark.parametrize(
    ("ending", "after"),
    [
        (KILLED, NONE),  # somebody's kill -9
        (KILLED, OomCounters(group=None, machine=None)),  # a kernel that does not count
        (Ending(code=1), OomCounters(group=1, machine=6)),  # a worker was killed, not the target
        (Ending(code=0), OomCounters(group=1, machine=6)),
        (Ending(signal=signal.SIGTERM), OomCounters(group=1, machine=6)),
    ],
)
def test_without_evidence_nothing_is_claimed(ending: Ending, after: OomCounters) -> None:
    assert explained(ending, before=NONE, after=after) == ending


def test_a_reason_that_is_known_stays() -> None:
    known = Ending(signal=9, why="stopped by memdiag")
    assert explained(known, before=NONE, after=OomCounters(group=1, machine=6)) == known


@pytest.mark.parametrize("version", [1, 2])
def test_the_groups_own_counter_is_read(tmp_path: Path, version: int) -> None:
    group = MemoryGroup(levels=(tmp_path,), version=version)
    assert group.oom_kills() is None
    name, text = ("memory.oom_control", "under_oom 0\noom_kill 3\n")
    if version == 2:
        name, text = ("memory.events", "max 12\noom 2\noom_kill 3\noom_group_kill 0\n")
    (tmp_path / name).write_text(text)
    assert group.oom_kills() == 3


def test_a_process_that_the_real_oom_killer_ends_is_recognised() -> None:
    # It moves itself into the group, says so, and grows once it is told to.
    program = (
        "import sys\n"
        "open(sys.argv[1] + '/cgroup.procs', 'w').write('0')\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "held = [bytearray(1 << 20) for _ in range(400)]\n"
    )
    with limited_group(64 * MIB) as directory:
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "ready\n"
        group = memory_group(child.pid)
        assert group is not None
        assert group.limit() == (64 * MIB, directory)
        before = oom_counters(group)
        child.stdin.write("go\n")
        child.stdin.flush()
        status = child.wait(timeout=30)
        child.stdin.close()
        child.stdout.close()
        how = explained(Ending(signal=-status), before=before, after=oom_counters(group))
        assert how.why == "killed by the kernel's OOM killer"
