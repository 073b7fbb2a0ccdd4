import json
from concurrent.futures import ThreadPoolExecutor

from fleets import write

from memdiag.capture.launch.run_labels import run_labels
from memdiag.fleet import engines, run
from memdiag.fleet.groups import judge_groups
from memdiag.fleet.judge_file import How
from memdiag.fleet.results_file import ResultsFile


def judged(folder, labels):
    paths = [str(path) for path in folder.glob("*/*.csv")]
    with ThreadPoolExecutor(1) as executor, ResultsFile(None) as results:
        run.judge_into(results, paths, engines.of_executor(executor), How(with_points=True))
        return list(judge_groups(results, labels))


def test_recordings_of_a_directory_are_the_ranks_of_a_job(tmp_path):
    for job in ("good", "bad"):
        (tmp_path / job).mkdir()
        for rank in range(6):
            leak = 1.0 if job == "bad" and rank == 4 else 0.0
            write(tmp_path / job / f"rank{rank}.csv", leak_mb=leak)
    bad, good = judged(tmp_path, ["directory"])
    assert (bad.group, bad.leaking, bad.ranks) == ("bad", ("4",), 6)
    assert (good.group, good.leaking) == ("good", ())
    assert judged(tmp_path, ["job"]) == []
    assert judged(tmp_path, ["directory", "x'\"; DROP"]) == []


def test_a_recording_of_several_ranks_is_a_job_without_a_label(tmp_path):
    """As of `memdiag run -- torchrun`: what torchrun calls the job is not known outside of it."""
    (tmp_path / "runs").mkdir()
    rows = [
        f"{n / 10},{n},,{rank},rank{rank},{10**9 + (rank == 2) * n * 10**6 + n * 79 % 13 * 10**5}"
        for n in range(600)
        for rank in range(4)
    ]
    path = tmp_path / "runs" / "run.csv"
    path.write_text("at_s,step,phase,pid,process,rss_bytes\n" + "\n".join(rows) + "\n")
    ranks = [{"pid": n, "label": f"rank{n}", "rank": n, "world_size": 4} for n in range(4)]
    sidecar = {"memdiag_recording": 2, "about": {"processes": ranks}}
    path.with_name("run.meta.json").write_text(json.dumps(sidecar))
    write(tmp_path / "runs" / "other.csv")
    (found,) = judged(tmp_path, ["job"])
    assert (found.group, found.leaking, found.ranks) == (str(path), ("2",), 4)


def test_labels_are_those_of_the_environment(tmp_path):
    slurm = {"SLURM_JOB_ID": "77", "SLURM_PROCID": "3", "SLURM_NTASKS": "8"}
    assert run_labels(slurm, tmp_path) == {"job": "77", "rank": "3", "world_size": "8"}
    elastic = {"TORCHELASTIC_RUN_ID": "none", "MEMDIAG_LABELS": "job=mine, team=vision"}
    assert run_labels(elastic, tmp_path) == {"job": "mine", "team": "vision"}


def test_branch_and_commit_are_those_of_the_repository(tmp_path):
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{'ab' * 20} refs/heads/main\n")
    (tmp_path / "sub").mkdir()
    assert run_labels({}, tmp_path / "sub") == {"branch": "main", "commit": "ab" * 20}
    (git / "refs" / "heads" / "main").write_text("cd" * 20)
    assert run_labels({}, tmp_path)["commit"] == "cd" * 20
    ci = {"GITHUB_SHA": "1" * 40, "GITHUB_REF_NAME": "topic"}
    assert run_labels(ci, tmp_path) == {"branch": "topic", "commit": "1" * 40}
