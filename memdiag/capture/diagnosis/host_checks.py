"""What can be measured on this machine by this user: the host's side of `memdiag doctor`.

Every check tries the real thing on this very process, or on its parent, and reports what happened.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from pathlib import Path

from memdiag.capture.gpu import source
from memdiag.capture.probelink import channel
from memdiag.capture.process.cgroup import PROC, memory_group, oom_counters
from memdiag.capture.process.memory_limits import machine, rlimits
from memdiag.values.measurements import Ability, Check

_LIBRARIES = ("psutil", "nvidia-ml-py", "numpy", "scipy", "polars", "rich", "typer")
_FRAMEWORKS = ("torch", "jax", "tensorflow")
_PTRACE = {
    0: "any process of the same user may be attached to",
    1: "only descendants may be attached to",
    2: "only the administrator may attach",
    3: "nobody may attach",
}


def host_checks(*, proc: Path = PROC) -> list[Check]:
    """Memory of processes, namespaces, limits. The first one decides the exit code."""
    return [
        _host_memory(),
        _unique_memory(proc),
        _channel(),
        _pid_namespace(proc),
        _ptrace(proc),
        _machine(proc),
        _container(proc),
        _process_limits(proc),
    ]


def software_checks() -> list[Check]:
    """Frameworks in this environment (never imported) and versions."""
    return [*(_framework(name) for name in _FRAMEWORKS if _is_there(name)), _versions()]


def _host_memory() -> Check:
    """Read this process's and its parent's resident memory, as the sampler would."""
    from memdiag.capture.process.attach import this_table

    facts: dict[str, object] = {}
    table = this_table()
    try:
        for name, pid in (("own", os.getpid()), ("parent", os.getppid())):
            process = table.find(pid)
            resident = None if process is None else table.resident_bytes(process.id)
            if isinstance(resident, int):
                facts[f"{name}_rss_bytes"] = resident
    except Exception as error:  # whatever fails here is what the doctor is asked to tell
        facts["error"] = f"{type(error).__name__}: {error}"
    finally:
        table.close()
    if "own_rss_bytes" in facts:
        return Check(
            name="host_memory",
            title="host memory",
            ability=Ability.YES,
            text="resident memory (RSS) of every process of the tree",
            facts=facts,
        )
    return Check(
        name="host_memory",
        title="host memory",
        ability=Ability.NO,
        text="the memory of a process cannot be read",
        facts=facts,
        remedy="mount /proc (it may be hidden by a sandbox), or check that psutil works here",
    )


def _unique_memory(proc: Path) -> Check:
    path = proc / "self" / "smaps_rollup"
    title, name = "USS, PSS, swap", "unique_memory"
    try:
        path.read_bytes()
    except FileNotFoundError:
        if sys.platform == "linux":
            return Check(
                name=name,
                title=title,
                ability=Ability.NO,
                text="the kernel has no smaps_rollup",
                remedy="use Linux 4.14 or later with CONFIG_PROC_PAGE_MONITOR",
            )
        return Check(
            name=name, title=title, ability=Ability.PARTLY, text="USS through psutil; no PSS"
        )
    except OSError as error:
        return Check(
            name=name,
            title=title,
            ability=Ability.NO,
            text="smaps_rollup cannot be read: {error}",
            facts={"error": error.strerror or str(error)},
            remedy="allow it in the sandbox or security profile (seccomp, AppArmor)",
        )
    return Check(
        name=name, title=title, ability=Ability.YES, text="through smaps_rollup, at a slower pace"
    )


def _channel() -> Check:
    """Steps, phases and tensor counts come through a private directory for temporary files."""
    title, directory = "steps and tensors", str(channel.bases(os.getuid())[0].parent)
    if os.access(directory, os.W_OK):
        return Check(
            name="channel",
            title=title,
            ability=Ability.YES,
            text="steps, phases and tensor counts of Python targets, through {directory}",
            facts={"directory": directory},
        )
    return Check(
        name="channel",
        title=title,
        ability=Ability.NO,
        text="nothing can be written to {directory}",
        facts={"directory": directory},
        remedy="point TMPDIR at a directory that can be written to",
    )


def _pid_namespace(proc: Path) -> Check:
    if sys.platform != "linux":
        return _fact("pid_namespace", "pid namespace", "none on this system")
    is_host = source.is_host_namespace(proc=proc)
    text = "the host's" if is_host else "a container's own: NVML may not list our processes"
    return Check(
        name="pid_namespace",
        title="pid namespace",
        ability=Ability.FACT,
        text=text,
        facts={"is_host": is_host},
        remedy="" if is_host else "start the container with --pid=host if VRAM is missing",
    )


def _ptrace(proc: Path) -> Check:
    """Yama's ptrace_scope (Documentation/admin-guide/LSM/Yama.rst)."""
    try:
        scope = int((proc / "sys/kernel/yama/ptrace_scope").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return _fact("ptrace", "attaching", "not restricted beyond the user's own processes")
    return Check(
        name="ptrace",
        title="attaching",
        ability=Ability.FACT,
        text="ptrace_scope {scope}: {meaning}; reading memory figures does not need it",
        facts={"scope": scope, "meaning": _PTRACE.get(scope, "a value unknown to memdiag")},
    )


def _machine(proc: Path) -> Check:
    host = machine(proc=proc)
    if host is None:
        return Check(
            name="machine",
            title="this machine",
            ability=Ability.NO,
            text="its memory is not told",
            remedy="give the limit yourself: --limit 64GB",
        )
    text = "{total_bytes} RAM, {available_bytes} of it available"
    text += "; {swap_free_bytes} of swap free" if host.swap_total_bytes else "; no swap"
    return Check(
        name="machine",
        title="this machine",
        ability=Ability.FACT,
        text=text,
        facts={
            "total_bytes": host.total_bytes,
            "available_bytes": host.available_bytes,
            "swap_total_bytes": host.swap_total_bytes,
            "swap_free_bytes": host.swap_free_bytes,
        },
    )


def _container(proc: Path) -> Check:
    group = memory_group(os.getpid(), proc=proc)
    if group is None:
        return _fact("cgroup", "container limit", "no memory cgroup to be seen")
    oom = oom_counters(group, proc=proc)
    counted = oom.group if oom.group is not None else oom.machine
    facts: dict[str, object] = {"version": group.version, "oom_kills": counted}
    told = "" if counted is not None else "; the OOM killer's work is not counted"
    found = group.limit()
    if found is None:
        text = "none (cgroup version {version})" + told
    else:
        facts |= {"limit_bytes": found[0], "used_bytes": group.used_bytes(found[1])}
        text = "{limit_bytes} (cgroup version {version}), {used_bytes} in use" + told
    return Check(
        name="cgroup", title="container limit", ability=Ability.FACT, text=text, facts=facts
    )


def _process_limits(proc: Path) -> Check:
    limits = rlimits(os.getpid(), proc=proc)
    if not limits:
        return _fact("rlimits", "process limits", "none (ulimit -v and -d)")
    facts = {f"{name.lower()}_bytes": value for name, value in limits.items()}
    text = ", ".join(f"{name} {{{name.lower()}_bytes}}" for name in limits)
    return Check(
        name="rlimits", title="process limits", ability=Ability.FACT, text=text, facts=facts
    )


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _framework(name: str) -> Check:
    version = _version(name)
    build = version.partition("+")[2]
    facts = {"version": version, "build": build}
    text = "{version} in memdiag's environment; the target's own may differ"
    if name == "torch" and build == "cpu":
        text = "{version}: a build without GPU support"
    return Check(name=name, title=name, ability=Ability.FACT, text=text, facts=facts)


def _versions() -> Check:
    facts = {
        "memdiag": _version("memdiag"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        **{name: _version(name) for name in _LIBRARIES},
    }
    text = "memdiag {memdiag}, Python {python}, {system}, psutil {psutil}, "
    text += "nvidia-ml-py {nvidia-ml-py}, polars {polars}"
    return Check(name="versions", title="versions", ability=Ability.FACT, text=text, facts=facts)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version" if _is_there(name) else "not installed"


def _fact(name: str, title: str, text: str) -> Check:
    return Check(name=name, title=title, ability=Ability.FACT, text=text)
