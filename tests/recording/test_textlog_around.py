"""What stands around the figures of a log: tags, ranks, pids, noise, lines of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import read_log, series_of

from memdiag.errors import ReadError

MB = 1e6


def test_repeated_lines_of_uniq_take_their_places(tmp_path: Path) -> None:
    lines = "".join(f"{5 + i % 3:7d} {1000 + i}.5 MB\n" for i in range(20))
    series = series_of(read_log(tmp_path, lines), "memory_bytes")
    assert series.x[:4].tolist() == [0, 5, 11, 18]


def test_phases_and_counters_are_there(tmp_path: Path) -> None:
    turns = ("Correct -> Predict", "Predict -> Correct")
    lines = (f"Phase transition: {turns[i % 2]} | VRAM: {i} MB | Copies: {i}" for i in range(20))
    recording = read_log(tmp_path, "\n".join(lines))
    phases = series_of(recording, "vram_bytes").phases
    assert phases is not None
    assert phases.names == ("Predict", "Correct")
    assert series_of(recording, "copies").y.tolist() == list(range(20))


def test_phase_in_front_of_the_step_is_no_part_of_its_name(tmp_path: Path) -> None:
    lines = "".join(f"Phase: {('train', 'eval')[i % 2]} Step {i}: {9 + i} MB\n" for i in range(20))
    recording = read_log(tmp_path, lines)
    assert len(series_of(recording, "memory_bytes").y) == 20
    assert "read as text: memory (bytes) over Step, phases from phase" in recording.notes


def test_steps_named_on_lines_of_their_own_hold_for_the_lines_below(tmp_path: Path) -> None:
    lines = "".join(
        f"step {10 * i} loss 0.5\n  saving\nGPU memory: {5 + i} GB\n" for i in range(20)
    )
    series = series_of(read_log(tmp_path, lines), "gpu_memory_bytes")
    assert series.x.tolist() == [10 * i for i in range(20)]


def test_noise_around_the_lines_does_not_matter(tmp_path: Path) -> None:
    noise = ["INFO loading 3 shards", "WARNING: 12 workers", "", "saved 500 MB in 3 s", "=" * 70]
    lines = []
    for i in range(50):
        lines += [
            noise[i % 5],
            f"\x1b[32m2026-02-07 12:00:{i:02d}\x1b[0m step {i} | rss: {9 + i} MB",
        ]
    series = series_of(read_log(tmp_path, "\n".join(lines)), "rss_bytes")
    assert series.y.tolist() == [(9 + i) * MB for i in range(50)]
    assert series.at_s is not None
    assert series.at_s.tolist() == list(range(50))


def test_ranks_in_lines_are_processes(tmp_path: Path) -> None:
    lines = "".join(f"[rank{r}] step {i} mem {5 + r} GB\n" for i in range(20) for r in range(3))
    recording = read_log(tmp_path, lines)
    assert [s.process for s in recording.series] == ["rank 0", "rank 1", "rank 2"]


def test_lines_that_name_no_rank_are_of_the_one_that_is_named(tmp_path: Path) -> None:
    """Megatron's: rank 0 tells its own memory between lines of all."""
    lines = "".join(
        f" iteration {10 * i}/  5000 | lm loss: 2.1E+00 | mem allocated: {900 + i} MB |\n"
        f"[Rank 0] (after {10 * i} iterations) memory (MB) | reserved: {1000 + i}.5\n"
        for i in range(20)
    )
    assert {s.process for s in read_log(tmp_path, lines).series} == {""}


def test_pid_named_above_the_lines_splits_the_runs(tmp_path: Path) -> None:
    run = "".join(f"Step {10 * i}:  {5000 + 1000 * i:,} MB (+1,000 MB)\n" for i in range(1, 9))
    text = f"Run 1 (Process 177381):\n{run}[Process restarted]\n\nRun 2 (Process 179532):\n{run}"
    series = series_of(read_log(tmp_path, text), "memory_bytes")
    assert series.generation is not None
    assert series.generation.tolist() == [0] * 8 + [1] * 8


