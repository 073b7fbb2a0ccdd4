"""What this user can measure on this host: the host's part of `memdiag doctor`.

Each check does the real operation on this process, or on its parent, and reports the result.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
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
    """Checks of memory, namespaces and limits. The first one decides the exit code."""
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
    """Checks of frameworks in this environment (never imported) and versions."""
    return [*(_framework(name) for name in _FRAMEWORKS if _is_installed(name)), _versions()]


def _host_memory() -> Check:
    """Read this process's and its parent's resident memory, as the sampler does."""
    from memdiag.capture.process.attach import this_table

    check = partial(Check, name="host_memory", title="host memory")
    facts: dict[str, object] = {}
    table = this_table()
    try:
        for name, pid in (("own", os.getpid()), ("parent", os.getppid())):
            process = table.find(pid)
            resident = None if process is None else table.resident_bytes(process.id)
            if isinstance(resident, int):
                facts[f"{name}_rss_bytes"] = resident
    except Exception as error:  # any failure is a result of this check
        facts["error"] = f"{type(error).__name__}: {error}"
    finally:
        table.close()
    if "own_rss_bytes" in facts:
        text = "resident memory (RSS) of every process of the tree"
        return check(ability=Ability.YES, text=text, facts=facts)
    return check(
        ability=Ability.NO,
        text="the memory of a process cannot be read",
        facts=facts,
        remedy="mount /proc (a sandbox may hide it), or check that psutil works here",
    )


def _unique_memory(proc: Path) -> Check:
    check = partial(Check, name="unique_memory", title="USS, PSS, swap")
    path = proc / "self" / "smaps_rollup"
    try:
        path.read_bytes()
    except FileNotFoundError:
        if sys.platform != "linux":
            return check(ability=Ability.PARTLY, text="USS through psutil; no PSS")
        remedy = "use Linux 4.14 or later with CONFIG_PROC_PAGE_MONITOR"
        return check(ability=Ability.NO, text="the kernel has no smaps_rollup", remedy=remedy)
    except OSError as error:
        return check(
            ability=Ability.NO,
            text="smaps_rollup cannot be read: {error}",
            facts={"error": error.strerror or str(error)},
            remedy="allow it in the sandbox or security profile (seccomp, AppArmor)",
        )
    return check(ability=Ability.YES, text="through smaps_rollup, less often than RSS")


def _channel() -> Check:
    """Steps, phases and tensor counts need a private directory for temporary files."""
    directory = str(channel.bases(os.getuid())[0].parent)
    check = partial(
        Check, name="channel", title="steps and tensors", facts={"directory": directory}
    )
    if os.access(directory, os.W_OK):
        text = "steps, phases and tensor counts of Python targets, through {directory}"
        return check(ability=Ability.YES, text=text)
    return check(
        ability=Ability.NO,
        text="{directory} is not writable",
        remedy="set TMPDIR to a writable directory",
    )


def _pid_namespace(proc: Path) -> Check:
    if sys.platform != "linux":
        return _fact("pid_namespace", "pid namespace", "none on this system")
    is_host = source.is_host_namespace(proc=proc)
    return _fact(
        "pid_namespace",
        "pid namespace",
        "the host's" if is_host else "the container's: NVML may not list its processes",
        {"is_host": is_host},
        remedy="" if is_host else "start the container with --pid=host if VRAM is missing",
    )


def _ptrace(proc: Path) -> Check:
    """Yama's ptrace_scope (Documentation/admin-guide/LSM/Yama.rst)."""
    try:
        scope = int((proc / "sys/kernel/yama/ptrace_scope").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return _fact("ptrace", "attaching", "not restricted beyond the user's own processes")
    return _fact(
        "ptrace",
        "attaching",
        "ptrace_scope {scope}: {meaning}; reading memory does not need it",
        {"scope": scope, "meaning": _PTRACE.get(scope, "a value unknown to memdiag")},
    )


def _machine(proc: Path) -> Check:
    host = machine(proc=proc)
    if host is None:
        return Check(
            name="machine",
            title="this machine",
            ability=Ability.NO,
            text="the system does not report its memory",
            remedy="pass the limit: --limit 64GB",
        )
    text = "{total_bytes} RAM, {available_bytes} of it available"
    text += "; {swap_free_bytes} of swap free" if host.swap_total_bytes else "; no swap"
    return _fact("machine", "this machine", text, asdict(host))


def _container(proc: Path) -> Check:
    group = memory_group(os.getpid(), proc=proc)
    if group is None:
        return _fact("cgroup", "container limit", "no memory cgroup is visible")
    oom = oom_counters(group, proc=proc)
    counted = oom.group if oom.group is not None else oom.machine
    facts: dict[str, object] = {"version": group.version, "oom_kills": counted}
    note = "" if counted is not None else "; OOM kills are not counted"
    found = group.limit()
    if found is None:
        text = "none (cgroup version {version})" + note
    else:
        facts |= {"limit_bytes": found[0], "used_bytes": group.used_bytes(found[1])}
        text = "{limit_bytes} (cgroup version {version}), {used_bytes} in use" + note
    return _fact("cgroup", "container limit", text, facts)


def _process_limits(proc: Path) -> Check:
    limits = rlimits(os.getpid(), proc=proc)
    if not limits:
        return _fact("rlimits", "process limits", "none (ulimit -v and -d)")
    facts = {f"{name.lower()}_bytes": value for name, value in limits.items()}
    text = ", ".join(f"{name} {{{name.lower()}_bytes}}" for name in limits)
    return _fact("rlimits", "process limits", text, facts)


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _framework(name: str) -> Check:
    version = _version(name)
    build = version.partition("+")[2]
    facts = {"version": version, "build": build}
    text = "{version} in memdiag's environment; the target's may differ"
    if name == "torch" and build == "cpu":
        text = "{version}: a build without GPU support"
    return _fact(name, name, text, facts)


def _versions() -> Check:
    facts = {
        "memdiag": _version("memdiag"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        **{name: _version(name) for name in _LIBRARIES},
    }
    text = "memdiag {memdiag}, Python {python}, {system}, psutil {psutil}, "
    text += "nvidia-ml-py {nvidia-ml-py}, polars {polars}"
    return _fact("versions", "versions", text, facts)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version" if _is_installed(name) else "not installed"


def _fact(
    name: str, title: str, text: str, facts: Mapping[str, object] | None = None, remedy: str = ""
) -> Check:
    """A check that describes this machine, without a good or a bad result."""
    return Check(
        name=name,
        title=title,
        ability=Ability.FACT,
        text=text,
        facts=dict(facts or {}),
        remedy=remedy,
    )
