"""How a target ended, by the evidence that the kernel leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cgroups import limited_group

from memdiag.capture.diagnosis.exit_cause import Held, Kernel, explained
from memdiag.capture.diagnosis.oom_reports import OomReport
from memdiag.capture.process.cgroup import MemoryGroup, OomCounters, memory_group, oom_counters
from memdiag.values.measurements import Cause, Ending

KILLED = Ending(signal=signal.SIGKILL)
NONE = OomCounters(group=0, machine=5)
MIB = 1 << 20


def kernel(after: OomCounters, group: MemoryGroup | None = None) -> Kernel:
    return Kernel(before=NONE, after=after, group=group)


def words(*, on_device: bool = True, text: str = "CUDA out of memory.") -> OomReport:
    return OomReport(process="rank1", at_s=5.0, text=text, on_device=on_device, held_bytes=900)


def test_a_kill_counted_by_the_group_is_the_oom_killers(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("100\n")
    group = MemoryGroup(levels=(tmp_path,), version=2)
    evidence = kernel(OomCounters(group=1, machine=6), group)
    how = explained(KILLED, kernel=evidence, held=Held(host_bytes=98))
    assert how == Ending(
        signal=9,
        why="killed by the kernel's OOM killer",
        cause=Cause.OOM_KILLER,
        at_bytes=98,
        limit_bytes=100,
    )


def test_a_shell_that_hands_the_kill_on_counts_too() -> None:
    how = explained(Ending(code=137), kernel=kernel(OomCounters(group=1, machine=6)))
    assert how.why == "killed by the kernel's OOM killer"


def test_a_kill_that_only_the_machine_counted_is_said_with_care() -> None:
    how = explained(KILLED, kernel=kernel(OomCounters(group=0, machine=6)))
    assert how.why == "killed while the kernel's OOM killer was active on this machine"
    assert how.cause is Cause.OOM_KILLER_NEAR
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
    assert explained(ending, kernel=kernel(after)) == ending


def test_a_reason_that_is_known_stays() -> None:
    known = Ending(signal=9, why="stopped by memdiag")
    after = OomCounters(group=1, machine=6)
    assert explained(known, kernel=kernel(after), report=words()) == known


def test_a_failed_command_that_spoke_of_device_memory_ran_out_of_it() -> None:
    held = Held(host_bytes=5, device_bytes=990, device_limit_bytes=1000)
    how = explained(Ending(code=1), kernel=kernel(NONE), report=words(), held=held)
    assert how == Ending(
        code=1,
        why="rank1 ran out of GPU memory",
        cause=Cause.DEVICE_MEMORY,
        detail="CUDA out of memory.",
        at_bytes=990,
        limit_bytes=1000,
    )


def test_a_device_that_was_hardly_used_is_not_what_was_full() -> None:
    held = Held(device_bytes=390, device_limit_bytes=5000)
    how = explained(Ending(code=1), kernel=kernel(NONE), report=words(), held=held)
    assert (how.at_bytes, how.limit_bytes) == (390, None)


def test_where_the_driver_does_not_tell_the_allocators_figure_is_said() -> None:
    how = explained(Ending(code=1), kernel=kernel(NONE), report=words())
    assert (how.at_bytes, how.limit_bytes) == (900, None)


def test_a_memory_error_is_about_the_host() -> None:
    held = Held(host_bytes=5, device_bytes=990)
    spoken = words(on_device=False, text="Unable to allocate 4 GiB\x1b[2J")
    how = explained(Ending(code=1), kernel=kernel(NONE), report=spoken, held=held)
    assert (how.cause, how.at_bytes) == (Cause.HOST_MEMORY, 900)  # as the program has reported it
    assert how.detail.isprintable()


@pytest.mark.parametrize("ending", [Ending(code=0), KILLED, Ending(signal=signal.SIGSEGV)])
def test_an_error_that_was_lived_with_explains_no_other_end(ending: Ending) -> None:
    assert explained(ending, kernel=kernel(NONE), report=words()) == ending


def test_of_a_watched_process_that_vanished_the_kernels_part_is_said_with_care() -> None:
    how = explained(Ending(), kernel=kernel(OomCounters(group=1, machine=6)))
    assert how.cause is Cause.OOM_KILLER_NEAR
    assert explained(Ending(), kernel=kernel(NONE)) == Ending()


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
        evidence = Kernel(before=before, after=oom_counters(group))
        how = explained(Ending(signal=-status), kernel=evidence)
        assert how.why == "killed by the kernel's OOM killer"
