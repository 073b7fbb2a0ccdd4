"""What the probe makes is not left as garbage, which would count as objects of the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import collections, gc, time

def main():
    kept = []
    gc.disable()
    for step in range(120):
        names = {f"request-{step}-{i}": {"values": [i], f"of {step}": [step]} for i in range(20)}
        kept.append(bytearray(20_000))
        time.sleep(0.05)
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    ours = [one for one in gc.garbage if type(one).__module__.startswith("_memdiag_probe")]
    print("ours", len(ours), sorted({type(one).__name__ for one in ours}))

main()
"""


@pytest.mark.slow
def test_walks_leave_no_garbage_in_the_program(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "memdiag", "run", "--explain", "always", "--", sys.executable]
    done = subprocess.run(
        [*command, str(program)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("ours")]
    assert int(said.split()[1]) < 10, said  # a window of lines may leave itself
