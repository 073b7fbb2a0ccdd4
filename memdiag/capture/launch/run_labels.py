"""What the environment says of a run: its job, rank, branch, commit and image.

They let recordings of one job be judged together, and runs be compared over time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from memdiag.safe_open import read_regular

# The first of each that is set is taken.
_VARIABLES = {
    "job": (
        "SLURM_JOB_ID",
        "PBS_JOBID",
        "LSB_JOBID",
        "FLUX_JOB_ID",
        "RAY_JOB_ID",
        "TORCHELASTIC_RUN_ID",
    ),
    "rank": ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"),
    "world_size": ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    "node": ("SLURMD_NODENAME", "NODE_NAME"),
    "branch": (
        "GITHUB_HEAD_REF",
        "GITHUB_REF_NAME",
        "CI_COMMIT_REF_NAME",
        "BUILDKITE_BRANCH",
        "CIRCLE_BRANCH",
        "BRANCH_NAME",
        "BUILD_SOURCEBRANCHNAME",
    ),
    "commit": (
        "GITHUB_SHA",
        "CI_COMMIT_SHA",
        "BUILDKITE_COMMIT",
        "CIRCLE_SHA1",
        "GIT_COMMIT",
        "BUILD_SOURCEVERSION",
    ),
    "image": ("CI_JOB_IMAGE", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"),
}
# Values that a launcher sets for every job.
_NO_VALUE = frozenset({"", "none", "None"})
_OWN = "MEMDIAG_LABELS"
# Where the downward API of Kubernetes is mounted by convention, and the labels of the job.
_POD_LABELS = Path("/etc/podinfo/labels")
_JOB_OF_POD = re.compile(
    r'^(?:batch\.kubernetes\.io/job-name|training\.kubeflow\.org/job-name|job-name)="(.*)"$', re.M
)
_LONGEST, _MOST_BYTES = 200, 65_536
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


def run_labels(
    environ: Mapping[str, str] | None = None, directory: Path | None = None
) -> dict[str, str]:
    """The labels of a run that is started here; none that is unknown.

    environ, directory: os.environ and the working directory by default. `MEMDIAG_LABELS` in the
    environment, `team=vision,image=v12`, comes before all others.
    """
    given = os.environ if environ is None else environ
    found = {}
    for label, names in _VARIABLES.items():
        values = (given.get(name, "") for name in names)
        found[label] = next((value for value in values if value not in _NO_VALUE), "")
    found["job"] = found["job"] or _job_of_pod()
    if not found["commit"]:
        found |= _checked_out(Path() if directory is None else directory)
    for part in given.get(_OWN, "").split(","):
        name, equals, value = part.partition("=")
        if equals:
            found[name.strip()] = value.strip()
    return {name: value[:_LONGEST] for name, value in found.items() if name and value}


def _job_of_pod() -> str:
    match = _JOB_OF_POD.search(_text(_POD_LABELS))
    return match[1] if match else ""


def _checked_out(directory: Path) -> dict[str, str]:
    """Branch and commit of the git repository that holds the directory."""
    try:
        place = directory.resolve()
    except OSError:  # the directory was removed
        return {}
    for folder in (place, *place.parents):
        git = folder / ".git"
        head = _text(git / "HEAD").strip()
        if not head:
            continue
        if not head.startswith("ref: refs/"):
            return {"commit": head} if _COMMIT.fullmatch(head) else {}
        name = head.removeprefix("ref: ")
        branch = {"branch": name.removeprefix("refs/heads/")}
        if ".." in name.split("/"):
            return {}
        packed = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", _text(git / "packed-refs"), re.M)
        commit = _text(git / name).strip() or (packed[1] if packed else "")
        return {**branch, "commit": commit} if _COMMIT.fullmatch(commit) else branch
    return {}


def _text(path: Path) -> str:
    try:
        return read_regular(path, most_bytes=_MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
