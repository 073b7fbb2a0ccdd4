"""Lists every place in memdiag that opens, makes, changes, removes, executes or signals something.

    python tools/touches.py [--check]

Writes the table in docs/security.md; with --check it fails if the table is not that of the code, or
if a file has no word about why it may do what it does.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- touches -->", "<!-- /touches -->"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OF_OS = _words(
    "open mkdir makedirs unlink remove rmdir rename replace link symlink chmod chown fchmod fchown "
    "kill killpg fork forkpty posix_spawn posix_spawnp execv execve execvp system popen truncate "
    "ftruncate mkfifo posix_fallocate openpty waitpid"
)
_OF_MODULES = {
    "os": _OF_OS,
    "shutil": frozenset({"rmtree", "copy", "copyfile", "copytree", "move"}),
    "tempfile": frozenset({"mkdtemp", "TemporaryFile", "NamedTemporaryFile", "mkstemp"}),
    "subprocess": frozenset({"run", "Popen", "check_call", "check_output"}),
    "ctypes": frozenset({"CDLL"}),
    "fcntl": frozenset({"flock"}),
    "safe_open": None,  # all of it
}
_OF_PATHS = _words(
    "open read_text read_bytes write_text write_bytes mkdir unlink chmod touch rmdir"
)
_SAFE = frozenset({"closing", "kind_of", "temporary_name", "is_file_or_link", "NotRegular", "Name"})
# Whose name it is, and what is done about it. One entry for each file of the table.
WHY = {
    "api/diagnosis.py": "HTML reports that a program asks for: replaces only those of memdiag",
    "api/recorder.py": (
        "starts memdiag beside a program that calls `memdiag.record()`, and reads the script that "
        "loads the probe"
    ),
    "cli/commands/demo.py": "starts memdiag itself, for the programs of the demonstration",
    "cli/measurement/action_process.py": (
        "a fork that runs the commands of `--on` as the person typed them, without a shell"
    ),
    "cli/measurement/destination_process.py": (
        "a fork for each tracker of `--to`, and a private temporary directory with the report"
    ),
    "cli/measurement/tracker_feed.py": "the report, in that directory",
    "capture/process/trainings.py": "kernel files in /proc, read to look for libraries",
    "recording/trackers/mlflow_database.py": (
        "a regular file that the person names, by its descriptor: SQLite opens nothing beside it"
    ),
    "destinations/prometheus.py": (
        "the file that the person names, replaced atomically; one that memdiag did not write is not"
    ),
    "destinations/tensorboard.py": "new files in a new directory below the one that is named",
    "capture/process/cgroup.py": "kernel files below /sys/fs/cgroup",
    "capture/process/cgroup_charge.py": "kernel files below /sys/fs/cgroup and /proc",
    "capture/probelink/channel.py": (
        "channels: private directories by descriptor, nothing followed, no wait"
    ),
    "capture/logtags/printed_steps.py": (
        "regular files that the target's output goes to, read by offset: no wait"
    ),
    "capture/logtags/tail_file.py": "the log of `--tags-from`: no wait, read by offset",
    "capture/launch/foreground.py": ("/dev/tty, and whose keys it has; kernel files below /proc"),
    "capture/launch/fork_helper.py": "forks memdiag's own helpers; /proc/self/comm",
    "capture/diagnosis/host_checks.py": "`doctor`: kernel files below /proc",
    "capture/process/memory_limits.py": "kernel files below /proc",
    "capture/launch/output_tee.py": "pseudo-terminals and pipes without a name",
    "capture/logtags/patterns.py": "the log of `--tags-from`, before anything starts",
    "capture/probelink/ptrace_permission.py": "kernel files below /proc",
    "capture/process/linux_procfs.py": "kernel files below /proc",
    "capture/probelink/ptrace.py": (
        "stops the process that `--attach` names; /proc/PID/mem and maps"
    ),
    "capture/probelink/probe_files.py": (
        "what the probe found: regular files of the expected user, by the channel's descriptor; "
        "new files in the channel that ask the probe for something"
    ),
    "capture/probelink/census_request.py": "the channel of a process, by descriptor",
    "capture/probelink/source_lines.py": (
        "source files of the program: regular ones, bounded, parsed and never executed"
    ),
    "capture/probelink/ring_reader.py": (
        "rings: regular files of the expected user, by the channel's descriptor"
    ),
    "capture/launch/run_labels.py": (
        "HEAD and refs of the git repository, labels of a pod: regular files, bounded"
    ),
    "capture/launch/signals.py": "collects the witness",
    "capture/probelink/elf_symbols.py": (
        "executables of the target: regular files, bounded, never executed"
    ),
    "capture/logtags/tagger.py": "wakes memdiag itself by SIGCHLD",
    "capture/launch/target.py": "starts COMMAND as the person typed it; signals its process tree",
    "capture/probelink/why_uninstrumented.py": "kernel files below /proc",
    "capture/probelink/workspace.py": (
        "attach: directories of ours, made by descriptor, nothing replaced"
    ),
    "cli/app.py": "/dev/null for closed streams",
    "cli/measurement/judge_process.py": (
        "forks the judge of a recording, collects it or ends it; /dev/null"
    ),
    "cli/measurement/live_screen.py": (
        "its process; its own process group, with the signals of keys; a file without a name"
    ),
    "cli/measurement/run_session.py": "signals itself, to end as COMMAND did",
    "cli/options/recording_options.py": "a private directory if this one is not writable",
    "cli/options/outputs.py": (
        "reports: never an input, an output or a file that is not ours; no wait"
    ),
    "cli/output/ci_reports.py": "GITHUB_STEP_SUMMARY, which the runner names: appended, no wait",
    "cli/options/config_layers.py": (
        "pyproject.toml of the working directory: a regular file, bounded"
    ),
    "_without_packages.py": "the census that this process has just written",
    "api/explanation.py": "the channel of its own process, by descriptor",
    "fleet/judge_file.py": (
        "inputs as the person named them, regular files; copies of objects in a private directory"
    ),
    "fleet/paths.py": "the list that `@FILE` names",
    "fleet/results_file.py": (
        "the file of results: made by descriptor, no link followed, and SQLite may use only the "
        "file that was seen; never one that is not ours; temporary files in private directories"
    ),
    "integrations/repeat_until_settled.py": "the C library of its own process",
    "probe/arm.py": "inside the target: a private directory for its channel",
    "probe/device_snapshot.py": "inside the target: beside the recording, O_EXCL, O_NOFOLLOW",
    "probe/interventions.py": "inside the target: malloc_trim of its C library, on request",
    "probe/loop_positions.py": "the memory of its own process, to read",
    "probe/process_identity.py": "kernel files below /proc/self",
    "probe/process_metrics.py": "kernel files below /proc/self",
    "probe/ring_writer.py": "inside the target: its own ring, O_EXCL, O_NOFOLLOW",
    "probe/watcher_lock.py": "inside the target: the lock of its watcher, no wait",
    "recording/native/atomic_file.py": "the recording: O_EXCL, locked, then by descriptor alone",
    "recording/trackers/mlflow.py": "files of an MLflow run: regular ones only",
    "recording/inputs/opening.py": (
        "inputs as the person named them: no wait, no directories or sockets"
    ),
    "recording/native/runs.py": (
        "the place for runs, by descriptor: a new directory for each run; removes only files that "
        "memdiag wrote"
    ),
    "recording/native/sidecar.py": "NAME.meta.json beside an input: a regular file, bounded",
    "recording/inputs/source.py": "inputs (recording/inputs/source.py)",
    "recording/inputs/spool.py": "a temporary file without a name",
    "recording/native/writer.py": "writes to the descriptors of recording/files.py",
    "report/formats/html/page.py": "files of memdiag's own package",
    "report/formats/json_documents.py": "a file of memdiag's own package",
    "screen/app.py": "a picture in the working directory: O_EXCL; wakes memdiag by SIGCHLD",
    "screen/process.py": "a member of the job's process group; the terminal's descriptors",
    "safe_open.py": "the rules themselves",
}


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = list(table())
    missing = [name for name, _, _ in rows if name not in WHY]
    stale = sorted(WHY.keys() - {name for name, _, _ in rows})
    for name in missing:
        print(f"tools/touches.py: WHY has no entry for {name}")
    for name in stale:
        print(f"tools/touches.py: WHY has an entry for {name}, which touches nothing")
    lines = ["| file | calls | whose name, and what is done |", "|---|---|---|"]
    lines += [f"| `{name}` | {calls} | {WHY.get(name, '')} |" for name, calls, _ in rows]
    new = f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}"
    if "--check" in sys.argv[1:]:
        if new != text:
            print(f"{PAGE.relative_to(ROOT)} is not what the code does: python tools/touches.py")
        return int(new != text or bool(missing or stale))
    PAGE.write_text(new, encoding="utf-8")
    return int(bool(missing or stale))


def table() -> Iterator[tuple[str, str, int]]:
    """(file, its calls in words, how many) for each file that touches anything."""
    package = ROOT / "memdiag"
    for path in sorted(package.rglob("*.py")):
        calls = sorted(set(_calls(ast.parse(path.read_text(encoding="utf-8")))))
        if calls:
            name = str(path.relative_to(package))
            yield name, ", ".join(f"`{call}`" for call in calls), len(calls)


def _calls(tree: ast.AST) -> Iterator[str]:
    nodes = list(ast.walk(tree))
    imported = {
        alias.asname or alias.name: f"safe_open.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "memdiag.safe_open"
        for alias in node.names
        if alias.name not in _SAFE
    }
    for node in nodes:
        if isinstance(node, ast.Call):
            name = _named(node.func, imported)
            if name:
                yield name


def _named(function: ast.expr, imported: dict[str, str]) -> str:
    if isinstance(function, ast.Name):
        return "open" if function.id == "open" else imported.get(function.id, "")
    if not isinstance(function, ast.Attribute):
        return ""
    if isinstance(function.value, ast.Name) and function.value.id in _OF_MODULES:
        known = _OF_MODULES[function.value.id]
        is_ours = function.attr not in _SAFE if known is None else function.attr in known
        return f"{function.value.id}.{function.attr}" if is_ours else ""
    is_path = function.attr in _OF_PATHS and not isinstance(function.value, ast.Constant)
    return f"Path.{function.attr}" if is_path else ""


if __name__ == "__main__":
    sys.exit(main())
