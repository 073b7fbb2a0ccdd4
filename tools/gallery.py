"""Pictures of real runs for docs/gallery.md: each program is started under `memdiag run`.

    python tools/gallery.py

Needs torch and matplotlib, and takes some minutes. Look at every picture afterwards.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
PROGRAMS = "fixtures/programs"
README = "leak"
"""The run whose picture, as SVG, is in the README."""
HEAD = """# Gallery

Real runs of the programs in `fixtures/programs/`, drawn by `--png`. The thin line is what was read,
the thick dashes are the segments that were found, the dotted line ahead is the forecast with its
95% interval, and the strip at the bottom is the phases. `--html` shows the same as an interactive
page. `make gallery` makes this page.
"""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run. name: of its picture. options: for memdiag. program: the command."""

    name: str
    title: str
    text: str
    program: str
    options: str = ""


RUNS = (
    Run(
        name="leak",
        title="A leak",
        text="Each step keeps its output with its graph. The line that keeps it is named.",
        program=f"python {PROGRAMS}/torch_leak.py",
    ),
    Run(
        name="warmup",
        title="A warm-up",
        text="A cache is filled in the first quarter of the run. The plateau is marked.",
        program=f"python {PROGRAMS}/torch_warmup.py",
    ),
    Run(
        name="sawtooth",
        title="A sawtooth",
        text="Each step leaves a tensor in a reference cycle, which the collector frees at times.",
        program=f"python {PROGRAMS}/torch_cycles.py --steps 1200 --pace 0.02",
    ),
    Run(
        name="staircase",
        title="A staircase",
        text="Only evaluations keep something: steps of equal height between plateaus.",
        program=f"python {PROGRAMS}/torch_leak_in_eval.py",
    ),
    Run(
        name="phases",
        title="Phases of a trainer in another language",
        text="Steps and phases are read from what the trainer prints.",
        program=f"python -I {PROGRAMS}/burn_trainer.py --pace 0.1",
        options=r"--step-regex '[Ss]tep\s+(\d+)' --phase-regex 'Phase transition: \w+ → (\w+)'",
    ),
    Run(
        name="ranks",
        title="Two ranks, of which one leaks",
        text="The rank that grows is in front, the other processes are behind it in gray.",
        program=f"torchrun --nproc-per-node 2 {PROGRAMS}/torch_leak_in_rank.py",
    ),
    Run(
        name="too_early",
        title="Cut too early",
        text="The warm-up from above, ended after 60 steps: it still looks like a leak.",
        program=f"python {PROGRAMS}/torch_warmup.py --steps 60",
    ),
)


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    wanted = set(sys.argv[1:]) or {run.name for run in RUNS}
    with tempfile.TemporaryDirectory() as folder:
        for run in RUNS:
            if run.name in wanted:
                draw(run, Path(folder))
    PAGE.write_text(page(), encoding="utf-8")
    return 0


def page() -> str:
    """The text of docs/gallery.md."""
    return "\n".join([HEAD, *map(entry, RUNS)])


def draw(run: Run, folder: Path) -> None:
    """Record the program and draw its memory."""
    memdiag = [sys.executable, "-m", "memdiag"]
    recording = folder / f"{run.name}.csv"
    command = [*memdiag, "run", "-q", "-o", str(recording), *shlex.split(run.options), "--"]
    subprocess.run(
        [*command, *shlex.split(run.program)], cwd=ROOT, stdout=subprocess.DEVNULL, check=False
    )
    picture = FOLDER / f"{run.name}.png"
    # In its folder, so that the picture names the file alone.
    drawn = [*memdiag, "analyze", "-q", recording.name, "--png", str(picture), "--force"]
    if run.name == README:
        drawn += ["--svg", str(picture.with_suffix(".svg"))]
    subprocess.run(drawn, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    print(f"{picture.relative_to(ROOT)}", flush=True)


def entry(run: Run) -> str:
    options = f"{run.options} " if run.options else ""
    return (
        f"## {run.title}\n\n{run.text}\n\n"
        f"```console\n$ memdiag run {options}--png {run.name}.png -- {run.program}\n```\n\n"
        f"![{run.title}](gallery/{run.name}.png)\n"
    )


if __name__ == "__main__":
    sys.exit(main())
