"""Programs under variants of the probe, in each of which one function fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sabotage import noting, sabotaged

import memdiag.probe

# (stdout, stderr, exit status) of a program.
End = tuple[str, str, str]

PROBE = Path(memdiag.probe.__file__).parent
_STARTS = Path(__file__).parent / "probe" / "programs" / "sabotaged_starts.py"
_NOTES = 99


def ends_of_variants(
    work: Path,
    python: str,
    names: Sequence[tuple[str, str]],
    env: Mapping[str, str],
    *,
    timeout_s: float,
    at_once: int = 1,
) -> dict[tuple[str, str], End]:
    """How `program.py` in `work` ends with each of these functions of the probe failing, (file,
    name): of those that it reaches. at_once: programs that run side by side.
    """
    ends: dict[tuple[str, str], End] = {}
    with ThreadPoolExecutor(at_once) as pool:
        runs = [
            pool.submit(_ends, work / str(n), python, names[n::at_once], env, timeout_s)
            for n in range(at_once)
        ]
        for run in runs:
            ends |= run.result()
    return ends


def _ends(
    work: Path,
    python: str,
    names: Sequence[tuple[str, str]],
    env: Mapping[str, str],
    timeout_s: float,
) -> dict[tuple[str, str], End]:
    work.mkdir()
    shutil.copy(work.parent / "program.py", work)
    shutil.copytree(PROBE, work / "probe", ignore=shutil.ignore_patterns("__pycache__"))
    variants = {}
    for number, (file, name) in enumerate(names):
        variants[file, name] = variant = work / "variants" / f"{number:04}"
        variant.mkdir(parents=True)
        source = (PROBE / file).read_text()
        (variant / "source.py").write_text(sabotaged(source, name))
        (variant / "of").write_text(f"{file}:{name}")
        (noted := work / "noting" / file).parent.mkdir(parents=True, exist_ok=True)
        if not noted.exists():
            noted.write_text(noting(source, file, _NOTES))
    inject = work / "probe" / "inject"
    subprocess.run(
        [python, "-S", _STARTS, work, str(_NOTES)],
        env={
            **env,
            "PYTHONPATH": os.pathsep.join([str(inject), env["PYTHONPATH"]]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        check=True,
        timeout=timeout_s,
    )
    return {of: _end(variant) for of, variant in variants.items() if (variant / "status").exists()}


def _end(variant: Path) -> End:
    stdout, stderr, status = (
        (variant / part).read_text() for part in ("stdout", "stderr", "status")
    )
    return stdout, stderr, status
