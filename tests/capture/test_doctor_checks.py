"""The host's side of the doctor."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdiag.capture.diagnosis.host_checks import host_checks, software_checks
from memdiag.values.measurements import Ability, Check


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_this_machine_can_be_watched() -> None:
    checks = by_name(host_checks())
    assert checks["host_memory"].ability is Ability.YES
    own = checks["host_memory"].facts["own_rss_bytes"]
    assert isinstance(own, int)
    assert own > 1_000_000
    assert next(iter(checks)) == "host_memory"


def test_every_text_names_only_facts_that_are_there() -> None:
    for check in (*host_checks(), *software_checks()):
        assert "{" not in check.text.format_map(check.facts)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "self").mkdir()
    return tmp_path


def test_a_bare_proc_gives_reasons_and_no_traceback(proc: Path) -> None:
    checks = by_name(host_checks(proc=proc))
    assert checks["unique_memory"].ability is Ability.NO
    assert "4.14" in checks["unique_memory"].remedy
    assert checks["cgroup"].text == "no memory cgroup is visible"


@pytest.mark.parametrize("scope", [0, 1, 2, 3, 9])
def test_ptrace_scopes_are_told(proc: Path, scope: int) -> None:
    yama = proc / "sys" / "kernel" / "yama"
    yama.mkdir(parents=True)
    (yama / "ptrace_scope").write_text(f"{scope}\n")
    check = by_name(host_checks(proc=proc))["ptrace"]
    assert check.facts["scope"] == scope
    assert check.facts["meaning"]


@pytest.mark.parametrize(("inode", "is_host"), [(4026531836, True), (4026532799, False)])
def test_a_containers_pids_are_told(proc: Path, inode: int, is_host: bool) -> None:
    (proc / "self" / "ns").mkdir()
    (proc / "self" / "ns" / "pid").symlink_to(f"pid:[{inode}]")
    check = by_name(host_checks(proc=proc))["pid_namespace"]
    assert check.facts["is_host"] is is_host
    assert ("--pid=host" in check.remedy) is not is_host


def test_a_framework_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jax.py").write_text("raise SystemExit('imported')\n")
    meta = tmp_path / "jax-0.4.99.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.4.99\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert by_name(software_checks())["jax"].facts["version"] == "0.4.99"
