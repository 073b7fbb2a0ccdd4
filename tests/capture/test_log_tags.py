"""Tags out of the lines of a log: from bytes to where the job is."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from memdiag.capture.launch.output_tee import FrameReader, Spill
from memdiag.capture.logtags.known_loggers import LoggerLines
from memdiag.capture.logtags.match_patterns import Matcher
from memdiag.capture.logtags.patterns import (
    counter_pattern,
    phase_pattern,
    request,
    step_pattern,
)
from memdiag.capture.logtags.tail_file import LONGEST_LINE, Follower, LineDecoder
from memdiag.errors import UsageError


def search(expression: re.Pattern[str], text: str) -> re.Match[str] | None:
    return expression.search(text)


def told(matcher: Matcher | LoggerLines, *lines: str) -> list[tuple[str, str, float]]:
    tags = [tag for line in lines for tag in matcher.tags(line)]
    return [(tag.kind.value, tag.name, tag.value) for tag in tags]


def steps(*lines: str) -> list[float]:
    return [value for kind, _, value in told(LoggerLines(search), *lines) if kind == "step"]


# -- lines -------------------------------------------------------------------------------------


def test_a_line_is_whole_however_it_was_cut_and_has_the_time_of_its_last_byte():
    text = "Schritt 1 → größer\nzwei\r\ndrei\rvier\n".encode()
    for size in range(1, len(text)):
        lines = LineDecoder()
        found = [
            line
            for at in range(0, len(text), size)
            for line in lines.feed(at, text[at : at + size])
        ]
        assert [line for _, line in found] == ["Schritt 1 → größer", "zwei", "drei", "vier"]
        last_byte = text.index(b"\n") - 1
        assert found[0][0] == last_byte // size * size


def test_colours_and_titles_are_not_part_of_a_line():
    ((_, line),) = LineDecoder().feed(0.0, b"\x1b]0;title\x07\x1b[1;32mStep\x1b[0m \x1b[2K7\n")
    assert line == "Step 7"


def test_an_endless_line_is_cut_and_what_is_no_text_does_no_harm():
    lines = LineDecoder()
    for _ in range(100):
        assert list(lines.feed(0.0, b"\xff" * 1000)) == []
    ((_, line),) = lines.feed(1.0, b"\n")
    assert len(line) == LONGEST_LINE


# -- the user's patterns -----------------------------------------------------------------------


def test_groups_give_step_phase_and_counter():
    matcher = Matcher(
        [
            step_pattern(r"step (?:no )?([\d,]+)"),
            phase_pattern(r"(\w+) -> (?P<phase>\w*)"),
            counter_pattern(r"copies=Copies: ([\d.]+)"),
            counter_pattern(r"vram_mb=VRAM: (\d+) MB"),
        ],
        search,
    )
    line = "step 1,200: Full -> Predict | VRAM: 4184 MB | Copies: 1.5"
    assert told(matcher, line, "Predict -> ") == [
        ("step", "", 1200),
        ("phase", "Predict", 0),
        ("counter", "copies", 1.5),
        ("counter", "vram_bytes", 4_184_000_000),
        ("phase", "", 0),
    ]
    assert list(matcher.notes()) == []


def test_a_step_pattern_without_a_group_counts_its_matches():
    assert told(Matcher([step_pattern("loss=")], search), "loss=1", "no", "loss=2") == [
        ("step", "", 1),
        ("step", "", 2),
    ]


def test_what_is_found_nowhere_or_is_no_number_is_said():
    matcher = Matcher([step_pattern("step (.*)"), phase_pattern("mode (x)")], search)
    assert told(matcher, "step one", "step 1.5", "step nan", "step 1e400") == []
    assert list(matcher.notes()) == [
        "--phase-regex mode (x) did not match any of 4 lines",
        "--step-regex step (.*) found 'one', which is not a number: ignored",
    ]


def test_a_pattern_that_takes_too_long_is_given_up_and_the_others_go_on():
    def slow(expression: re.Pattern[str], text: str) -> re.Match[str] | None:
        if expression.pattern.startswith("(a+)+"):
            raise TimeoutError
        return expression.search(text)

    matcher = Matcher([phase_pattern("(a+)+$"), step_pattern(r"step (\d+)")], slow)
    lines = [f"step {n}" for n in range(9)]
    assert [value for _, _, value in told(matcher, *lines)] == list(range(9))
    (note,) = matcher.notes()
    assert note.startswith("--phase-regex (a+)+$ took more than 0.1 s on each of 3 lines")


@pytest.mark.parametrize(
    ("make", "text", "what"),
    [
        (step_pattern, "step (", "invalid regular expression"),
        (phase_pattern, "phase", "has no group"),
        (counter_pattern, "copies", "no name or no pattern"),
        (counter_pattern, "=x(.)", "no name or no pattern"),
        (counter_pattern, "copies=x", "has no group"),
    ],
)
def test_a_useless_pattern_is_refused_with_a_remedy(make, text, what):
    with pytest.raises(UsageError, match=what) as raised:
        make(text)
    assert raised.value.remedy


def test_a_log_that_cannot_be_one_is_refused(tmp_path):
    for path in (tmp_path, Path("/dev/null"), tmp_path / "no" / "such.log"):
        with pytest.raises(UsageError, match="--tags-from"):
            request(steps=[], phases=[], counters=[], file=path, output=False)
    late = tmp_path / "late.log"
    assert request(steps=[], phases=[], counters=[], file=late, output=False) is not None


# -- common loggers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        "Step {n}: 17,412 MB (+1,692 MB)",
        "step={n} loss=0.53 lr=1e-4",
        '{{"loss": 0.5, "global_step": {n}}}',
        "iter {n}: loss 2.1180, time 75.31ms, mfu 3.1%",
        " iteration        {n}/  500000 | consumed samples:  9 | elapsed time per iteration: 3.1",
        "INFO 12:03:11 [Iter {n}] loss 0.3",
        "d2.utils.events INFO:  eta: 0:01:01  iter: {n}  total_loss: 2.1",
        "INFO:tensorflow:loss = 2.3, step = {n} (0.21 sec)",
        "2026-02-07 - mmengine - INFO - Iter(train) [  {n}/90000]  lr: 1e-2",
        "2026-02-07 - mmengine - INFO - Epoch(train) [1][ {n}/1000]  lr: 1e-2",
        "| train_step: {n} | loss 3.1",
        " 12%|█▏        | {n}/900 [00:01<00:09,  9.9it/s, loss=0.2]",
        "{n}/900 [====>.........] - ETA: 5s - loss: 0.31",
        " {n}/900 ━━━━━━━━━━━━━━━━━━━━ 3s 5ms/step - loss: 0.31",
    ],
)
def test_the_step_of_a_common_logger_is_found(form):
    assert steps(*(form.format(n=n) for n in (10, 20, 30))) == [20, 30]


@pytest.mark.parametrize(
    "form",
    [
        "Total optimization steps = {n}",
        "max_steps: {n}",
        "saving a checkpoint every step: {n}",
        "step: {n}.25 s",
        "step {n} ms",
        "{n} steps per epoch",
        "learning_rate_step_size={n}",
        "Loading checkpoint shards:  50%|█████     | {n}/900 [00:01<00:01]",
        "Validation DataLoader 0:  50%|█████     | {n}/900 [00:01<00:01]",
        "Epoch {n}/900",
        "finished at 12:{n}",
    ],
)
def test_a_number_that_is_no_step_is_none(form):
    assert steps(*(form.format(n=n) for n in (10, 20, 30))) == []


def test_a_setting_that_is_printed_once_is_no_step():
    assert steps("iter = 100", "done", "iter = 100") == []
    assert steps("step: 5000", "step: 1", "step: 2", "step: 3") == [2, 3]


def test_a_bar_for_each_epoch_counts_on():
    bar = "Epoch {e}:  12%|█▏        | {n}/30 [00:01<00:09,  9.9it/s]"
    lines = [bar.format(e=e, n=n) for e in range(2) for n in (10, 20, 30)]
    assert steps(*lines) == [20, 30, 40, 50, 60]


def test_phases_and_epochs_of_common_loggers():
    reader = LoggerLines(search)
    lines = ("Phase transition: Full → Predict | VRAM: 1 MB", "phase=eval", "Epoch 3/10", "x")
    assert told(reader, *lines) == [
        ("phase", "Predict", 0),
        ("phase", "eval", 0),
        ("counter", "epoch", 3),
    ]


# -- files -------------------------------------------------------------------------------------


def test_a_log_is_followed_from_its_end_over_truncation_and_rotation(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("old 1\nold 2\n")
    follower = Follower(path)
    assert follower.before == b"old 1\nold 2\n"
    assert list(follower.read()) == []
    with path.open("a") as file:
        file.write("new\n")
    assert list(follower.read()) == [b"new\n"]
    path.write_text("cut\n")
    assert list(follower.read()) == [b"", b"cut\n"]
    with path.open("a") as file:
        file.write("last words\n")
    path.rename(tmp_path / "train.log.1")
    path.write_text("turned\n")
    assert list(follower.read()) == [b"last words\n", b"", b"turned\n"]
    path.unlink()
    assert list(follower.read()) == []
    follower.close()


def test_a_log_that_comes_later_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "late.log"
    follower = Follower(path)
    assert (list(follower.read()), follower.seen) == ([], False)
    path.write_text("first\n")
    assert (list(follower.read()), follower.seen) == ([b"first\n"], True)
    follower.close()


# -- the copy ----------------------------------------------------------------------------------


def test_a_copy_that_nobody_reads_is_dropped_and_counted():
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    os.set_blocking(ours, False)
    spill, piece = Spill(theirs), b"x" * 65536
    pieces = 400
    for n in range(pieces):
        spill.add(float(n), piece)
        spill.flush()
    unframed, seen, dropped = FrameReader(), 0, 0

    def read_all() -> None:
        nonlocal seen, dropped
        while True:
            spill.flush()
            try:
                data = os.read(ours, 1 << 20)
            except BlockingIOError:
                return
            for _, lost, found in unframed.feed(data):
                assert found in (piece, b"end")
                seen, dropped = seen + len(found), dropped + lost

    read_all()
    spill.add(9e9, b"end")
    read_all()
    assert seen + dropped == pieces * len(piece) + 3
    assert dropped > 0
    os.close(ours)
    os.close(theirs)
