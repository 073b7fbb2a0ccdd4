"""What a Python prompt echoes, lists in scripts, and lines that a console has cut."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import memdiag
from memdiag.recording.inputs.hard_wraps import without_hard_wraps
from memdiag.recording.inputs.python_session import with_names
from memdiag.recording.read import read


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("p.memory_info().rss", "rss: 1200"),
        ("p.memory_info().rss / 1024**2", "rss (MiB): 1200"),
        ("round(p.memory_info().rss / 1e6, 1)", "rss (MB): 1200"),
        ("p.memory_info().rss >> 20", "rss (MiB): 1200"),
        ("torch.cuda.memory_allocated() // 2**30", "memory_allocated (GiB): 1200"),
        ("rss = p.memory_info().rss", "1200"),
        ("len(rows)", "1200"),
        ("p.memory_info().rss / " + "9" * 390, "rss: 1200"),
        ("rss / 2 ** 9999999", "rss: 1200"),
        ("rss(" * 60, "1200"),
        (r'"\d"', "1200"),
        ("rss \x00", "1200"),
    ],
)
@pytest.mark.parametrize("prompt", [">>> ", "In [3]: "])
def test_the_expression_names_the_value_below_it(
    prompt: str, expression: str, expected: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = with_names([f"{prompt}{expression}".encode(), b"1200"])
    assert lines[1].decode() == expected


@pytest.mark.parametrize("quote", ["'", '"'])
def test_so_it_does_a_size_in_a_text(quote: str) -> None:
    lines = with_names([b"In [3]: run(); mem()", f"Out[3]: {quote}604.0 MB{quote}".encode()])
    assert lines[1] == b"mem: 604.0 MB"
    other = [b"In [3]: version", b"Out[3]: '3.12'", b"In [4]: name()", b"Out[4]: '604.0 MB'"]
    assert with_names(other) == other


def test_lists_of_one_length_are_columns(tmp_path: Path) -> None:
    script = tmp_path / "plot.py"
    readings = [800 + 25 * n for n in range(20)]
    script.write_text(
        f"steps = {[*range(0, 200, 10)]}\nrss_mb = np.array({readings})\nvms_mb = [1, 2]\n"
    )
    recording = read(str(script))
    (series,) = recording.series
    assert (series.column, series.axis.name, series.x.size) == ("rss_mb", "steps", 20)
    assert any("vms_mb" in note for note in recording.notes)


@pytest.mark.parametrize("item", ["1-2", "e", "5e", "-"])
def test_what_is_no_number_in_a_list_is_missing(tmp_path: Path, item: str) -> None:
    log = tmp_path / "list.txt"
    log.write_text(f"rss_mb = [812.1, 833, {item}, {', '.join(map(str, range(850, 1100, 10)))}]\n")
    (recording,) = memdiag.analyze(log)
    assert recording.series[0].samples == 27


def test_what_is_no_number_in_a_row_of_cloudwatch_is_missing(tmp_path: Path) -> None:
    rows = [f"DATAPOINTS\t{9e9 - n * 1e8}\t2024-05-02T{n:02}:00:00+00:00\tBytes" for n in range(20)]
    rows[3] = "DATAPOINTS\t..\t2024-05-02T03:00:00+00:00\tBytes"
    log = tmp_path / "metric.txt"
    log.write_text("\n".join(["FreeableMemory", *rows[::-1]]) + "\n")
    (recording,) = memdiag.analyze(log)
    assert recording.series[0].samples == 19


@pytest.mark.parametrize("width", [70, 100])
def test_lines_that_are_cut_within_words_are_joined(width: int) -> None:
    lines = [
        f"2024-05-02 03:{n:02}:08,718 INFO eval_harness.runner: finished task{n:4}/412"
        f" acc=0.55{n:02} stderr=0.0163 mem_alloc={8100 + n} MB cache_entries=18{n:02}"
        for n in range(20)
    ]
    cut = "\n".join(line[at : at + width] for line in lines for at in range(0, len(line), width))
    assert without_hard_wraps(cut.encode()).decode() == "\n".join(lines)


def test_lines_of_one_length_that_are_whole_stay() -> None:
    text = "\n".join(
        f"epoch {n:03} of 300 finished, loss 0.1234, accuracy 0.9876, lr 0.001000, 12.5\n[mem] {n}"
        for n in range(20)
    )
    assert without_hard_wraps(text.encode()).decode() == text
