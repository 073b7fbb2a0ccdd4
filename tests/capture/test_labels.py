import pytest

from memdiag.capture.process.labels import Labels, measurable, sanitised
from memdiag.capture.process.tree import Process, ProcessId


def process(pid: int, name: str = "python3", started: float = 1.0) -> Process:
    return Process(id=ProcessId(pid, started), name=name)


def label(labels: Labels, who: Process, probe_label: str = "", alive=()) -> str:
    return labels.label(who, probe_label=probe_label, alive={who.id, *(p.id for p in alive)})


def test_the_command_itself_is_main():
    labels = Labels(10)
    assert label(labels, process(10)) == "main"
    assert label(labels, process(11)) == "python3 11"


def test_under_a_launcher_its_python_is_main():
    labels = Labels(10)
    shell, training, worker = process(10, "bash"), process(11), process(12)
    assert label(labels, shell) == "bash 10"
    assert label(labels, training, alive=[shell]) == "main"
    assert label(labels, worker, alive=[shell, training]) == "python3 12"


def test_a_shell_that_becomes_the_program_becomes_main():
    labels = Labels(10)
    assert label(labels, process(10, "sh")) == "sh 10"
    assert label(labels, process(10, "python3")) == "main"


def test_a_restarted_training_keeps_the_label_main():
    labels = Labels(10)
    shell, first, second = process(10, "bash"), process(11), process(15)
    label(labels, shell)
    assert label(labels, first, alive=[shell]) == "main"
    assert label(labels, second, alive=[shell]) == "main"


def test_ranks_go_by_their_rank_and_two_of_a_kind_are_told_apart():
    labels = Labels(10)
    first, second = process(11), process(12)
    assert label(labels, first, probe_label="rank0") == "rank0"
    assert label(labels, second, probe_label="rank0", alive=[first]) == "rank0 (12)"


def test_a_reused_pid_gets_a_label_of_its_own():
    labels = Labels(10)
    first, second = process(11, "cp", 1.0), process(11, "cp", 2.0)
    assert label(labels, first) == "cp 11"
    assert label(labels, second) == "cp 11 (2)"


def test_nobody_can_pose_as_the_tree_or_as_main():
    labels = Labels(10)
    assert label(labels, process(11, "tree"), probe_label="tree") == "tree (11)"
    assert label(labels, process(12, "x"), probe_label="main") == "x 12"


@pytest.mark.parametrize("name", ["\x1b[31mred", 'a,b\n"c', "=cmd|' /C calc'!A0", "[bold]x", "ü"])
def test_names_from_outside_are_made_harmless(name):
    safe = sanitised(name)
    assert safe.isascii()
    assert safe.isprintable()
    assert not set(safe) & set("=,\"'[]|!\x1b\n")
    assert not safe.startswith(("-", "+", "@", "="))


def names(*processes: str) -> list[str]:
    found = measurable([process(pid, name) for pid, name in enumerate(processes, 10)])
    return [one.name for one in found]


def test_a_client_is_not_measured_nor_what_only_starts_it():
    assert names("docker") == []
    assert names("bash", "ssh", "tee") == []
    assert names("bash", "docker", "python3") == ["bash", "python3"]
    assert names("bash", "tee") == ["bash", "tee"]


def test_what_a_client_starts_is_its_own():
    helper = Process(id=ProcessId(12, 2.0), name="python3", parent=11)
    assert measurable([process(10, "bash"), process(11, "kubectl"), helper]) == []
