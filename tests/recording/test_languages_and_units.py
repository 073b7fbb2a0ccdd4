"""Words for memory in further languages, and units, values and times that stand apart from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.analysis.diagnose import diagnose
from memdiag.errors import ReadError
from memdiag.values.measurements import AxisKind
from memdiag.values.verdict import Verdict

N = 12


@pytest.mark.parametrize(
    "word",
    [
        *("μνήμη", "זיכרון", "памет", "memorie", "pamäť", "memòria", "memori terpakai", "memorija"),
        *("pomnilnik", "atmintis", "mälu", "ذاكرة"),
    ],
)
def test_memory_is_read_in_other_languages(tmp_path: Path, word: str) -> None:
    lines = [f"14/09/2024 09:{n:02}:11 xyz=4{n % 7} {word}={310 + 30 * n},2 MB" for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert series.y[0] == pytest.approx(310.2e6)
    assert series.y[-1] == pytest.approx(640.2e6)


def test_free_memory_falls_in_other_languages(tmp_path: Path) -> None:
    lines = ["Klokkeslett\tMinne brukt (MB)\tMinne ledig (MB)\tCPU (%)\tMerknad"]
    lines += [
        f"06:{n:02}\t2 {100 + n}\t14 {300 - n}\t19,{n % 10}\t{'start' * (n == 0)}" for n in range(N)
    ]
    recording = read_log(tmp_path, lines, "log.tsv")
    assert series_of(recording, "minne_brukt_bytes").y[0] == 2100e6
    assert series_of(recording, "minne_ledig_bytes").falling


@pytest.mark.parametrize(("size", "first"), [("1,{:03} ГБ", 1e9), ("1,{:03} GB", 1e9)])
def test_a_comma_is_decimal_where_blanks_stand_between_thousands(
    tmp_path: Path, size: str, first: float
) -> None:
    lines = [
        f"11:{n:02}:02 done {n + 1} 000 000 of 4 800 000, mem {size.format(180 + 9 * n)}"
        for n in range(N)
    ]
    assert series_of(read_log(tmp_path, lines), "mem_bytes").y[0] == pytest.approx(1.18 * first)


def test_a_unit_in_brackets_behind_a_number_is_its_unit(tmp_path: Path) -> None:
    lines = [f"step {n}, memory = {1422 + n}.08 (MB)." for n in range(N)]
    assert series_of(read_log(tmp_path, lines), "memory_bytes").y[0] == 1422.08e6


def test_one_unit_in_brackets_is_of_all_amounts_but_of_no_position(tmp_path: Path) -> None:
    lines = [f"pass: {n}, inuse: {33 + n}, idle: 12, held: {45 + n} (MB)" for n in range(N)]
    series = series_of(read_log(tmp_path, lines), "inuse_bytes")
    assert series.y.tolist() == [(33 + n) * 1e6 for n in range(N)]


def test_an_amount_in_hexadecimal_and_decimal_digits_is_read(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(N)
        for line in (
            "Number of Heaps: 1",
            f"   7f7613518{n:03x} 7f28b37f2{n:03x}",
            f"GC Allocated Heap Size:    Size: {10**8 + n:#x} ({10**8 + n}) bytes.",
            "----",
        )
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.y.tolist() == [10**8 + n for n in range(N)]


def test_a_total_is_of_what_stands_before_the_colon_above_it(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(N)
        for line in (
            f"MemoryView after step {50 * n}:",
            f"Current   process memory:            total {1 + n / 100:.4f}e+09 max 1.7416e+08",
        )
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.metric == "process_memory_total"
    assert series.y[-1] == pytest.approx(1.11e9)
    assert series.x.tolist() == [50.0 * n for n in range(N)]


def test_memory_that_valgrind_calls_lost_is_read(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(N)
        for line in (
            f"--- 2024-10-01 09:{n:02} $ vgdb leak_check summary",
            f"==7==    definitely lost: {38_287 + 145_000 * n:,} bytes in {178 + n} blocks",
            "==7==    still reachable: 8,111,322 bytes in 41,158 blocks",
        )
    ]
    series = series_of(read_log(tmp_path, lines), "definitely_lost_bytes")
    assert np.nanmax(series.y) == 38_287 + 145_000 * (N - 1)


@pytest.mark.parametrize(
    ("verb", "is_of_growth"), [("Extending reserved memory to", True), ("memory", False)]
)
def test_a_log_of_growth_alone_does_not_show_that_memory_stays(
    tmp_path: Path, verb: str, is_of_growth: bool
) -> None:
    sizes = [100, 190, 260, 310, 340, 355, 360, 361, 361.5, 361.6, 361.7, 361.71, 361.72]
    lines = [f"[2024-10-02 22:{n:02}:02] {verb} {y} MB" for n, y in enumerate(sizes)]
    recording = read_log(tmp_path, lines)
    assert ("only growth is logged: that it stays the same is not" in recording.notes) == (
        is_of_growth
    )
    if is_of_growth:
        assert diagnose(recording).verdict not in {Verdict.STABLE, Verdict.WARMUP}


def test_times_that_begin_again_go_on_where_memory_goes_on(tmp_path: Path) -> None:
    lines = [
        f"elapsed time = 00:0{n % 5}:{20 + n:02}, memory = {1400 + 90 * n} MB" for n in range(20)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert np.diff(series.x).min() > 0
    assert series.y.tolist() == [(1400 + 90 * n) * 1e6 for n in range(20)]


def test_a_thing_of_all_that_is_counted_is_a_position(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(1, N)
        for line in (
            f"Opening tile_{n:03}.czi ... done (9.{n} s)",
            f"tile {n}/96  images open: 1  {1200 + 400 * n}MB of 24576MB (5%)",
        )
    ]
    recording = read_log(tmp_path, lines)
    assert recording.series[0].x.tolist() == list(range(1, N))
    assert recording.planned_x == 96


def test_output_in_a_text_of_python_is_read(tmp_path: Path) -> None:
    printed = "\\n".join(f"[{60 * n:5}s] jobs=5 mem={520 + 30 * n}.0MB" for n in range(N))
    text = f"CompletedProcess(args=['./soak'], returncode=-9, stdout='{printed}\\n', stderr='')\n"
    assert series_of(read_log(tmp_path, text), "mem_bytes").y[-1] == 850e6


def test_a_table_of_typst_is_read(tmp_path: Path) -> None:
    rows = [f"  [{n}], [{11 + n}.5], [38.5]," for n in range(1, N)]
    lines = ["= Test 4", "", "#table(", "  columns: 3,", "  [*Epoch*], [*RSS (GB)*], [*GPU (GB)*],"]
    series = series_of(read_log(tmp_path, [*lines, *rows, ")"]), "rss_bytes")
    assert (series.axis.name, series.y[0]) == ("Epoch", 12.5e9)


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("> (begin (crawl! {n}) (collect-garbage) (current-memory-use))", 110e6),
        ("(lldb) po MemoryInfo.physFootprintMB", 110e12),
    ],
)
def test_lisp_and_lldb_name_the_number_below(tmp_path: Path, command: str, first: float) -> None:
    lines = [
        line
        for n in range(N)
        for line in (command.format(n=200 * n), f"reload {n} done", str(110_000_000 + n))
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.y[0] == first


def test_what_java_has_in_use_is_read_as_jboss_prints_it(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(N)
        for line in (
            "[standalone@localhost:9990 /] :read-attribute(name=heap-memory-usage)",
            '{\n    "result" => {',
            f'        "used" => {531_538_687 + n}L,\n        "max" => 1073741824L\n    }}\n}}',
        )
    ]
    series = series_of(read_log(tmp_path, lines), "memory_used_bytes")
    assert series.y.tolist() == [531_538_687 + n for n in range(N)]


def test_prompts_are_positions(tmp_path: Path) -> None:
    lines = [
        f"got prompt\nloading\n[log] RAM {9 + n}.32/62.7 GB  VRAM 17.29/23.99 GB  (prompts: {n})"
        for n in range(N)
    ]
    recording = read_log(tmp_path, lines)
    assert series_of(recording, "ram_bytes").x.tolist() == list(range(N))


@pytest.mark.parametrize("largest", [415_000, 41_500_000])
def test_the_largest_memory_of_getrusage_is_in_kib_unless_it_may_be_in_bytes(
    tmp_path: Path, largest: int
) -> None:
    lines = [
        f'03:{n:02}:02.11 [debug]: report: {{"success": true, "process_mem_max_rss": '
        f'"{largest + n}", "blocks_out": "8"}}'
        for n in range(N)
    ]
    metrics = {one.metric for one in read_log(tmp_path, lines).series}
    assert ("process_mem_max_rss_bytes" in metrics) == (largest < 10**6)


def test_what_php_dumps_has_the_names_of_the_arguments(tmp_path: Path) -> None:
    call = "foreach ($chunks as $i => $c) { import($c); var_dump($i, memory_get_usage()); }"
    dumps = [f"    int({n})\n    int({13_865_808 + n})" for n in range(N)]
    series = series_of(read_log(tmp_path, [call, "prints", *dumps]), "memory_get_usage")
    assert series.y.tolist() == [13_865_808 + n for n in range(N)]


def test_dumps_of_several_calls_are_not_named(tmp_path: Path) -> None:
    calls = ["var_dump($i, memory_get_usage());", "var_dump(memory_get_peak_usage());"]
    dumps = [f"int({n})\nint({13_865_808 + n})" for n in range(N)]
    with pytest.raises(ReadError):
        read_log(tmp_path, [*calls, *dumps])


def test_programs_in_the_events_of_windows_are_series(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(N)
        for line in (
            f"TimeCreated  : 09/12/2024 03:{n:02}:44 AM",
            "Message      : Windows diagnosed a low virtual memory condition. The most was in:",
            f"               Host.exe (51{n}) consumed {9276661760 + n} bytes, sqlservr.exe (2216)",
            "               consumed 3127996416 bytes, and MsMpEng.exe (3044) consumed 923996160 ",
            "               bytes.",
        )
    ]
    recording = read_log(tmp_path, lines)
    y = series_of(recording, "host_exe_memory_bytes").y
    assert y[np.isfinite(y)].tolist() == [9276661760 + n for n in range(N)]
    assert {one.metric for one in recording.series} > {"sqlservr_exe_memory_bytes"}


@pytest.mark.parametrize("counted", ["次请求后", "クエリ後", "번째"])
def test_a_count_may_touch_words_of_other_scripts(tmp_path: Path, counted: str) -> None:
    lines = [f"{250 * (n + 1)}{counted}: {310 + n}.5 MB" for n in range(N)]
    (series,) = read_log(tmp_path, ["RSS:", "", *lines]).series
    assert series.x[:2].tolist() == [250, 500]
    assert series.y[0] == 310.5e6


def test_a_number_that_rises_by_one_before_a_word_of_another_script_may_be_of_a_thing(
    tmp_path: Path,
) -> None:
    lines = [f"{n + 1}号機: {310 + n}.5 MB" for n in range(N)]
    with pytest.raises(ReadError):
        read_log(tmp_path, ["RSS:", "", *lines])


@pytest.mark.parametrize(
    ("words", "axis", "name"),
    [
        ("after {} requests", "requests", "memory"),
        ("RSS after {} calls", "calls", "rss"),
        ("[info] peak RSS after {} images", "row", "peak_rss"),
    ],
)
def test_a_count_before_a_colon_is_no_memory(
    tmp_path: Path, words: str, axis: str, name: str
) -> None:
    lines = [f"{words.format(40 * (n + 1))}: {310 + n}.5 MB" for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert (series.axis.name, series.metric) == (axis, f"{name}_bytes")
    assert series.y[:2].tolist() == [310.5e6, 311.5e6]


@pytest.mark.parametrize(
    ("words", "axis"),
    [
        ("after {} steps", "steps"),
        ("nach {} Schritten", "Schritten"),
        ("bei {} Iterationen", "Iterationen"),
        ("après {} itérations", "itérations"),
        ("tras {} pasos", "pasos"),
        ("dopo {} iterazioni", "iterazioni"),
        ("после {} эпох", "эпох"),
    ],
)
def test_a_size_behind_a_position_is_of_that_moment(tmp_path: Path, words: str, axis: str) -> None:
    lines = [
        f"{words.format(40 * (n + 1))} {3 + n},15 GB{' (0,4 s)' * (n % 3 == 1)}" for n in range(N)
    ]
    (series,) = read_log(tmp_path, lines).series
    assert series.axis.name == axis
    assert series.x[:2].tolist() == [40, 80]
    assert series.y[:2] == pytest.approx([3.15e9, 4.15e9])


def test_a_size_behind_a_number_of_things_is_no_memory(tmp_path: Path) -> None:
    lines = [f"nach {40 * (n + 1)} Bildern {3 + n},15 GB" for n in range(N)]
    with pytest.raises(ReadError):
        read_log(tmp_path, lines)


@pytest.mark.parametrize(
    ("step", "loss", "reserved"),
    [
        ("itération", "perte", "réservé"),
        ("iteración", "pérdida", "reservado"),
        ("Schritt", "Verlust", "reserviert"),
    ],
)
def test_what_is_reserved_is_read_in_other_languages(
    tmp_path: Path, step: str, loss: str, reserved: str
) -> None:
    lines = [f"{step} {5 * n} ; {loss} 2,{900 - n} ; {reserved} {4 + n},25 Go" for n in range(N)]
    (series,) = read_log(tmp_path, lines).series
    assert (series.axis.name, series.axis.kind) == (step, AxisKind.STEP)
    assert series.y[:2] == pytest.approx([4.25e9, 5.25e9])


@pytest.mark.parametrize(
    ("name", "unit"), [("ОЗУ, МБ", 1e6), ("память, ГБ", 1e9), ("ОЗУ, КБ", 1e3)]
)
def test_a_cyrillic_unit_stands_behind_the_name_of_a_column(
    tmp_path: Path, name: str, unit: float
) -> None:
    lines = [f"час | диск, МБ | {name} | ЦП, %", "---|---|---|---"]
    lines += [f"{n} | {9 + n} | {700 + 3 * n} | {n % 7}" for n in range(N)]
    (series,) = read_log(tmp_path, lines, "log.md").series
    assert series.x[:2].tolist() == [0, 3600]
    assert series.y[:2].tolist() == [700 * unit, 703 * unit]


@pytest.mark.parametrize(
    "total",
    [
        "Speicher gesamt (MB)",
        "Gesamtspeicher (MB)",
        "mémoire totale (MB)",
        "память всего",
        "Samlet hukommelse (MB)",
        "összes memória (MB)",
        "celková paměť (MB)",
        "Pamięć całkowita (MB)",
        "Ukupno memorija (MB)",
        "Συνολική μνήμη (MB)",
        "всього памяті (MB)",
    ],
)
def test_a_constant_total_is_not_memory_in_use(tmp_path: Path, total: str) -> None:
    rows = [f"{at};{16384};{900 + 3 * at}" for at in range(30)]
    recording = read_log(tmp_path, [f"Zeit;{total};Arbeitssatz (MB)", *rows])
    assert [(series.y[0], series.y[-1]) for series in recording.series] == [(900e6, 987e6)]


@pytest.mark.parametrize("name", ["Werkset (MB)", "Munkakészlet (MB)"])
def test_the_working_set_of_windows_is_memory_beside_other_memory(
    tmp_path: Path, name: str
) -> None:
    rows = [f"{at};{900 + 3 * at};{700 + at}" for at in range(30)]
    recording = read_log(tmp_path, [f"time;{name};RSS (MB)", *rows])
    assert [series.column for series in recording.series] == [name, "RSS (MB)"]


@pytest.mark.parametrize(
    "line",
    [
        "nach {minutes} Minuten: 1,{hundredths} GB belegt, 3000 Abfragen",
        "dopo {minutes} minuti: 1,{hundredths} GB usati",
        "after {minutes} minutes: 1.{hundredths} GB used, 3000 queries",
        "через {minutes} минут: 1,{hundredths} ГБ",
    ],
)
def test_minutes_before_a_size_are_its_time(tmp_path: Path, line: str) -> None:
    rows = [line.format(minutes=10 * at, hundredths=30 + 5 * at) for at in range(1, N)]
    (series,) = read_log(tmp_path, ["Hello,", "", *rows, "", "Any ideas?"]).series
    assert series.axis.kind is AxisKind.SECONDS
    assert (series.x[0], series.y[0]) == (pytest.approx(600), pytest.approx(1.35e9))


@pytest.mark.parametrize(
    "line",
    [
        "nach {n:8} Anfragen: {mb},5 MB",
        "après {n} requêtes : {mb},5 Mo",
        "tras {n} peticiones: {mb},5 MB",
        "после {n} запросов: {mb},5 МБ",
    ],
)
def test_requests_before_a_size_are_its_position(tmp_path: Path, line: str) -> None:
    rows = [line.format(n=1000 * at, mb=460 + 9 * at) for at in range(N)]
    (series,) = read_log(tmp_path, ["Hello,", "", *rows, "", "Any ideas?"]).series
    assert series.axis.kind is AxisKind.REQUEST
    assert (series.x[1], series.y[0]) == (1000, pytest.approx(460.5e6))