@pytest.mark.parametrize(
    "text",
    [
        "The model needs 3 GB, the optimizer 5 GB and the batch 2 GB.\n\nIn all 10 GB.\n" * 3,
        "step 1 loss 0.5\nstep 2 loss 0.4\n" * 20,
        "Lorem ipsum dolor sit amet.\n" * 100,
    ],
)
def test_text_without_a_series_is_refused(tmp_path: Path, text: str) -> None:
    prose = "\n".join(f"{n}. It is said that this is so.\n" for n in range(40))
    with pytest.raises(ReadError):
        read_log(tmp_path, text + prose)


def test_size_beside_a_limit_is_memory_in_use(tmp_path: Path) -> None:
    lines = "".join(f"step {i} memory limit 16.0 GB, worker {300 + i} MB\n" for i in range(20))
    recording = read_log(tmp_path, lines)
    assert [s.y[-1] for s in recording.series] == [319 * MB]
    assert any("constant total or limit" in note for note in recording.notes)


@pytest.mark.parametrize("line", ["memory limit 16.0 GB", "memory_limit_mb=16000"])
def test_limit_alone_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ReadError, match="limit"):
        read_log(tmp_path, "".join(f"step {i} loss 0.5 {line}\n" for i in range(20)))


def test_size_of_a_process_is_not_its_number(tmp_path: Path) -> None:
    lines = "".join(f"round {i}: rss of process {210 + i}.5 MiB\n" for i in range(20))
    assert len(read_log(tmp_path, lines).series) == 1


@pytest.mark.parametrize("after", [" tid 31,", " timer 5,", ".", " to disk,", " my_job"])
def test_number_of_a_process_may_stand_before_any_word(tmp_path: Path, after: str) -> None:
    lines = "".join(
        f"2026-02-07 12:{i // 60:02d}:{i % 60:02d} pid {4711 + i % 2}{after} rss {300 + i} MB\n"
        for i in range(60)
    )
    assert len(read_log(tmp_path, lines).series) == 2


def test_number_of_a_worker_may_stand_before_its_time(tmp_path: Path) -> None:
    lines = "".join(f"worker {i % 2} time 1.2s mem {300 + i} MB step {i}\n" for i in range(60))
    assert {s.process for s in read_log(tmp_path, lines).series} == {"worker 0", "worker 1"}


@pytest.mark.parametrize("total", ["Total validation loss:", "Total parameters:", "Total:"])
def test_total_of_something_else_ends_no_series(tmp_path: Path, total: str) -> None:
    lines = [f"step {i} rss {300 + i} MB" for i in range(60)]
    lines[30:30] = [total]
    recording = read_log(tmp_path, lines)
    assert [len(s.y) for s in recording.series] == [60]


def test_total_below_devices_is_apart(tmp_path: Path) -> None:
    lines = [
        f"iteration {i}\nGPU 0:\n  allocated: {300 + i} MB\nTotal:\n  allocated: {900 + i} MB"
        for i in range(20)
    ]
    recording = read_log(tmp_path, lines)
    assert {s.process: s.y[0] for s in recording.series} == {"GPU 0": 300 * MB, "Total": 900 * MB}


@pytest.mark.parametrize(
    "words", ["footprint", "occupied", "consumption", "process size", "python total"]
)
def test_amounts_in_use_are_memory(tmp_path: Path, words: str) -> None:
    lines = [f"step {i} {words} {300 + i} MB" for i in range(60)]
    assert len(read_log(tmp_path, lines).series[0].y) == 60


def test_empty_column_beside_a_limit_is_named_as_empty(tmp_path: Path) -> None:
    lines = ["step,memory_limit_mb,rss_mb", *(f"{i},16000," for i in range(20))]
    with pytest.raises(ReadError, match="no numbers"):
        read_log(tmp_path, lines, "empty.csv")


def test_a_size_that_is_a_part_of_a_word_is_reported_with_the_word(tmp_path: Path) -> None:
    block = "Filesystem     1K-blocks     Used Available Use% Mounted on\nstep {} rss 812 MB\n"
    recording = read_log(tmp_path, "".join(block.format(n) for n in range(20)))
    assert 'not read as memory in use: "Filesystem     1K-blocks"' in recording.notes
