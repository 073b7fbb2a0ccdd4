"""Run the benchmarks, one after the other, each in a process of its own.

`bench.py` runs all of `benchmarks/*.py`; `bench.py startup decide` only these; `--seed N` makes
those that draw at random draw anew. A benchmark is a script that prints its figures beside its bar
and fails when it misses the bar.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    there = {path.stem: path for path in sorted((ROOT / "benchmarks").glob("[a-z]*.py"))}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", help="for the benchmarks that draw at random")
    parser.add_argument("benchmark", nargs="*", help="all without any: " + ", ".join(there))
    options = parser.parse_args()
    wanted = options.benchmark or list(there)
    unknown = [name for name in wanted if name not in there]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join(there)}", file=sys.stderr)
        return 2
    missed = [name for name in wanted if not passes(there[name], options.seed)]
    print(f"{len(wanted) - len(missed)} of {len(wanted)} benchmarks within their bars")
    if missed:
        print("missed: " + ", ".join(missed))
    return 1 if missed else 0


def passes(path: Path, seed: str | None) -> bool:
    print(f"== {path.stem}", flush=True)
    began_s = time.monotonic()
    takes_seed = '"--seed"' in path.read_text(encoding="utf-8")
    drawn = ["--seed", seed] if seed and takes_seed else []
    code = subprocess.run([sys.executable, path, *drawn], cwd=ROOT, check=False).returncode
    print(f"   {time.monotonic() - began_s:.0f} s, status {code}\n", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
