"""The pattern that is proposed for the steps of an output: it must find them, as it is typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from memdiag.capture.logtags.patterns import step_pattern
from memdiag.capture.logtags.printed_steps import PrintedSteps, regex_of_steps

LINES = {
    "step 80": "step {n} loss 0.25",
    "padded": "[2025-03-11 09:00:00] INFO Step: {n:>6} | lr 3e-4 | 0.5 s/it",
    "of all": "Epoch 1/3 - Iter [{n}/5000] loss: 1.25",
    "dictionary": "{{'loss': 0.25, 'global_step': {n}, 'epoch': 0.1}}",
    "json": '{{"iteration": {n}, "rss": 12}}',
    "equals": "train/loss=0.3 step={n} batch_time=0.25",
    "hash": "episode #{n} reward 12.5",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_proposed_pattern_finds_the_steps(line: str) -> None:
    steps = [100 * n for n in range(1, 12)]
    lines = ["loading 3 shards", *(line.format(n=n) for n in steps), "done in 5 steps"]
    regex = regex_of_steps(lines[:-1])
    assert shlex.split(f"--step-regex '{regex}'") == ["--step-regex", regex]
    pattern = step_pattern(regex)
    found = [match for text in lines[:-1] if (match := pattern.expression.search(text))]
    assert [int(pattern.tag(match) or "") for match in found] == steps


@pytest.mark.parametrize(
    "lines",
    [
        ["loss 0.25", "loss 0.24", "loss 0.23"],
        ["batch 32 loss 0.25"] * 9,
        [f"{n} it/s, batch 0.{n}" for n in range(1, 9)],
        [f"step {n % 3}" for n in range(9)],
        ["step 1", "step 2"],
    ],
)
def test_nothing_is_proposed_without_steps_that_rise(lines: list[str]) -> None:
    assert regex_of_steps(lines) == ""


def test_thousands_separators_are_found() -> None:
    regex = regex_of_steps([f"step {n:,}" for n in (1_000, 2_000, 3_000)])
    assert re.search(regex, "step 12,500")[1] == "12,500"  # type: ignore[index]


def test_only_what_is_written_from_now_on_counts(tmp_path: Path) -> None:
    """And a process that is watched is told the file's name, since its output cannot be read."""
    import subprocess
    import sys

    log = tmp_path / "train.log"
    log.write_text("".join(f"step {n}\n" for n in range(9)))
    program = "input(); [print('iter', n, flush=True) for n in range(9)]; input()"
    with (
        log.open("a") as out,
        subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=out
        ) as process,
    ):
        assert process.stdin is not None
        printed = PrintedSteps(process.pid)
        assert printed.note() == ""
        process.stdin.write(b"\n")
        process.stdin.flush()
        while "iter 8" not in log.read_text():
            assert process.poll() is None
        note = printed.note()
        process.communicate(b"\n")
    printed.close()
    assert note == rf"the output names steps: --tags-from {log} --step-regex '\biter\s+(\d+)'"
